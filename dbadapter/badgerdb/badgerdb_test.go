package badgerdb_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

var harness = disktest.Harness{
	Open: func(dir string, o disktest.Options) (dbadapter.Backuper, error) {
		return badgerdb.Open(dir, badgerdb.Options{NoSync: o.NoSync, TrustFiles: o.Trust})
	},
	Format:  badgerdb.Format,
	Files:   []string{"*.sst", "MANIFEST", "KEYREGISTRY"},
	Shorten: shorten,
}

func TestMain(m *testing.M) {
	if !disktest.Examine(harness) {
		goleak.VerifyTestMain(m)
	}
}

func TestDamageClosed(t *testing.T)  { disktest.TestDamageClosed(t, harness) }
func TestDamageTrusted(t *testing.T) { disktest.TestDamageTrusted(t, harness) }
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

func TestStore(t *testing.T) {
	type opened struct {
		dir     string
		options badgerdb.Options
	}
	stores := make(map[dbadapter.Store]opened)
	open := func(t testing.TB, o opened) dbadapter.Store {
		s, err := badgerdb.Open(o.dir, o.options)
		if err != nil {
			t.Fatal(err)
		}
		stores[s] = o
		return s
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, logLimit int) dbadapter.Store {
			return open(t, opened{t.TempDir(), badgerdb.Options{LogLimit: logLimit}})
		},
		Reopen: func(t testing.TB, s dbadapter.Store) dbadapter.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, stores[s])
		},
	})
}
