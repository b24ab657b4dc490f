package model

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/sim"
)

// silent is a watcher that takes no notice.
type silent struct{}

func (silent) Observed(int, *dbadapter.Record)                                  {}
func (silent) Left(int, int, []dbadapter.Record)                                {}
func (silent) Answered(*Question)                                               {}
func (silent) Ended(*Ended)                                                     {}
func (silent) Refused(int, error)                                               {}
func (silent) Unwatched(int, string, error, dbadapter.LogID, func(uint64) bool) {}

// A node that starts again does not recover, and neither does one whose files were put back
// as they were: it does not know. One that was restored by the program does.
func TestRecovering(t *testing.T) {
	w := sim.New(1)
	cl := New(w, sim.NewNet(w, sim.Behaviour{Delay: 10 * time.Millisecond}), Config{Nodes: 2, History: check.New(), Watch: silent{}, Skew: time.Minute})
	for _, n := range cl.Nodes() {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Found(true); err != nil {
		t.Fatal(err)
	}
	n := cl.Node(1)
	for range 2 { // until then a newcomer recovers, too
		n.Sync(0, syncing.Ask{}, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
		w.Run(w.Now() + 30*time.Second)
	}
	n.Copy()
	recovers := func(what string, started error, want bool) {
		if started != nil || n.process.mark.Recovering != want || n.process.ns.OtherStore() != want {
			t.Errorf("%s: %v, recovering %v", what, started, n.process.mark.Recovering)
		}
		n.Stop()
	}
	n.Stop()
	recovers("a start", n.Start(), false)
	recovers("files of a copy", n.Restore(false), false)
	recovers("a backup", n.Restore(true), true)
	if err := n.Restore(true); err != nil {
		t.Fatal(err)
	}
	n.Copy()
	n.Stop()
	if err := n.Restore(false); err != nil || n.process.ns.OtherStore() {
		t.Errorf("files of a copy of what was restored: %v, and it takes them for those of another store", err)
	}
}

// Shards have their hosts within seconds of the joins, and not only after a round of background
// syncs: the layout is stated when it is due, and the hosts say at once what they hold.
func TestShardsComeSoonAfterJoins(t *testing.T) {
	w := sim.New(1)
	cl := New(w, sim.NewNet(w, sim.Behaviour{Delay: 10 * time.Millisecond}), Config{
		Nodes: 4, Every: 10 * time.Minute, Push: true, History: check.New(), Watch: silent{}, Skew: time.Minute,
		Rule: &placement.Rule{Kind: placement.Hash, Shards: 8, Replicas: 2},
	})
	for _, n := range cl.Nodes() {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.Found(false); err != nil {
		t.Fatal(err)
	}
	w.Run(time.Second)
	if n := len(cl.Node(0).Shards()); n != 8 {
		t.Errorf("the first node holds %d shards", n)
	}
	for i := 1; i < 4; i++ {
		cl.Node(i).Join(0, node.RoleWrite)
		w.Run(w.Now() + time.Second)
	}
	w.Run(w.Now() + 30*time.Second)
	held := map[int]int{}
	for _, n := range cl.Nodes() {
		for _, s := range n.Shards() {
			held[s]++
		}
		for s := range 8 {
			if holders := n.process.ns.Holders(placement.Shard(s)); len(holders) < 1 {
				t.Errorf("node %d knows no other holder of shard %d", n.number, s)
			}
		}
		r, err := n.process.ns.Replicas()
		if err != nil || r.Epoch < 2 || r.Short > 0 || r.Fetching > 0 || r.Dropping > 0 && n.number > 0 {
			t.Errorf("node %d: %+v, %v", n.number, r, err)
		}
	}
	for s := range 8 {
		if held[s] < 2 { // the first node leaves shards once it was found equal with their hosts
			t.Errorf("shard %d is held by %d nodes", s, held[s])
		}
	}
}
