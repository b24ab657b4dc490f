package pebbledb_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/disktest"
	"github.com/syncd-io/syncd/dbadapter/pebbledb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

var harness = disktest.Harness{
	Open: func(dir string, o disktest.Options) (dbadapter.Backuper, error) {
		return pebbledb.Open(dir, pebbledb.Options{NoSync: o.NoSync})
	},
	Format: pebbledb.Format,
	Files:  []string{"*.sst", "MANIFEST-*", "OPTIONS-*", "*.log", "marker.*"},
}

func TestMain(m *testing.M) {
	if !disktest.Examine(harness) {
		goleak.VerifyTestMain(m)
	}
}

func TestDamageClosed(t *testing.T)  { disktest.TestDamageClosed(t, harness) }
func TestDamageCrashed(t *testing.T) { disktest.TestDamageCrashed(t, harness) }
func TestLock(t *testing.T)          { disktest.TestLock(t, harness) }
func TestFormat(t *testing.T)        { disktest.TestFormat(t, harness) }

func TestStore(t *testing.T) {
	type opened struct {
		dir     string
		options pebbledb.Options
	}
	stores := make(map[dbadapter.Store]opened)
	open := func(t testing.TB, o opened) dbadapter.Store {
		s, err := pebbledb.Open(o.dir, o.options)
		if err != nil {
			t.Fatal(err)
		}
		stores[s] = o
		return s
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, logLimit int) dbadapter.Store {
			return open(t, opened{t.TempDir(), pebbledb.Options{LogLimit: logLimit}})
		},
		Reopen: func(t testing.TB, s dbadapter.Store) dbadapter.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, stores[s])
		},
	})
}
