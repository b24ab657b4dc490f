package node

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// lookedAt is a store in which something happens once, before it is looked at.
type lookedAt struct {
	dbadapter.Namespace
	then func()
}

func (s *lookedAt) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := s.Namespace.Snapshot()
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return snap, err
}

// A host that is current by the list that it has, and hears the next one while it looks a key up, does not answer as
// one that is current by that next list.
func TestListComesWhileAHostAnswers(t *testing.T) {
	w := newMovers(t, 1, 4)
	for _, m := range w.all {
		m.Elapsed = func() time.Duration { return m.clock.Sub(noon) }
	}
	w.settle()
	admin, host, other, asker := w.all[0], w.all[1], 2, w.all[3]
	shard, found := placement.Shard(0), false
	for s := range placement.Shard(w.rule.Shards) {
		if host.held(s) != nil && w.all[other].held(s) != nil && !found {
			shard, found = s, true
		}
	}
	if !found {
		t.Fatal("no shard of the two: draw other identities")
	}
	key := w.keyIn(shard, 0)
	must(commit(host.held(shard).Write(draft(key, "old"))))
	w.syncShard(other, 1, shard)
	w.syncShard(1, other, shard)
	w.state(admin, admin.ID, host.ID) // the admin is a host now; the two have not heard of it
	for range 3 {
		w.tend(0)
	}
	set := admin.held(shard)
	if set == nil {
		t.Fatal("the admin does not hold it")
	}
	w.pass(time.Second)
	must(commit(set.Write(draft(key, "new")))) // acknowledged
	w.pass(10 * time.Second)
	w.syncShard(1, other, shard)
	if !host.held(shard).Current() {
		t.Fatal("not current")
	}
	for range 2 {
		_, _, _ = asker.follow(admin.machine, asker.ns.Course(admin.ID))
	}
	for range 2 {
		must(asker.ns.Tend(t.Context()))
		_, _, _ = admin.follow(asker.machine, admin.ns.Course(asker.ID))
		_, _, _ = asker.follow(admin.machine, asker.ns.Course(admin.ID))
	}
	if asker.ns.Members().Digest() == host.ns.Members().Digest() {
		t.Fatal("the host has heard")
	}
	of := host.held(shard)
	of.Store = &lookedAt{of.Store, func() {
		for range 2 {
			_, _, _ = host.follow(admin.machine, host.ns.Course(admin.ID))
		}
	}}
	r := asker.ns.Remote([]byte(key))
	got := asker.readOver(w, r, host.ID, func(ID) {})
	if got.Sure && got.Record != nil && string(got.Record.Value) == "old" {
		t.Errorf("%q for sure, though %q was acknowledged 10 s ago; the host is current now: %v; lists equal: %v", got.Record.Value, "new", of.Current(), asker.ns.Members().Digest() == host.ns.Members().Digest())
	}
}
