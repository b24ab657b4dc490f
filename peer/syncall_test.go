package peer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
)

// A sync of several shards is verified only if the peer holds each of them. A sync of the list of
// members alone is not verified, and a dry run syncs nothing.
func TestSyncAllProvesWhatItCompares(t *testing.T) {
	c := newShardCluster(t, 2, Config{NoPush: true})
	c.settle(0, 1)
	ns, other := c.spaces[0], c.spaces[1]
	if r, err := ns.Sync(t.Context(), c.nodes[1].ID(), SyncOptions{}); err != nil || !r.Verified {
		t.Fatalf("both hold all: %+v, %v", r, err)
	}
	for _, sh := range other.shards() {
		if sh.set.Shard() == 3 {
			sh.end() // it answers for this one no longer
		}
	}
	if r, err := ns.Sync(t.Context(), c.nodes[1].ID(), SyncOptions{}); !errors.Is(err, ErrNotVerified) || r.Verified {
		t.Errorf("the peer does not hold a shard: verified %t, %v", r.Verified, err)
	}
	if r, err := ns.Diff(t.Context(), c.nodes[1].ID(), SyncOptions{}); !errors.Is(err, ErrBusy) || r.Verified {
		t.Errorf("the peer does not hold a shard: a diff is verified %t, %v", r.Verified, err)
	}

	c.join() // holds no shard before the next layout
	if n := len(c.spaces[2].shards()); n != 0 {
		t.Fatalf("the newcomer holds %d shards", n)
	}
	if r, err := c.spaces[2].Sync(t.Context(), c.nodes[0].ID(), SyncOptions{}); err != nil && !errors.Is(err, ErrRejected) || r.Verified || !r.MembersOnly {
		t.Errorf("no shard is shared: verified %t, members only %t, %v", r.Verified, r.MembersOnly, err)
	}
	before := c.spaces[2].core.Members().Digest()
	must(t, ns.SetRole(t.Context(), c.nodes[1].ID(), RoleAdmin))
	if r, err := c.spaces[2].Diff(t.Context(), c.nodes[0].ID(), SyncOptions{}); !errors.Is(err, ErrInvalid) || r.Verified {
		t.Errorf("no shard is shared: a diff is verified %t, %v", r.Verified, err)
	}
	if c.spaces[2].core.Members().Digest() != before {
		t.Error("a diff has changed the list of members")
	}
}

// A sync is not verified while a shard that both are to hold is still to be taken here.
func TestSyncAllCountsShardsToTake(t *testing.T) {
	c := newShardCluster(t, 3, Config{NoPush: true})
	c.settle(0, 1, 2)
	for range 20 { // which shards a node holds follows from its id: the first one is to lack some
		if len(c.numbers(0)) < c.spaces[0].core.Rule().Shards {
			break
		}
		c = newShardCluster(t, 3, Config{NoPush: true})
		c.settle(0, 1, 2)
	}
	ns := c.spaces[0]
	c.nodes[0].changing.Lock() // it takes no shard
	defer c.nodes[0].changing.Unlock()
	must(t, ns.ForceRemove(t.Context(), c.nodes[2].ID()))
	for range 10 {
		if take, _ := ns.core.Moves(); len(take) > 0 {
			break
		}
		must(t, errOf(ns.core.Tend(t.Context())))
		c.now.Add(int64(time.Minute))
	}
	if take, _ := ns.core.Moves(); len(take) == 0 || len(take) == ns.core.Rule().Shards {
		t.Fatalf("to be taken are %v", take)
	}
	if r, err := ns.Sync(t.Context(), c.nodes[1].ID(), SyncOptions{}); !errors.Is(err, ErrNotVerified) || r.Verified {
		t.Errorf("verified %t, %v", r.Verified, err)
	}
	if r, err := ns.Diff(t.Context(), c.nodes[1].ID(), SyncOptions{}); !errors.Is(err, ErrBusy) || r.Verified {
		t.Errorf("a diff is verified %t, %v", r.Verified, err)
	}
}

// A member that has not taken a shard yet is not said to know nothing of this node: the sync is not verified, and may be
// tried again.
func TestSyncAllWithAMemberThatHasTakenNothing(t *testing.T) {
	c := newShardCluster(t, 2, Config{NoPush: true})
	c.settle(0, 1)
	c.join()
	ns, newest := c.spaces[0], c.nodes[2]
	newest.changing.Lock() // it takes no shard
	defer newest.changing.Unlock()
	c.must(ns.ForceRemove(t.Context(), c.nodes[1].ID()))
	for range 20 {
		if layout, _, err := ns.core.Layout(); err == nil && layout.Has(0, node.ID(newest.ID())) && !layout.Has(0, node.ID(c.nodes[1].ID())) {
			break
		}
		_, err := ns.core.Tend(t.Context())
		c.must(err)
		c.now.Add(int64(time.Minute))
	}
	r, err := ns.Sync(t.Context(), newest.ID(), SyncOptions{})
	if !errors.Is(err, ErrNotVerified) || errors.Is(err, ErrDenied) || r.Verified || !strings.Contains(err.Error(), "does not hold yet") {
		t.Errorf("verified %t, %v", r.Verified, err)
	}
	if r, err := ns.Diff(t.Context(), newest.ID(), SyncOptions{}); !errors.Is(err, ErrBusy) || errors.Is(err, ErrDenied) || r.Verified {
		t.Errorf("a diff is verified %t, %v", r.Verified, err)
	}
}

// A node syncs a shard with a member that is to hold it once that says that it does: no
// member is asked for what it does not hold yet.
func TestNoSyncBeforeTheShardIsThere(t *testing.T) {
	c := newRoutedCluster(t, 5)
	for i, metrics := range c.metrics[1:] { // the first one drops shards, which others may not have heard yet
		if n := metricOf(t, metrics, "syncd_refusals_total", "denied"); n != 0 {
			t.Errorf("node %d has denied %v syncs", i+1, n)
		}
	}
}
