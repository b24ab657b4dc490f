package commit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// A batch that is taken back leaves its buckets as if it had never been there:
// the next batch of the same transaction, to the same key, is stored.
func TestTakenBackBatchLeavesNoTrace(t *testing.T) {
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	write := func(key, value string, clock dbadapter.Timestamp, held *dbadapter.Version) dbadapter.Write {
		r, err := dbadapter.Hash(h, dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: dbadapter.Version{Clock: clock, Writer: 1}})
		if err != nil {
			t.Fatal(err)
		}
		return dbadapter.Write{Record: r, If: held}
	}
	g := NewGroup(h, func(indices []dbadapter.Index) []Loaded { return make([]Loaded, len(indices)) })
	batch := func(writes ...dbadapter.Write) ([]dbadapter.Outcome, error) {
		t.Helper()
		items, err := Prepare(writes)
		if err != nil {
			t.Fatal(err)
		}
		return g.Batch(items)
	}
	elsewhere := dbadapter.Version{Clock: 99}
	if _, err := batch(write("k", "first", 1<<40, nil), write("l", "", 1<<40, &elsewhere)); !errors.Is(err, dbadapter.ErrConflict) {
		t.Fatalf("a failed condition: %v", err)
	}
	if len(g.Touched()) != 0 || g.Latest() != 0 {
		t.Errorf("%d buckets touched, latest %d, by a batch that was taken back", len(g.Touched()), g.Latest())
	}
	outcomes, err := batch(write("k", "second", 1<<39, nil))
	if err != nil || outcomes[0].Result != dbadapter.Applied {
		t.Fatal(outcomes, err)
	}
	changes := g.Changes(7)
	if len(changes) != 1 || changes[0].Seq != 8 || changes[0].Old != 0 || changes[0].Records != 1 || len(changes[0].Keys) != 1 || string(changes[0].Keys[0]) != "k" {
		t.Errorf("changes %+v", changes)
	}
	if held := g.Touched()[0].Held; len(held) != 1 || string(held[0].Record.Value) != "second" {
		t.Errorf("the bucket holds %+v", held)
	}
}

// A group that loses more than is kept hands over only the last conflicts, and all
// that was set aside.
func TestLeaversAreBounded(t *testing.T) {
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	const records = 3
	value := make([]byte, dbadapter.MaxConflictBytes/2)
	held := map[dbadapter.Index][]Held{}
	var items []Item
	for i := range records {
		r := dbadapter.Record{Key: []byte{byte(i)}, Value: value, Version: dbadapter.Version{Clock: 1, Writer: 1}}
		old := dbadapter.Hashed{Record: r, Index: h.Index(r.Key)} // larger than Hash takes
		held[old.Index] = []Held{{Record: old}}
		item := Item{Record: old}
		if item.Action = dbadapter.SetAside; i > 0 {
			item.Action, item.Record.Value, item.Record.Version = dbadapter.Put, nil, dbadapter.Version{Clock: 2, Writer: 2}
		}
		items = append(items, item)
	}
	g := NewGroup(h, func(indices []dbadapter.Index) []Loaded {
		loaded := make([]Loaded, len(indices))
		for i, index := range indices {
			loaded[i].Held = held[index]
		}
		return loaded
	})
	if _, err := g.Batch(items); err != nil {
		t.Fatal(err)
	}
	var left string
	for _, l := range g.Leavers() {
		left += fmt.Sprint(l.Why, l.Record.Key)
	}
	if want := "set aside [0]conflict [2]"; left != want {
		t.Errorf("%s leave, want %s", left, want)
	}
}
