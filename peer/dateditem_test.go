package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
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
