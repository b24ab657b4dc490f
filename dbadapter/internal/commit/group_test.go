package commit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// A batch of which one bucket cannot be read is taken back, whichever it is.
func TestUnreadBucketTakesTheBatchBack(t *testing.T) {
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	damaged := errors.New("damaged")
	for bad := range 3 {
		var writes []dbadapter.Write
		for i := range 3 {
			r, err := dbadapter.Hash(h, dbadapter.Record{Key: []byte{byte(i)}, Version: dbadapter.Version{Clock: 1 << 40, Writer: 1}})
			if err != nil {
				t.Fatal(err)
			}
			writes = append(writes, dbadapter.Write{Record: r})
		}
		g := NewGroup(h, func(indices []dbadapter.Index) []Loaded {
			loaded := make([]Loaded, len(indices))
			for i, index := range indices {
				if index == writes[bad].Record.Index {
					loaded[i].Err = damaged
				}
			}
			return loaded
		})
		items, err := Prepare(writes)
		if err != nil {
			t.Fatal(err)
		}
		if outcomes, err := g.Batch(items); !errors.Is(err, damaged) || outcomes != nil || len(g.Touched()) != 0 || g.Latest() != 0 || len(g.Leavers()) != 0 {
			t.Errorf("bucket %d: %v, %v; %d buckets are touched, and the latest is %d", bad, outcomes, err, len(g.Touched()), g.Latest())
		}
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

// The buckets that a group changes come by index, each once, after one batch or several,
// of which some are taken back.
func TestByIndex(t *testing.T) {
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		g := NewGroup(h, func(indices []dbadapter.Index) []Loaded {
			if !slices.IsSorted(indices) || len(slices.Compact(slices.Clone(indices))) != len(indices) {
				t.Fatalf("seed %d: the indices to load are %v", seed, indices)
			}
			return make([]Loaded, len(indices))
		})
		for range 1 + rng.IntN(3) {
			var items []Item
			for range rng.IntN(20) {
				key := fmt.Append(nil, rng.IntN(30))
				r, err := dbadapter.Hash(h, dbadapter.Record{Key: key, Version: dbadapter.Version{Clock: dbadapter.Timestamp(1 + rng.IntN(5)), Writer: 1}})
				if err != nil {
					t.Fatal(err)
				}
				it := Item{Record: r}
				if rng.IntN(60) == 0 {
					it.If = &dbadapter.Version{Clock: 99}
				}
				items = append(items, it)
			}
			if _, err := g.Batch(items); err != nil && !errors.Is(err, dbadapter.ErrConflict) {
				t.Fatal(err)
			}
		}
		var got []dbadapter.Index
		for i := range g.ByIndex() {
			got = append(got, g.Touched()[i].Index)
		}
		var want []dbadapter.Index
		for _, b := range g.Touched() {
			want = append(want, b.Index)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: by index %v, touched %v", seed, got, want)
		}
	}
}
