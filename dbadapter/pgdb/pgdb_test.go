package pgdb_test

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/internal/pgserver"
)

func TestMain(m *testing.M) {
	// One step of the model is some fifty exchanges with the server.
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// schemas numbers the schemas of a test: each store has its own.
var schemas atomic.Int64

func open(t testing.TB, server *pgserver.Server, o pgdb.Options) *pgdb.Store {
	t.Helper()
	if o.Schema == "" {
		o.Schema = fmt.Sprint("schema ", schemas.Add(1))
	}
	s, err := pgdb.Open(context.Background(), server.URL(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	server := pgserver.Start(t)
	options := make(map[dbadapter.Store]pgdb.Options)
	reopened := func(t testing.TB, o pgdb.Options) dbadapter.Store {
		s := open(t, server, o)
		options[s] = o
		return s
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, logLimit int) dbadapter.Store {
			return reopened(t, pgdb.Options{LogLimit: logLimit, Schema: fmt.Sprint("schema ", schemas.Add(1))})
		},
		Reopen: func(t testing.TB, s dbadapter.Store) dbadapter.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return reopened(t, options[s])
		},
	})
}
