package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A wait for a key ends once all hosts of its shard hold it, at whatever node it begins; the
// one that lacks it is given it, and the later version counts. A wait for everything is for
// the hosts of what the node holds.
func TestWaitShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	hosts, others := c.hosts("key")
	old := c.write(hosts[0], "key", "old")
	v := c.write(hosts[0], "key", "value")
	asker := c.spaces[others[0]]
	for _, version := range []dbadapter.Version{old, v, {}} {
		got, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("key"), Version: version})
		if err != nil || len(got.Held) != 2 || len(got.Missing) != 0 {
			t.Fatalf("%s: %+v, %v", version, got, err)
		}
	}
	if r := c.held(hosts[1], "key"); r == nil || r.Version != v {
		t.Fatalf("the other host holds %+v", r)
	}
	if got, err := c.spaces[hosts[1]].WaitFor(t.Context(), []byte("key"), v, 1); err != nil || len(got.Held) != 1 {
		t.Errorf("at a host: %+v, %v", got, err)
	}
	if _, err := asker.WaitFor(t.Context(), []byte("key"), v, 3); !errors.Is(err, ErrInvalid) {
		t.Errorf("for three of two hosts: %v", err)
	}
	if err := errors.Join(asker.MayWait([]byte("key"), 2), c.spaces[hosts[0]].MayWait([]byte("key"), 1)); err != nil {
		t.Error(err)
	}
	if err := c.spaces[hosts[0]].MayWait([]byte("key"), 2); !errors.Is(err, ErrInvalid) {
		t.Errorf("a host waits for two others: %v", err)
	}
	if _, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("key"), Peers: []ID{c.nodes[others[1]].ID()}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("for one that is no host: %v", err)
	}
	if _, err := asker.Wait(t.Context(), WaitOptions{Key: []byte("none")}); !errors.Is(err, ErrNotFound) {
		t.Errorf("for nothing: %v", err)
	}
	c.write(hosts[0], "key", "third")
	if got, err := c.spaces[hosts[0]].Wait(t.Context(), WaitOptions{}); err != nil || len(got.Held) == 0 || len(got.Missing) != 0 {
		t.Errorf("for everything: %+v, %v", got, err)
	}
	if r := c.held(hosts[1], "key"); r == nil || string(r.Value) != "third" {
		t.Errorf("the other host holds %+v", r)
	}
	v = c.write(hosts[0], "key", "fourth")
	c.must(c.nodes[hosts[1]].Close(context.Background()))
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := asker.WaitFor(soon, []byte("key"), v, 2)
	if !errors.Is(err, ErrUnconfirmed) || len(got.Held) > 1 || len(got.Missing) == 0 {
		t.Errorf("a host is away: %+v, %v", got, err)
	}
}

// By placement prefix, too.
func TestWaitShardsByPrefix(t *testing.T) {
	c := newClusterOf(t, placement.Prefix, 3, Config{NoPush: true})
	hosts, others := c.hosts("key")
	v := c.write(hosts[0], "key", "value")
	if got, err := c.spaces[others[0]].WaitFor(t.Context(), []byte("key"), v, 2); err != nil || len(got.Held) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	items := shardItems(0, 50, "v")
	if got, err := c.spaces[others[0]].Import(t.Context(), sequence(items), Acks(AckAll)); err != nil || got.Items != 50 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A wait for fewer hosts than there are lists as holders those that have said so, and no
// host that is away.
func TestWaitShardsForSome(t *testing.T) {
	c := &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}
	c.kind, c.replicas = placement.Hash, 3
	for range 3 {
		c.join()
	}
	c.settle(0, 1, 2)
	c.write(0, "key", "value")
	c.must(c.nodes[2].Close(context.Background()))
	got, err := c.spaces[0].Wait(t.Context(), WaitOptions{Count: 1})
	if err != nil || len(got.Held) != 1 || got.Held[0] != c.nodes[1].ID() || len(got.Missing) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A host that is removed counts as missing until the next layout names another.
func TestWaitShardsAfterARemoval(t *testing.T) {
	c := newRoutedCluster(t, 2)
	c.write(0, "key", "value")
	c.must(c.spaces[0].Remove(t.Context(), c.nodes[1].ID()))
	if got, err := c.spaces[0].Wait(t.Context(), WaitOptions{Key: []byte("key")}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A wait ends with its context, also while a host keeps still that was given the record.
func TestWaitShardsEndsInTime(t *testing.T) {
	c := newRoutedCluster(t, 3)
	hosts, _ := c.hosts("key")
	c.write(hosts[0], "key", "value")
	asker := c.spaces[hosts[0]]
	c.lies(c.nodes[hosts[1]], asker, func(ask *wire.Ask) wire.Answering {
		if _, ok := ask.Question.(*wire.AskRecord); ok {
			return &wire.RecordAnswer{Settled: true}
		}
		return nil
	})
	asker.node.routing.close() // streams of before
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begun := time.Now()
	if got, err := asker.Wait(soon, WaitOptions{Key: []byte("key")}); !errors.Is(err, ErrUnconfirmed) || time.Since(begun) > 5*time.Second {
		t.Errorf("after %s: %+v, %v", time.Since(begun), got, err)
	}
}
