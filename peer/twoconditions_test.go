package peer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// delays has each host answer the first write of a node only once released; asked tells of each that waits.
func (c *routedCluster) delays(hosts []int, asker *Namespace) (asked <-chan struct{}, release func()) {
	came, released := make(chan struct{}, len(hosts)), make(chan struct{})
	for _, h := range hosts {
		first := true
		c.hears(c.nodes[h], func(by ID, ask *wire.Ask) bool {
			if q, ok := ask.Question.(*wire.AskHold); ok && by == asker.node.ID() && first && !q.Look {
				first = false
				came <- struct{}{}
				<-released
			}
			return true
		})
	}
	asker.node.routing.close()
	return came, func() { close(released) }
}

// lists reports whether a node lists a version as a conflict.
func (c *routedCluster) lists(v dbadapter.Version) bool {
	c.t.Helper()
	for _, ns := range c.spaces {
		for k, err := range ns.Conflicts(c.t.Context()) {
			if c.must(err); k.Record.Version == v {
				return true
			}
		}
	}
	return false
}

// A write on a condition that comes to its hosts late is refused, also where the node has written the key beside it
// meanwhile, without a condition: that write names it, although no host had taken it. So of two nodes that
// write on one version one is acknowledged.
func TestTwoConditionsBesideAWrite(t *testing.T) {
	t.Parallel()
	clusters := map[string]func() (c *routedCluster, key string, hosts []int, first dbadapter.Version){
		"hash": func() (*routedCluster, string, []int, dbadapter.Version) {
			c, first, _, hosts := newBothCurrent(t)
			return c, "key", hosts, first.Version
		},
		"writer": func() (*routedCluster, string, []int, dbadapter.Version) {
			c := newWriterCluster(t, 4)
			key, _, hosts, first := c.onTwo()
			return c.routedCluster, key, hosts, first.Version
		},
	}
	conditions := map[string]func(ns *Namespace, key string, on dbadapter.Version) error{
		"put": func(ns *Namespace, key string, on dbadapter.Version) error {
			_, err := ns.PutIf(t.Context(), []byte(key), []byte("one's"), on)
			return err
		},
		"delete": func(ns *Namespace, key string, on dbadapter.Version) error {
			_, err := ns.DeleteIf(t.Context(), []byte(key), on)
			return err
		},
	}
	writes := map[string]func(ns *Namespace, key string) error{
		"put": func(ns *Namespace, key string) error {
			_, err := ns.Put(t.Context(), []byte(key), []byte("beside"), Acks(AckAll))
			return err
		},
		"import": func(ns *Namespace, key string) error {
			_, err := ns.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("beside")}}))
			return err
		},
	}
	for kind, cluster := range clusters {
		for condition, on := range conditions {
			for beside, write := range writes {
				t.Run(kind+", "+condition+" beside "+beside, func(t *testing.T) {
					c, key, hosts, first := cluster()
					var askers []*Namespace
					for i, ns := range c.spaces {
						if !slices.Contains(hosts, i) {
							askers = append(askers, ns)
						}
					}
					one, two := askers[0], askers[1]
					two.node.routing.close()
					asked, release := c.delays(hosts, one)
					done := make(chan error, 1)
					go func() { done <- on(one, key, first) }()
					for range hosts { // the second one a second later
						<-asked
					}
					_, err := two.PutIf(t.Context(), []byte(key), []byte("two's"), first)
					c.must(err)
					c.must(write(one, key))
					release()
					if <-done == nil {
						t.Errorf("both nodes are told that they have written over %s", first)
					}
				})
			}
		}
	}
}

// A node's write on a later version that has not seen its own one of before waits until that is a conflict: what another
// node writes over the second one would count the first one as seen.
func TestConditionBesideTheOwnWrite(t *testing.T) {
	c, first, asker, hosts := newBothCurrent(t)
	_, others := c.hosts("key")
	other, key := c.spaces[others[1]], []byte("key")
	remote, err := other.core.Remote(key)
	c.must(err)
	near := c.firstOf(remote)
	far := hosts[0] + hosts[1] - near
	serve := c.silences(near, asker)
	own, err := asker.PutIf(t.Context(), key, []byte("own"), first.Version, Acks(1)) // at far
	c.must(err)
	serve()
	c.now.Add(int64(time.Second)) // the next version is the later one
	serve = c.silences(far, other)
	beside, err := other.PutIf(t.Context(), key, []byte("beside"), first.Version, Acks(1)) // at near
	c.must(err)
	serve()
	if _, err := asker.PutIf(t.Context(), key, []byte("over it"), beside, Acks(1)); err == nil || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("over a version that has not seen the node's own one, which a host holds: %v", err)
	}
	for range 3 {
		c.round()
	}
	over, err := asker.PutIf(t.Context(), key, []byte("over it"), beside, Acks(AckAll))
	c.must(err)
	_, err = other.PutIf(t.Context(), key, []byte("last"), over, Acks(AckAll))
	c.must(err)
	for range 3 {
		c.round()
	}
	if !c.lists(own) {
		t.Error("the node's own write was acknowledged, is held nowhere and listed nowhere")
	}
}

// So, too, where the node is a host and holds its own write itself: then it is heard of by no other host.
func TestConditionBesideWhatAHostHolds(t *testing.T) {
	t.Parallel()
	c, first, _, hosts := newBothCurrent(t)
	_, others := c.hosts("key")
	other, key := c.spaces[others[0]], []byte("key")
	remote, err := other.core.Remote(key)
	c.must(err)
	near := c.firstOf(remote)
	far := hosts[0] + hosts[1] - near
	host := c.spaces[far]
	c.now.Add(int64(6 * time.Second))
	c.current(near, far, "key") // it alone
	own, err := host.PutIf(t.Context(), key, []byte("own"), first.Version, Acks(1))
	c.must(err)
	c.now.Add(int64(10 * time.Millisecond))
	serve := c.silences(far, other)
	beside, err := other.PutIf(t.Context(), key, []byte("beside"), first.Version, Acks(1))
	c.must(err)
	serve()
	if _, err := host.PutIf(t.Context(), key, []byte("over it"), beside); err == nil || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("over a version that has not seen what the host holds of its own: %v", err)
	}
	for range 3 {
		c.round()
	}
	if !c.lists(own) {
		t.Error("the host's own write was acknowledged, is held nowhere and listed nowhere")
	}
}
