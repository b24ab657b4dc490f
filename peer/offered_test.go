package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// write writes at one host alone: nothing is pushed or synced.
func (c *routedCluster) write(i int, key, value string) dbadapter.Version {
	c.t.Helper()
	d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}}
	v, err := c.spaces[i].commitTo(c.t.Context(), "put", d.Record.Key, func() (*shard, error) { return c.spaces[i].shardOf(d.Record.Key) },
		func(set *node.Set) (*node.Attempt, error) { return set.Write(d) })
	c.must(err)
	return v
}

// current makes a host of a key one that is sure of it, and gives its set.
func (c *routedCluster) current(host, other int, key string) *node.Set {
	c.t.Helper()
	sh, err := c.spaces[host].shardOf([]byte(key))
	c.must(err)
	_, err = sh.sync(c.t.Context(), c.nodes[other].ID(), SyncOptions{})
	c.must(err)
	return sh.set
}

// nearest has a node ask one of a key's hosts first.
func (c *routedCluster) nearest(asker *Namespace, near, far int) {
	r := &asker.node.routing
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = route.Times{}
	for range 10 {
		r.times.Took(node.ID(c.nodes[near].ID()), time.Millisecond, asker.node.elapsed())
		r.times.Took(node.ID(c.nodes[far].ID()), 5*time.Second, asker.node.elapsed())
	}
}

// firstOf is the first host of a key, by the layout.
func (c *routedCluster) firstOf(remote *node.Remote) int {
	hosts, err := remote.Hosts()
	c.must(err)
	return slices.IndexFunc(c.nodes, func(n *Node) bool { return node.ID(n.ID()) == hosts[0] })
}

// A write on a condition that one host takes, and that another one cannot take because of a
// version which came in between, is not known to have been refused: its writer is told that.
func TestRoutedConditionHeldAtOneHost(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(ns *Namespace, held dbadapter.Version) (dbadapter.Version, error){
		"put": func(ns *Namespace, held dbadapter.Version) (dbadapter.Version, error) {
			return ns.PutIf(t.Context(), []byte("key"), []byte("mine"), held, Acks(AckAll))
		},
		"delete": func(ns *Namespace, _ dbadapter.Version) (dbadapter.Version, error) {
			return ns.Delete(t.Context(), []byte("key"), Acks(AckAll))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 5)
			done, err := c.put(0, "key", "v1", route.All)
			c.must(err)
			hosts, others := c.hosts("key")
			for by, i := range map[string]int{"another node": others[0], "the host itself": hosts[0]} {
				asker := c.spaces[i]
				set := c.current(hosts[0], hosts[1], "key")
				c.write(hosts[1], "key", "v2 of "+by)
				c.nearest(asker, hosts[0], hosts[1])
				v, err := write(asker, done.Version)
				if !set.Current() {
					t.Skip("this machine is so slow that the host was not sure meanwhile: it asks the other one then")
				}
				held := c.held(hosts[0], "key")
				switch remote := asker.core.Remote([]byte("key")); {
				case name == "put" && c.firstOf(remote) == hosts[1]: // no other host is asked then
					if !errors.Is(err, ErrConflict) || held.Version != done.Version {
						t.Errorf("%s: %v, and %s is held", by, err, held.Version)
					}
				case !errors.Is(err, ErrUnconfirmed) || errors.Is(err, ErrConflict) || errors.Is(err, ErrDeleted):
					t.Errorf("%s: %v", by, err)
				case held.Version != v:
					t.Errorf("%s: told version %s, and %s is held", by, v, held.Version)
				}
				// The next one begins with hosts that hold one version.
				done, err = c.put(others[1], "key", "next", route.All)
				c.must(err)
			}
		})
	}
}

// A host's own write, for which it asks all hosts, goes over what another one holds.
func TestRoutedWriteAtAHostIsOvertaken(t *testing.T) {
	c := newRoutedCluster(t, 4)
	_, err := c.put(0, "key", "v1", route.All)
	c.must(err)
	hosts, _ := c.hosts("key")
	c.write(hosts[1], "key", "v2")
	v, err := c.spaces[hosts[0]].Put(t.Context(), []byte("key"), []byte("mine"), Acks(AckAll))
	for _, i := range hosts {
		if held := c.held(i, "key"); err != nil || string(held.Value) != "mine" || held.Version != v {
			t.Errorf("host %d holds %q of %s after %v of %s", i, held.Value, held.Version, err, v)
		}
	}
	for i, ns := range c.spaces {
		for _, sh := range ns.shards() {
			if n := sh.set.Store.KeptCount(dbadapter.KeptConflict); n != 0 {
				t.Errorf("node %d keeps %d conflicts", i, n)
			}
		}
	}
}

