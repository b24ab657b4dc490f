package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// whileRead is a store of which something happens before the next snapshot is read.
type whileRead struct {
	dbadapter.Namespace
	happens func()
}

func (w *whileRead) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := w.Namespace.Snapshot()
	if happens := w.happens; happens != nil {
		w.happens = nil // what happens may read, too
		happens()
	}
	return snap, err
}

// A large set is read beside polls: of the others a poll is answered meanwhile, and of that one it says
// nothing, until all is told that was committed before, and while it was read.
func TestLargeSetsAreReadBesidePolls(t *testing.T) {
	rule := &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1, Locator: true}
	a := newMachine(1)
	sa := a.holdsAll(t, rule)
	a.ReadAtOnce = 10
	told := func() []directory.SetSum {
		return must(sa.Tell(t.Context(), &directory.Poll{All: true}, nil)).(*directory.News).Sums
	}
	others := []directory.SetSum{{Home: 0}, {Home: 2}, {Home: 3}}
	// with is what is told with so many keys in the set.
	with := func(n int) []directory.SetSum {
		rows := map[dbadapter.Index]directory.Code{}
		for _, key := range keysIn(sa, 1, 0, n) {
			rows[sa.held(1).Keys.Hasher.Index([]byte(key))] = 1
		}
		h := directory.NewHost(rule.Shards, 1)
		for home := range placement.Shard(rule.Shards) {
			h.Open(home, func(yield func(dbadapter.Index, directory.Code) bool) {
				for _, index := range slices.Sorted(maps.Keys(rows)) {
					if home == 1 && !yield(index, rows[index]) {
						return
					}
				}
			})
		}
		return h.News(&directory.Poll{All: true}).Sums
	}
	large := sa.held(1)
	write := func(from, to int) {
		for some := range slices.Chunk(keysIn(sa, 1, from, to), dbadapter.MaxBatch) {
			drafts := make([]Draft, len(some))
			for i, key := range some {
				drafts[i] = draft(key, "")
			}
			must(commit(large.Write(drafts...)))
		}
	}
	write(0, 20)
	if got := told(); !slices.Equal(got, others) {
		t.Fatalf("a poll that reads no set of 20 records tells of %v", got)
	}
	large.Store = &whileRead{large.Store, func() {
		write(20, 25)
		if got := told(); !slices.Equal(got, others) {
			t.Errorf("while one is read a poll tells of %v", got)
		}
		if sa.TellAnew(t.Context()) {
			t.Error("two are read at once")
		}
	}}
	rung := sa.telling.bell.listen()
	sa.TellAnew(t.Context())
	select {
	case <-rung:
	default:
		t.Error("a poll that waits is not woken by what was read")
	}
	if got := told(); !slices.Equal(got, with(25)) {
		t.Errorf("with 25 records of one set it tells of %v", got)
	}
	if sa.TellAnew(t.Context()) {
		t.Error("all is told, and something is to be read")
	}

	// With more changes than are noted a large set is told anew, and what it said before stands no longer.
	write(25, 25+maxNoted+1)
	if got := told(); !slices.Equal(got, others) {
		t.Errorf("after more changes than are noted it tells of %v", got)
	}
	sa.TellAnew(t.Context())
	if got := told(); !slices.Equal(got, with(25+maxNoted+1)) {
		t.Errorf("after that was read it tells of %v", got)
	}
}

// What has changed too much, or is not held any more, once it was read is not told of by that; of large sets more
// changes are noted; and a set that changes all the time keeps no other one waiting.
func TestReadInVain(t *testing.T) {
	a := newMachine(1)
	rule := &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1, Locator: true}
	sa := a.holdsAll(t, rule)
	a.ReadAtOnce = -1 // not even an empty one
	told := func() (homes []placement.Shard) {
		for _, s := range must(sa.Tell(t.Context(), &directory.Poll{All: true}, nil)).(*directory.News).Sums {
			homes = append(homes, s.Home)
		}
		return homes
	}
	if got := told(); len(got) != 0 {
		t.Fatalf("it tells of %v", got)
	}
	busy, times := sa.held(0), 0
	store := &whileRead{Namespace: busy.Store}
	var again func()
	again = func() {
		times++
		busy.noted.again()
		store.happens = again
	}
	store.happens = again
	busy.Store = store
	for range rule.Shards + 1 {
		sa.TellAnew(t.Context())
	}
	if got := told(); times != 2 || !slices.Equal(got, []placement.Shard{1, 2, 3}) {
		t.Errorf("a set was read %d times in vain, and it tells of %v", times, got)
	}
	store.happens = func() { sa.put(sa.Sets()[1:]) }
	sa.TellAnew(t.Context())
	if got := told(); !slices.Equal(got, []placement.Shard{1, 2, 3}) {
		t.Errorf("it does not hold a set any more, and tells of %v", got)
	}
}

