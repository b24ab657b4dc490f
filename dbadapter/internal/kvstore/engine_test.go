package kvstore

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/badgerkv"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/pebblekv"
	"github.com/syncd-io/syncd/internal/durable"
)

// engine is what the tests run over. No test here needs the disk to be written to;
// those of the stores cut the power.
var engine kv.Engine

func TestMain(m *testing.M) { goleak.VerifyTestMain(overEach{m}) }

// overEach runs all tests over each engine.
type overEach struct{ m *testing.M }

func (o overEach) Run() (code int) {
	for _, engine = range []kv.Engine{badgerkv.Engine{NoSync: true}, pebblekv.Engine{NoSync: true}} {
		fmt.Printf("over %s\n", engine.Name())
		if code = o.m.Run(); code != 0 {
			return code
		}
	}
	return code
}

func openEngine(dir string, o Options) (*Store, error) { return Open(dir, engine, o) }

// opened is an open namespace of a store.
func opened(s *Store, id dbadapter.NamespaceID) *namespace {
	all := s.life.Open()
	return all[slices.IndexFunc(all, func(n *namespace) bool { return n.id == id })]
}

// update changes the database below the store, as a fault would.
func update(s *Store, change func(txn kv.Txn) error) error {
	txn := s.db.Begin()
	defer txn.Discard()
	if err := change(txn); err != nil {
		return err
	}
	return txn.Commit()
}

// tight are options with which the disk has no room for writes, but for removals.
func tight(t *testing.T) Options {
	free, err := durable.Free(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Options{MinFree: free + free/2}
}