// A host that may lack records asks one that is sure before it writes on a condition.
func TestRoutedConditionAtAnUnsettledHost(t *testing.T) {
	c := newRoutedCluster(t, 4)
	hosts, _ := c.hosts("key")
	held := c.write(hosts[1], "key", "v1")
	ns := c.spaces[hosts[0]]
	c.must(ns.core.MayLack())
	if _, err := ns.PutIf(t.Context(), []byte("key"), []byte("mine"), dbadapter.Version{}); !errors.Is(err, ErrConflict) {
		t.Errorf("on the condition that the key is free: %v", err)
	}
	if r := c.held(hosts[0], "key"); r != nil {
		t.Errorf("it is written: %q", r.Value)
	}
	v, err := ns.PutIf(t.Context(), []byte("key"), []byte("mine"), held, Acks(AckAll))
	for _, i := range hosts {
		if r := c.held(i, "key"); err != nil || r == nil || r.Version != v {
			t.Errorf("on what the other host holds: host %d holds %+v, %v", i, r, err)
		}
	}
	other := "other"
	for ns.core.Home([]byte(other)) != ns.core.Home([]byte("key")) {
		other += "."
	}
	c.write(hosts[1], other, "v1")
	if _, err := ns.Delete(t.Context(), []byte(other), Acks(AckAll)); err != nil || !c.held(hosts[1], other).Deleted {
		t.Errorf("what the other host holds is deleted: %v", err)
	}
	if _, err := ns.Delete(t.Context(), []byte(other)); !errors.Is(err, ErrDeleted) {
		t.Errorf("to delete it once more: %v", err)
	}
}

// A host that is removed is missing from all of them until the next layout names another.
func TestRoutedAllAfterARemoval(t *testing.T) {
	c := newRoutedCluster(t, 4)
	key := "key"
	for c.first(key) == 0 {
		key += "."
	}
	c.must(c.spaces[0].Remove(t.Context(), c.nodes[c.first(key)].ID()))
	if _, err := c.spaces[0].Put(t.Context(), []byte(key), []byte("v"), Acks(AckAll)); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("acknowledged by all: %v", err)
	}
	if _, err := c.spaces[0].Put(t.Context(), []byte(key), []byte("v")); err != nil {
		t.Errorf("acknowledged by one: %v", err)
	}
}

// Writes that other hosts have acknowledged do not pile up before a host that says nothing.
func TestRoutedWritesBehindASilentHost(t *testing.T) {
	c := newRoutedCluster(t, 4)
	hosts, others := c.hosts("key")
	asker, silent := c.spaces[others[0]], c.nodes[hosts[0]]
	silent.host.SetStreamHandler(routeProtocol, func(s network.Stream) { _, _ = io.Copy(io.Discard, s) })
	asker.node.routing.close() // streams of before
	before := runtime.NumGoroutine()
	number, key := asker.core.Home([]byte("key")), 0
	for written := 0; written < 2*routeLeft; key++ {
		name := fmt.Append(nil, "key ", key)
		if asker.core.Home(name) != number {
			continue
		}
		if _, err := asker.Put(t.Context(), name, []byte("v")); err != nil {
			t.Fatal(err)
		}
		written++
	}
	if n := runtime.NumGoroutine() - before; n > routeLeft+routeLeft/2 {
		t.Errorf("%d goroutines more after %d writes", n, 2*routeLeft)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := asker.Put(ctx, []byte("key"), []byte("v"), Acks(AckAll)); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("acknowledged by all: %v", err)
	}
}

// A write on what another host holds, at a host that holds something else, leaves that as a conflict: it was
// acknowledged, and neither the other host's writer nor this one has seen it. The hosts hold the write then.
func TestRoutedConditionAtAHostThatHoldsAnother(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(ns *Namespace, held dbadapter.Version) error{
		"put": func(ns *Namespace, held dbadapter.Version) error {
			_, err := ns.PutIf(t.Context(), []byte("key"), []byte("mine"), held, Acks(1))
			return err
		},
		"delete if": func(ns *Namespace, held dbadapter.Version) error {
			_, err := ns.DeleteIf(t.Context(), []byte("key"), held, Acks(1))
			return err
		},
		"delete": func(ns *Namespace, _ dbadapter.Version) error {
			_, err := ns.Delete(t.Context(), []byte("key"), Acks(AckAll))
			return err
		},
		"batch": func(ns *Namespace, held dbadapter.Version) error {
			return ns.Batch(t.Context(), func(b *Batch) error { b.PutIf([]byte("key"), []byte("mine"), held); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			_, err := c.put(0, "key", "first", route.All)
			c.must(err)
			hosts, _ := c.hosts("key")
			c.write(hosts[0], "key", "unseen")
			c.now.Add(int64(time.Second))
			seen := c.write(hosts[1], "key", "seen")
			c.now.Add(int64(time.Minute)) // the first host is sure of nothing
			c.must(write(c.spaces[hosts[0]], seen))
			for range 3 {
				c.round()
			}
			for _, host := range hosts {
				r := c.held(host, "key")
				if gone := r == nil || r.Deleted; gone != strings.HasPrefix(name, "delete") || !gone && string(r.Value) != "mine" {
					t.Errorf("host %d holds %+v", host, r)
				}
			}
			if n := c.conflicts(); n != 1 {
				t.Errorf("%d conflicts, want one", n)
			}
		})
	}
}
