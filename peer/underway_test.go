package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// While a put of a node is under way, and no host holds it yet, the node's own write on a later record that has not seen the put is
// not sure: what another node writes over it would count the put as seen, and hosts would say then that they had it.
func TestConditionBesideAPutUnderWay(t *testing.T) {
	t.Parallel()
	for name, cluster := range map[string]func() (c *routedCluster, key string, asker *Namespace, hosts []int, first dbadapter.Version){
		"hash": func() (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
			c, first, asker, hosts := newBothCurrent(t)
			return c, "key", asker, hosts, first.Version
		},
		"writer": func() (*routedCluster, string, *Namespace, []int, dbadapter.Version) {
			c := newWriterCluster(t, 4)
			key, asker, hosts, first := c.onTwo()
			return c.routedCluster, key, asker, hosts, first.Version
		},
	} {
		for _, second := range []bool{false, true} { // of which the caller gives up
			t.Run(fmt.Sprintf("%s, a second put %t", name, second), func(t *testing.T) {
				c, key, asker, hosts, first := cluster()
				var other *Namespace
				for i, ns := range c.spaces {
					if ns != asker && i != hosts[0] && i != hosts[1] {
						other = ns
					}
				}
				other.node.routing.close()
				asked, released := make(chan struct{}, 16), make(chan struct{})
				for _, h := range hosts {
					c.hears(c.nodes[h], func(by ID, ask *wire.Ask) bool {
						if q, ok := ask.Question.(*wire.AskHold); ok && by == asker.node.ID() && !q.Look {
							asked <- struct{}{}
							<-released
						}
						return true
					})
				}
				asker.node.routing.close()
				type end struct {
					version dbadapter.Version
					err     error
				}
				done := make(chan end, 1)
				go func() {
					v, err := asker.Put(t.Context(), []byte(key), []byte("under way"), Acks(AckAll))
					done <- end{v, err}
				}()
				for range hosts {
					<-asked
				}
				if second {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					_, err := asker.Put(ctx, []byte(key), []byte("given up"), Acks(AckAll))
					if cancel(); !errors.Is(err, ErrUnconfirmed) {
						t.Fatal(err)
					}
				}
				c.now.Add(int64(10 * time.Millisecond))
				over, err := other.PutIf(t.Context(), []byte(key), []byte("over it"), first, Acks(AckAll))
				c.must(err)
				c.now.Add(int64(10 * time.Millisecond))
				if v, err := asker.PutIf(t.Context(), []byte(key), []byte("third"), over, Acks(AckAll)); !errors.Is(err, ErrUnsure) {
					t.Errorf("beside its put it writes %v over %v: %v", v, over, err)
				}
				close(released)
				put := <-done
				if c.must(put.err); second { // which may have come by now
					return
				}
				if _, err := asker.PutIf(t.Context(), []byte(key), []byte("third"), put.version, Acks(AckAll)); err != nil {
					t.Errorf("behind its put: %v", err)
				}
			})
		}
	}
}

// A batch on a condition follows a later record that all hosts hold, also where the node has remembered a write of its own since long
// that no host has taken.
func TestBatchBesideARememberedWrite(t *testing.T) {
	c, first, _, hosts := newBothCurrent(t)
	host, other := c.spaces[hosts[0]], c.spaces[hosts[1]]
	key := []byte("key")
	remote, err := host.core.Remote(key)
	c.must(err)
	lost, err := remote.Make(conditions("key", first.Version)["put"])
	c.must(err)
	if host.core.Note(remote, lost, nil, host.steady()) != nil {
		t.Fatal("it is not noted")
	}
	c.now.Add(int64(10 * time.Millisecond))
	over, err := other.PutIf(t.Context(), key, []byte("over it"), first.Version, Acks(AckAll))
	c.must(err)
	if err := host.Batch(t.Context(), func(b *Batch) error { b.PutIf(key, []byte("batch"), over); return nil }); err != nil {
		t.Errorf("over what all hosts hold: %v", err)
	}
}

// An item of an import that is done does not hold up conditions on its key, while the import waits for another item's hosts.
func TestConditionBesideAnImportThatWaits(t *testing.T) {
	c := newRoutedCluster(t, 4)
	near, others := c.hosts("key")
	ns, silent, waits := c.spaces[others[0]], -1, ""
	for i := 0; waits == ""; i++ {
		if i == 4000 {
			t.Skip("by the ids that were drawn one node hosts too little")
		}
		key := fmt.Sprint("waits ", i)
		if hosts, _ := c.hosts(key); ns.core.Home([]byte(key)) != ns.core.Home([]byte("key")) {
			for _, h := range hosts {
				if h != others[0] && !slices.Contains(near, h) {
					silent, waits = h, key
				}
			}
		}
	}
	release := c.silences(silent, ns)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := ns.Import(ctx, sequence([]Item{{Key: []byte("key"), Value: []byte("value")}, {Key: []byte(waits), Value: []byte("value")}}), Acks(AckAll))
		done <- err
	}()
	var held dbadapter.Version
	waitFor(t, "the first item is there", func() bool {
		record, err := ns.Get(t.Context(), []byte("key"))
		held = record.Version
		return err == nil
	})
	waitFor(t, "the condition is taken", func() bool {
		_, err := ns.PutIf(t.Context(), []byte("key"), []byte("behind"), held)
		return err == nil
	})
	select {
	case err := <-done:
		t.Fatalf("the import waits no more: %v", err)
	default:
	}
	cancel()
	<-done
	release()
}
