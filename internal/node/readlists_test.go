package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
)

// A node that hears of a list after it has chosen whom to read from, and before the answers come, is not sure by
// them: they are by its list then, and the candidates are not.
func TestListChangesWhileReading(t *testing.T) {
	for _, rule := range []*placement.Rule{locatedRule, {Kind: placement.Hash, Shards: 8, Replicas: 2}} {
		t.Run(fmt.Sprint(rule.Kind, rule.Locator), func(t *testing.T) {
			w := threeMovers(t, rule)
			w.join()
			w.all[3].Elapsed = func() time.Duration { return w.all[3].clock.Sub(noon) }
			w.settle()
			x, reader := w.all[0], w.all[3]
			was := must(first(reader.ns.Layout()))
			third := w.joinUnheard(3)
			is := must(first(x.ns.Layout()))
			home, found := placement.Shard(0), false
			for s := range placement.Shard(rule.Shards) {
				if is.Has(s, third.ID) && !was.Has(s, reader.ID) && !is.Has(s, reader.ID) {
					home, found = s, true
				}
			}
			if !found {
				t.Fatal("no such shard")
			}
			key := w.keyIn(home, 0)
			set := third.held(home)
			if set == nil || !set.Settled() {
				t.Fatal("the third is no settled host")
			}
			set.acknowledge(key) // no other machine syncs with it
			w.pass(10 * time.Second)

			heard := false
			got := reader.readOver(w, reader.ns.Remote([]byte(key)), "", func(ID) {
				for i := 0; i < 2 && !heard; i++ { // meanwhile the lists are made equal in the background
					_, _, _ = reader.follow(x.machine, reader.ns.Course(x.ID))
				}
				heard = true
			})
			if got.Sure && got.Record == nil {
				t.Error("no such key for sure, of one that a host of the layout that counts by now has acknowledged 10 s ago")
			}
		})
	}
}

// A reader is cut off while a node joins, becomes a host, takes a write, and may only read from then on: the
// table of the layout is the one of before. The hosts know that the node may hold the set still. The reader,
// back, does not take them for ones that go by its own layout.
func TestNowhereByTheTableOfBefore(t *testing.T) {
	w := threeMovers(t, locatedRule)
	x, reader := w.all[0], w.all[2]
	was, before, err := reader.ns.Layout()
	if err != nil {
		t.Fatal(err)
	}
	third := w.joinUnheard(2)
	is := must(first(x.ns.Layout()))
	home, found := placement.Shard(0), false
	for s := range placement.Shard(w.rule.Shards) {
		if is.Has(s, third.ID) && !was.Has(s, reader.ID) {
			home, found = s, true
		}
	}
	if !found {
		t.Fatal("no such shard")
	}
	key := w.keyIn(home, 0)
	set := third.held(home)
	if set == nil || !set.Settled() {
		t.Fatal("the further node is no settled host")
	}
	set.acknowledge(key)
	w.apart[[2]int{0, 3}], w.apart[[2]int{1, 3}] = true, true // and cut off
	if err := x.ns.SetRole(t.Context(), third.ID, RoleRead, time.Time{}); err != nil {
		t.Fatal(err)
	}
	w.goOn(0, 1)
	if now, since, err := x.ns.Layout(); err != nil || now.Table() != was.Table() || since.Epoch == before.Epoch {
		t.Fatalf("no other layout of the same table: epoch %d, %v", since.Epoch, err)
	}
	if set := x.held(home); set != nil && set.Current() {
		t.Fatal("a host calls itself current")
	}
	l := w.locator(reader) // it polls the hosts as soon as it is back, by the list that it has
	if reader.ns.Nowhere(l, []byte(key), time.Hour+time.Second) {
		t.Error("no such key for sure, of a key acknowledged minutes ago by a member whom all that have told know")
	}
}

// The reader knows the layout that counts, and the further host that it names, which has acknowledged a write.
// That the nearest host, which has not heard of that layout, calls itself current makes no record sure.
func TestCurrentByAnOlderList(t *testing.T) {
	rule := &placement.Rule{Kind: placement.Hash, Shards: 8, Replicas: 2}
	w := threeMovers(t, rule)
	reader := w.all[0]
	was := must(first(reader.ns.Layout()))
	for i := 1; i < 3; i++ {
		w.apart[[2]int{0, i}] = true
	}
	w.join()
	third := w.all[3]
	third.Elapsed = func() time.Duration { return third.clock.Sub(noon) }
	w.apart[[2]int{1, 3}], w.apart[[2]int{2, 3}] = true, true
	// the first write, which all hosts have
	is := func() *placement.Layout { return must(first(reader.ns.Layout())) }
	w.goOn(0, 3)
	home, found := placement.Shard(0), false
	for s := range placement.Shard(rule.Shards) {
		if is().Has(s, third.ID) && !was.Has(s, reader.ID) {
			home, found = s, true
		}
	}
	if !found {
		t.Fatal("no such shard")
	}
	key := w.keyIn(home, 0)
	w.put(1, key) // by the list of before, at both of its hosts
	w.goOn(1, 2)
	if third.held(home) == nil {
		t.Fatal("the further host has not taken the shard")
	}
	must(commit(third.held(home).Write(draft(key, "value 2")))) // acknowledged by a host of the layout that counts
	w.pass(20 * time.Second)
	w.syncShard(1, 2, home) // hosts of before are current by their list
	near := w.all[1]
	got := reader.readOver(w, reader.ns.Remote([]byte(key)), near.ID, func(ID) {})
	if got.Sure && string(got.Record.Value) != "value 2" {
		t.Errorf("%q for sure, 20 s after a host of the layout that counts here has acknowledged another value", got.Record.Value)
	}
}
