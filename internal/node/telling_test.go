package node

import (
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// A host of before tells of a set for as long as it holds it: it is asked for that long, and what it does
// not tell would leave open where the set's keys are.
func TestTellsWhileItHandsOver(t *testing.T) {
	for _, rule := range []*placement.Rule{
		{Kind: placement.Writer, Shards: 16, Replicas: 1},
		{Kind: placement.Hash, Shards: 16, Replicas: 1, Locator: true},
	} {
		a, b := newMachine(1), newMachine(2)
		secret := a.NewSecret()
		sa := must(a.open(secret, must(a.FoundShards(secret, "notes", Policy{}, rule))))
		sa.tended(t)
		take, _ := sa.Moves()
		for _, shard := range take {
			must(sa.TakeShard(t.Context(), shard))
		}
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
		if got := told(); len(got) != rule.Shards || !slices.ContainsFunc(got, func(home placement.Shard) bool { return !layout.Has(home, a.ID) }) {
			t.Errorf("%s: it is to leave some, and tells of %v", rule.Kind, got)
		}
	}
}
