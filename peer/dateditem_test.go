package peer

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A write on a condition is not acknowledged in the place of an item with a date that all hosts have acknowledged since the
// condition was looked up: a record with a date is no conflict where it is replaced, and would be gone.
func TestConditionOverADatedItem(t *testing.T) {
	t.Parallel()
	hash := func(t *testing.T) (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
		c, first, asker, hosts := newBothCurrent(t)
		return c, "key", asker, hosts, first.Version
	}
	for name, begin := range map[string]func(t *testing.T) (c *routedCluster, key string, asker *Namespace, hosts []int, first dbadapter.Version){
		"hash": hash,
		"hash, the key is free": func(t *testing.T) (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
			c, _, asker, hosts, _ := hash(t)
			return c, c.beside(asker, "key"), asker, hosts, dbadapter.Version{}
		},
		"writer": func(t *testing.T) (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
			c := newWriterCluster(t, 4)
			key, asker, hosts, first := c.onTwo()
			return c.routedCluster, key, asker, hosts, first.Version
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, key, asker, hosts, first := begin(t)
			var other *Namespace
			for i, ns := range c.spaces {
				if ns != asker && i != hosts[0] && i != hosts[1] {
					other = ns
				}
			}
			date := c.nodes[0].now().Add(20 * time.Millisecond) // behind the first version, before that of the condition
			c.now.Add(int64(50 * time.Millisecond))
			came, released := make(chan struct{}, 64), make(chan struct{})
			for _, h := range hosts {
				c.hears(c.nodes[h], func(by ID, ask *wire.Ask) bool {
					if q, ok := ask.Question.(*wire.AskHold); ok && by == asker.node.ID() && !q.Look {
						came <- struct{}{}
						<-released
					}
					return true
				})
			}
			asker.node.routing.close()
			ended := make(chan error, 1)
			go func() {
				_, err := asker.PutIf(t.Context(), []byte(key), []byte("on the condition"), first)
				ended <- err
			}()
			<-came
			c.now.Add(int64(50 * time.Millisecond))
			_, err := other.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("dated"), Time: date}}), Acks(AckAll))
			c.must(err)
			close(released)
			if err := <-ended; !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnconfirmed) {
				t.Errorf("the write on a condition: %v", err)
			}
		})
	}
}

// A record on a condition that is a dated record takes its place, and that of an earlier one.
func TestConditionOnADatedItem(t *testing.T) {
	c, _, asker, hosts := newBothCurrent(t)
	date := c.nodes[0].now().Add(20 * time.Millisecond)
	c.now.Add(int64(time.Second))
	for _, value := range []string{"dated", "later"} {
		_, err := asker.Import(t.Context(), sequence([]Item{{Key: []byte("key"), Value: []byte(value), Time: date}}), Acks(AckAll))
		c.must(err)
		date = date.Add(20 * time.Millisecond)
	}
	_, err := asker.PutIf(t.Context(), []byte("key"), []byte("next"), c.held(hosts[0], "key").Version)
	c.must(err)
}

// Nor where a sync brings the write to a host that has acknowledged such an item, before that host is asked.
func TestConditionComesOverADatedItem(t *testing.T) {
	t.Parallel()
	c, first, asker, hosts := newBothCurrent(t)
	key := []byte("key")
	remote, err := asker.core.Remote(key)
	c.must(err)
	a := c.firstOf(remote)
	b := hosts[0] + hosts[1] - a
	date := c.nodes[0].now().Add(20 * time.Millisecond).Truncate(time.Millisecond)
	c.now.Add(int64(50 * time.Millisecond))
	other := c.spaces[slices.IndexFunc(c.spaces, func(ns *Namespace) bool {
		return ns != asker && ns != c.spaces[a] && ns != c.spaces[b]
	})]
	var atA, atB sync.Once
	c.hears(c.nodes[a], func(by ID, ask *wire.Ask) bool {
		if q, ok := ask.Question.(*wire.AskHold); ok && by == asker.node.ID() && !q.Look {
			atA.Do(func() {
				at := other.core.RemoteIn(key, remote.Shard())
				made, err := at.MakeAll([]*node.Item{{Key: key, Value: []byte("dated"), Time: date}}, [][]*dbadapter.Record{nil})
				if err != nil {
					t.Error(err)
					return
				}
				if o, _, err := other.offerTo(t.Context(), at, c.nodes[b].ID(), &made[0], route.Manner{Insists: true}); err != nil || !o.Held {
					t.Errorf("the dated item at the second host: %+v, %v", o, err)
				}
			})
		}
		return true
	})
	c.hears(c.nodes[b], func(by ID, ask *wire.Ask) bool {
		if q, ok := ask.Question.(*wire.AskHold); ok && by == asker.node.ID() && !q.Look {
			atB.Do(func() {
				sh, err := c.spaces[b].shardOf(key)
				if err == nil {
					_, err = sh.sync(t.Context(), c.nodes[a].ID(), SyncOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		return true
	})
	asker.node.routing.close()
	if _, err := asker.PutIf(t.Context(), key, []byte("on the condition"), first.Version); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("over an item that is gone: %v", err)
	}
}
