package memdb_test

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(_ testing.TB, logLimit int) dbadapter.Store {
			return memdb.New(memdb.Options{LogLimit: logLimit})
		},
		Reopen: func(_ testing.TB, s dbadapter.Store) dbadapter.Store {
			return s.(*memdb.Store).Reopen()
		},
	})
}
