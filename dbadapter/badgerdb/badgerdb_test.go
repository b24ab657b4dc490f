package badgerdb_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

// childVariable says what a child process of a test is to do.
const childVariable = "SYNCD_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "examine" {
		examineStores()
		return
	}
	goleak.VerifyTestMain(m)
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
