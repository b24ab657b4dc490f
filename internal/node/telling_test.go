package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// holdsAll founds a namespace of shards, and takes all of them.
func (m *machine) holdsAll(t *testing.T, rule *placement.Rule) *Namespace {
	t.Helper()
	secret := m.NewSecret()
	ns := must(m.open(secret, must(m.FoundShards(secret, "notes", Policy{}, rule))))
	ns.tended(t)
	take, _ := ns.Moves()
	for _, shard := range take {
		must(ns.TakeShard(t.Context(), shard))
	}
	return ns
}

// A host of before tells of a set for as long as it holds it: it is asked for that long, and what it does
// not tell would leave open where the set's keys are.
func TestTellsWhileItHandsOver(t *testing.T) {
	for _, rule := range []*placement.Rule{
		{Kind: placement.Prefix, Shards: 16, Replicas: 1, Locator: true, Prefixes: []placement.PrefixShard{{Prefix: []byte("a"), Shard: 3}}},
		{Kind: placement.Hash, Shards: 16, Replicas: 1, Locator: true},
	} {
		a, b := newMachine(1), newMachine(2)
		sa := a.holdsAll(t, rule)
		told := func() (homes []placement.Shard) {
			news := must(sa.Tell(t.Context(), &directory.Poll{All: true}, nil)).(*directory.News)
			for _, s := range news.Sums {
				homes = append(homes, s.Home)
			}
			return homes
		}
		if got := told(); len(got) != rule.Shards {
			t.Fatalf("%s: the founder tells of %v", rule.Kind, got)
		}
		must(b.join(a, invite(sa, RoleWrite)))
		for _, m := range []*machine{a, b} {
			m.clock = m.clock.Add(time.Second)
		}
		sa.tended(t)
		for _, m := range []*machine{a, b} {
			m.clock = m.clock.Add(time.Minute)
		}
		sa.tended(t)
		layout, stated, err := sa.Layout()
		if err != nil || stated.Epoch != 2 {
			t.Fatalf("%s: %+v, %v", rule.Kind, stated, err)
		}
		if got := told(); len(got) != rule.Shards || !slices.ContainsFunc(got, func(home placement.Shard) bool { return !layout.Row(home).IsNew(a.ID) }) {
			t.Errorf("%s: it is to leave some, and tells of %v", rule.Kind, got)
		}
	}
}

// unreadable is a store of which no snapshot can be opened.
type unreadable struct {
	dbadapter.Namespace
	tries *int
}

func (u unreadable) Snapshot() (dbadapter.Snapshot, error) {
	*u.tries++
	return nil, errors.New("a bad block")
}

// Of a set that cannot be read nothing is told, and the driver is told why. Of the others a poll is
// answered as before; and of that one again once it can be read, for which it is not tried with each poll.
func TestOneSetThatCannotBeRead(t *testing.T) {
	a := newMachine(1)
	rule := &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1, Locator: true}
	sa := a.holdsAll(t, rule)
	told := func() int {
		return len(must(sa.Tell(t.Context(), &directory.Poll{All: true}, nil)).(*directory.News).Sums)
	}
	if n := told(); n != rule.Shards {
		t.Fatalf("it tells of %d sets", n)
	}
	var untold []*Set
	a.Untold = func(set *Set, _ error) { untold = append(untold, set) }
	broken, tries := sa.held(1), 0
	whole := broken.Store
	broken.Store = unreadable{whole, &tries}
	broken.noted.again()
	for range 3 {
		if n := told(); n != rule.Shards-1 {
			t.Errorf("it cannot read one of four sets, and tells of %d", n)
		}
	}
	if tries != 1 || !slices.Equal(untold, []*Set{broken}) {
		t.Errorf("it was tried to be read %d times in no time, and the driver was told %d times", tries, len(untold))
	}
	broken.Store = whole
	a.clock = a.clock.Add(untoldRest)
	if n := told(); n != rule.Shards {
		t.Errorf("it can read all sets again, and tells of %d", n)
	}

	// That the asker has gone is nothing that is wrong with a set.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken.Store = unreadable{whole, &tries}
	broken.noted.again()
	if _, err := sa.Tell(ctx, &directory.Poll{}, nil); err == nil || len(untold) > 1 {
		t.Errorf("the asker has gone: %v, and %d sets cannot be read", err, len(untold))
	}
	broken.Store = whole
	if n := told(); n != rule.Shards {
		t.Errorf("after that it tells of %d sets", n)
	}
}
