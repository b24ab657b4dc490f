package kvstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// seekingEngine opens databases that note from where the entries with a prefix are read.
type seekingEngine struct {
	kv.Engine
	spy *seeking
}

func (e seekingEngine) Open(dir string) (kv.DB, error) {
	db, err := e.Engine.Open(dir)
	e.spy.DB = db
	return e.spy, err
}

type seeking struct {
	kv.DB
	prefix []byte
	from   [][]byte
}

func (d *seeking) View() kv.View { return &seekingView{d.DB.View(), d} }

type seekingView struct {
	kv.View
	db *seeking
}

func (v *seekingView) Iterate(prefix []byte) kv.Iterator {
	it := v.View.Iterate(prefix)
	if bytes.Equal(prefix, v.db.prefix) {
		return &seekingIterator{it, v.db}
	}
	return it
}

type seekingIterator struct {
	kv.Iterator
	db *seeking
}

func (it *seekingIterator) Seek(key []byte) {
	it.db.from = append(it.db.from, bytes.Clone(key))
	it.Iterator.Seek(key)
}

// Trimming the conflicts never reads from where it has trimmed before: a database steps
// over what was deleted there.
func TestTrimmingGoesOn(t *testing.T) {
	const number = 1 // of the first namespace
	spy := &seeking{prefix: append(appendPrefix(nil, number, layout.KindKept), byte(dbadapter.KeptConflict))}
	whole := engine
	engine = seekingEngine{engine, spy}
	t.Cleanup(func() { engine = whole })
	_, n := openTest(t, t.TempDir(), Options{}, nil)
	for version := range 14 {
		var writes []dbadapter.Write
		for i := range 1000 {
			w := write(fmt.Sprint(i), version+1)
			w[0].Record.Version.Writer = dbadapter.WriterID(version + 1) // it has not seen the one before
			w[0].Record.Value = fmt.Append(nil, version)
			w[0].Record = hashed(n.hasher, w[0].Record.Record)
			writes = append(writes, w...)
		}
		if _, err := n.Apply(t.Context(), writes); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.KeptCount(dbadapter.KeptConflict); got != dbadapter.MaxConflicts {
		t.Fatalf("%d conflicts are kept", got)
	}
	if len(spy.from) < 3 {
		t.Fatalf("trimmed %d times", len(spy.from))
	}
	for i := 1; i < len(spy.from); i++ {
		if bytes.Compare(spy.from[i], spy.from[i-1]) <= 0 {
			t.Errorf("trimming %d begins at %x, the one before at %x", i, spy.from[i], spy.from[i-1])
		}
	}
}
