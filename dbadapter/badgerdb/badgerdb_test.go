package badgerdb_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
)

var harness = disktest.Harness{
	Open: func(dir string, o disktest.Options) (dbadapter.Backuper, error) {
		return badgerdb.Open(dir, badgerdb.Options{NoSync: o.NoSync, LogLimit: o.LogLimit})
	},
	Format:  badgerdb.Format,
	Files:   []string{"*.sst", "MANIFEST", "KEYREGISTRY"},
	Shorten: shorten,
}

func TestMain(m *testing.M) { disktest.TestMain(m, harness) }

func TestStore(t *testing.T)         { disktest.TestStore(t, harness) }
func TestDamageClosed(t *testing.T)  { disktest.TestDamageClosed(t, harness) }
func TestDamageCrashed(t *testing.T) { disktest.TestDamageCrashed(t, harness) }
func TestLock(t *testing.T)          { disktest.TestLock(t, harness) }
func TestFormat(t *testing.T)        { disktest.TestFormat(t, harness) }

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
