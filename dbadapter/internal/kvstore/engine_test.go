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

// hooks are called by the databases that a hooked engine opens, where they are not nil.
type hooks struct {
	opened func(kv.DB) error       // after each opening
	set    func(key []byte) error  // before an entry is written
	commit func() error            // before a commit
	seek   func(prefix, to []byte) // before an iterator over a prefix moves
	rest   func()
}

type hooked struct {
	kv.Engine
	hooks *hooks
}

func (e hooked) Open(dir string) (kv.DB, error) {
	db, err := e.Engine.Open(dir)
	if err == nil && e.hooks.opened != nil {
		err = e.hooks.opened(db)
	}
	return hookedDB{db, e.hooks}, err
}

type hookedDB struct {
	kv.DB
	hooks *hooks
}

func (d hookedDB) Begin() kv.Txn { return hookedTxn{d.DB.Begin(), d.hooks} }
func (d hookedDB) View() kv.View { return hookedView{d.DB.View(), d.hooks} }

func (d hookedDB) Rest() {
	if d.hooks.rest != nil {
		d.hooks.rest()
	}
}

type hookedTxn struct {
	kv.Txn
	hooks *hooks
}

func (t hookedTxn) Set(key, value []byte) error {
	if t.hooks.set != nil {
		if err := t.hooks.set(key); err != nil {
			return err
		}
	}
	return t.Txn.Set(key, value)
}

func (t hookedTxn) Commit() error {
	if t.hooks.commit != nil {
		if err := t.hooks.commit(); err != nil {
			return err
		}
	}
	return t.Txn.Commit()
}

type hookedView struct {
	kv.View
	hooks *hooks
}

func (v hookedView) Iterate(prefix []byte) kv.Iterator {
	return &hookedIterator{v.View.Iterate(prefix), v.hooks, prefix}
}

type hookedIterator struct {
	kv.Iterator
	hooks  *hooks
	prefix []byte
}

func (i *hookedIterator) Seek(to []byte) {
	if i.hooks.seek != nil {
		i.hooks.seek(i.prefix, to)
	}
	i.Iterator.Seek(to)
}

// openHooked opens a store of a hooked engine, and a namespace.
func openHooked(t *testing.T, h *hooks) (*Store, *namespace) {
	t.Helper()
	plain := engine
	engine = hooked{plain, h}
	defer func() { engine = plain }()
	return openTest(t, t.TempDir(), Options{}, nil)
}

// opened is an open namespace of a store.
func opened(s *Store, id dbadapter.NamespaceID) *namespace {
	all := s.life.Open()
	return all[slices.IndexFunc(all, func(n *namespace) bool { return n.ID == id })]
}

// edits are a transaction that reads what was committed before.
type edits struct {
	kv.Txn
	kv.View
}

// update changes the database below the store, as a fault would.
func update(s *Store, change func(edits) error) error {
	txn := edits{s.db.Begin(), s.db.View()}
	defer txn.Discard()
	defer txn.Close()
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
