package peer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// A wait for a key ends once all hosts of its shard hold it, at whatever node it begins; the
// one that lacks it is given it, and the later version counts. A wait for everything is for
// the hosts of what the node holds.
func TestWaitShards(t *testing.T) {
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
	c := newRoutedClusterBy(t, placement.Prefix, 3, Config{NoPush: true})
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