// What is read of a set that was dropped, and is held anew, ends nothing of the new one.
func TestReadOfADroppedSet(t *testing.T) {
	a := newMachine(1)
	rule := &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1, Locator: true}
	sa := a.holdsAll(t, rule)
	warned := 0
	a.Untold = func(*Set, error) { warned++ }
	told := func() (homes []placement.Shard) {
		for _, s := range must(sa.Tell(t.Context(), &directory.Poll{All: true}, nil)).(*directory.News).Sums {
			homes = append(homes, s.Home)
		}
		return homes
	}
	a.ReadAtOnce = -1
	told() // which reads none
	old := sa.held(0)
	fresh := &Set{shard: 0}
	fresh.Part.Keys, fresh.Part.Store, fresh.Part.Live, fresh.Part.ns, fresh.Part.set = old.Keys, old.Store, old.Live, sa, fresh
	old.Store = &droppedStore{old.Store, func() {
		sa.put(append([]*Set{fresh}, sa.Sets()[1:]...)) // dropped, and taken anew
		a.ReadAtOnce = 1 << 14
		if got := told(); len(got) != 4 {
			t.Errorf("before the read ends it tells of %v", got)
		}
	}}
	for sa.TellAnew(t.Context()) {
	}
	if got := told(); len(got) != 4 || warned > 0 {
		t.Errorf("it tells of %v, and has warned %d times", got, warned)
	}
}

// droppedStore is a store that is closed while it is read.
type droppedStore struct {
	dbadapter.Namespace
	happens func()
}

func (d *droppedStore) Snapshot() (dbadapter.Snapshot, error) {
	d.happens()
	return nil, dbadapter.ErrClosed
}

// Of large sets more changes are noted, the most while they are read beside polls; what is too many is not kept.
func TestNoted(t *testing.T) {
	for _, c := range []struct {
		records, most int
		beside        bool
	}{
		{0, maxNoted, false},
		{80_000, 10_000, false},
		{8 << 20, readAtOnce, false},
		{0, maxNoted, true},
		{800_000, 100_000, true},
		{8 << 20, maxBeside, true},
	} {
		var n noted
		n.begin(c.records, c.beside)
		changes := make([]dbadapter.Change, c.most+1)
		for i := range changes {
			changes[i] = dbadapter.Change{Index: dbadapter.Index(i + 1), New: 1}
		}
		n.note(changes[1:])
		want := c.most
		if c.most <= maxNoted {
			want = 0 // a poll tells them
		}
		if taken, missed := n.takeMany(c.records); missed || len(taken) != want || len(n.indices) != c.most-want {
			t.Errorf("%+v: it takes %d, and leaves %d, missed %t", c, len(taken), len(n.indices), missed)
		}
		n.note(changes)
		n.note(changes[:1])
		for range 2 { // to look does not end it
			if taken, missed := n.takeMany(c.records); !missed || len(taken)+len(n.indices) > 0 {
				t.Errorf("%+v: one more is not missed, or %d are kept", c, len(taken)+len(n.indices))
			}
		}
	}
}

// keysIn are some of the keys whose home is a shard: from the n-th on, up to another one.
func keysIn(ns *Namespace, home placement.Shard, from, to int) (keys []string) {
	for i, n := 0, 0; n < to; i++ {
		if key := fmt.Sprint(i); ns.Home([]byte(key)) == home {
			if n++; n > from {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// While a node closes nothing is read any more, and the set that was being read is due again.
func TestNothingIsReadWhileItCloses(t *testing.T) {
	a := newMachine(1)
	sa := a.holdsAll(t, &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1, Locator: true})
	a.ReadAtOnce = -1
	must(sa.Tell(t.Context(), &directory.Poll{}, nil)) // which reads none
	ctx, cancel := context.WithCancel(t.Context())
	set := sa.held(1) // it begins behind the first
	whole := set.Store
	set.Store = &whileRead{whole, cancel}
	if !sa.TellAnew(ctx) || sa.TellAnew(ctx) {
		t.Error("the first is read, in which the node closes, and no further one")
	}
	set.Store = whole
	n := 0
	for ; sa.TellAnew(t.Context()); n++ {
	}
	if n != 4 {
		t.Errorf("then %d of 4 sets are read", n)
	}
}
