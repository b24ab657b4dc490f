package pebbledb_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/pebbledb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
