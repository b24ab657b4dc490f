package ondisk_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// harness is that of the store of a kind; "": of the one that a folder holds.
func harness(kind ondisk.Kind) disktest.Harness {
	h := disktest.Harness{
		Open: func(dir string, o disktest.Options) (dbadapter.Backuper, error) {
			return ondisk.Open(dir, kind, ondisk.Options{NoSync: o.NoSync, LogLimit: o.LogLimit})
		},
		Files:   []string{"*.sst", "MANIFEST", "KEYREGISTRY"},
		Shorten: shorten,
	}
	if kind == ondisk.Pebble {
		h.Files, h.Shorten = []string{"*.sst", "MANIFEST-*", "OPTIONS-*", "*.log", "marker.*"}, nil
	}
	return h
}

func TestMain(m *testing.M) { disktest.TestMain(m, harness("")) }

func TestStore(t *testing.T)         { overBoth(t, disktest.TestStore) }
func TestDamageClosed(t *testing.T)  { overBoth(t, disktest.TestDamageClosed) }
func TestDamageCrashed(t *testing.T) { overBoth(t, disktest.TestDamageCrashed) }
func TestLock(t *testing.T)          { overBoth(t, disktest.TestLock) }
func TestFormat(t *testing.T)        { overBoth(t, disktest.TestFormat) }

func overBoth(t *testing.T, test func(*testing.T, disktest.Harness)) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		t.Run(string(kind), func(t *testing.T) { test(t, harness(kind)) })
	}
}

// shorten takes the most of the empty tail off the logs, which are 64 MiB long,
// and removes the empty value log; copies are then made fast.
func shorten(t *testing.T, dir string) {
	logs, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
	for _, path := range logs {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.Truncate(path, int64(len(bytes.TrimRight(b, "\x00"))+1<<16))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	unused, _ := filepath.Glob(filepath.Join(dir, "*.vlog"))
	for _, path := range unused {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
