package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// serves has a host answer as usual.
func (c *shardCluster) serves(n *Node) {
	n.host.SetStreamHandler(routeProtocol, n.serving(n.serveRoute))
}

// silences has a host answer a node nothing that it asks, until it serves again.
func (c *routedCluster) silences(host int, asker *Namespace) (serve func()) {
	n := c.nodes[host]
	asked := make(chan struct{}, 1)
	c.lies(n, asker, func(*wire.Ask) wire.Answering {
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil
	})
	asker.node.routing.close()
	return func() {
		c.t.Helper()
		select {
		case <-asked: // what is on its way would be answered else
		case <-time.After(5 * time.Minute):
			c.t.Fatalf("node %d has asked host %d nothing", slices.Index(c.spaces, asker), host)
		}
		c.serves(n)
		asker.node.routing.close()
	}
}

// newBothCurrent is a cluster in which both hosts of a key hold it and are current; asker is none.
func newBothCurrent(t *testing.T) (c *routedCluster, first offered, asker *Namespace, hosts []int) {
	c = newRoutedCluster(t, 4)
	first, err := c.put(0, "key", "first", route.All)
	c.must(err)
	hosts, others := c.hosts("key")
	c.current(hosts[0], hosts[1], "key")
	c.current(hosts[1], hosts[0], "key")
	return c, first, c.spaces[others[0]], hosts
}

// A write of a node on a version that the node itself has replaced is refused, also where it asks a host that is current
// and has not heard of that yet: the first write is acknowledged, and no later one counts it as seen.
func TestRoutedConditionBehindTheOwnWrite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"put", "delete"} {
		t.Run(name, func(t *testing.T) {
			c, first, asker, hosts := newBothCurrent(t)
			serve := c.silences(hosts[0], asker)
			_, err := asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version, Acks(1))
			c.must(err)
			serve()
			serve = c.silences(hosts[1], asker)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done, err := asker.offerInTurn(ctx, conditions("key", first.Version)[name], false)
			if err == nil || errors.Is(err, ErrUnconfirmed) {
				t.Fatalf("on the version that was replaced: %v, %v", done.Version, err)
			}
			serve()
			if _, err := asker.offerInTurn(t.Context(), conditions("key", first.Version)[name], false); !errors.Is(err, ErrConflict) {
				t.Errorf("where the host that has acknowledged the first write answers: %v", err)
			}
			for range 3 {
				c.round()
			}
			for _, host := range hosts {
				if got := string(c.held(host, "key").Value); got != "second" {
					t.Errorf("host %d holds %q", host, got)
				}
			}
		})
	}
}

// A put, or a deletion, of a node right after its put on a condition has seen that: it is no conflict where the host that
// takes it has not heard of the first one.
func TestRoutedPutAfterTheOwnCondition(t *testing.T) {
	c := newRoutedCluster(t, 4)
	first, err := c.put(0, "key", "first", route.All)
	c.must(err)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	serve := c.silences(hosts[1], asker)
	_, err = asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version, Acks(1))
	c.must(err)
	serve()
	serve = c.silences(hosts[0], asker)
	for _, value := range []string{"third", "fourth"} { // the second put names what the first one did
		_, err = asker.Put(t.Context(), []byte("key"), []byte(value))
		c.must(err)
	}
	serve()
	for range 3 {
		c.round()
	}
	for _, host := range hosts {
		if got := string(c.held(host, "key").Value); got != "fourth" {
			t.Errorf("host %d holds %q", host, got)
		}
	}
	if n := c.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// A node reads what it has just written, also where the host that it asks is current and has not heard of that.
func TestReadsItsOwnWrites(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		c, _, asker, hosts := newBothCurrent(t)
		serve := c.silences(hosts[0], asker)
		var err error
		if deletes {
			_, err = asker.Delete(t.Context(), []byte("key"))
		} else {
			_, err = asker.Put(t.Context(), []byte("key"), []byte("second"))
		}
		c.must(err)
		serve()
		c.nearest(asker, hosts[0], hosts[1])
		if got, err := asker.Get(t.Context(), []byte("key")); deletes && !errors.Is(err, ErrDeleted) || !deletes && (err != nil || string(got.Value) != "second") {
			t.Errorf("deletes %t: it reads %q, %v", deletes, got.Value, err)
		}
	}
}

// Where the host that has taken a node's own write answers no more, and the other one is current and has not heard of it, the
// node reads neither the value before nor *no such key* surely.
func TestReadsItsOwnWriteUnsurely(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"put", "delete", "first put"} {
		t.Run(name, func(t *testing.T) {
			c, _, asker, hosts := newBothCurrent(t)
			key := "key"
			if name == "first put" {
				key = c.beside(asker, key)
			}
			serve := c.silences(hosts[0], asker)
			var err error
			if name == "delete" {
				_, err = asker.Delete(t.Context(), []byte(key))
			} else {
				_, err = asker.Put(t.Context(), []byte(key), []byte("second"))
			}
			c.must(err)
			serve()
			c.silences(hosts[1], asker)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if got, err := asker.Get(ctx, []byte(key)); err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrDeleted) {
				t.Errorf("it reads %q, %v", got.Value, err)
			}
		})
	}
}

// beside is another key of the shard of a key.
func (c *routedCluster) beside(ns *Namespace, key string) string {
	for i := 0; ; i++ {
		if other := fmt.Sprint("beside ", i); ns.core.Home([]byte(other)) == ns.core.Home([]byte(key)) {
			return other
		}
	}
}

// A node that wrote just before it was started again, so that it does not remember, replaces nothing on a version that it has itself
// replaced: a condition is looked up at all hosts then.
func TestConditionAfterARestart(t *testing.T) {
	t.Parallel()
	c, first, asker, hosts := newBothCurrent(t)
	_, others := c.hosts("key")
	serve := c.silences(hosts[0], asker)
	_, err := asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version, Acks(1))
	c.must(err)
	serve()
	c.metrics[others[0]] = prometheus.NewRegistry()
	c.config[others[0]].Registerer = c.metrics[others[0]]
	c.reopen(others[0])
	asker = c.spaces[others[0]]
	serve = c.silences(hosts[1], asker)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := asker.PutIf(ctx, []byte("key"), []byte("third"), first.Version, Acks(1)); err == nil || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("where the host that has the write does not answer: %v", err)
	}
	serve()
	if _, err := asker.PutIf(t.Context(), []byte("key"), []byte("third"), first.Version, Acks(1)); !errors.Is(err, ErrConflict) {
		t.Errorf("where it does: %v", err)
	}
}

// While a host is away that may have acknowledged what the other one lacks, a write on a condition is refused, at each node: a
// version that is not sure meets none.
func TestConditionWhileAHostIsAway(t *testing.T) {
	c, first, asker, hosts := newBothCurrent(t)
	serve := c.silences(hosts[0], asker)
	_, err := asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version, Acks(1))
	c.must(err)
	serve()
	c.must(c.nodes[hosts[1]].Close(context.Background()))
	c.now.Add(int64(time.Minute))
	for i, ns := range c.spaces {
		if i == hosts[1] {
			continue
		}
		for name := range conditions("key", first.Version) {
			if _, err := ns.offerInTurn(t.Context(), conditions("key", first.Version)[name], false); !errors.Is(err, ErrUnsure) {
				t.Errorf("node %d: %s on the version before: %v", i, name, err)
			}
		}
		err := ns.Batch(t.Context(), func(b *Batch) error { b.PutIf([]byte("key"), nil, first.Version); return nil })
		if i == hosts[0] && !errors.Is(err, ErrUnsure) {
			t.Errorf("a batch: %v", err)
		}
	}
	if _, err := asker.Put(t.Context(), []byte("key"), []byte("third")); err != nil {
		t.Errorf("without a condition: %v", err)
	}
}

// Of two nodes that write on one version, each at another host, none is acknowledged, unless it asks for one host alone.
func TestConditionByAMajority(t *testing.T) {
	t.Parallel()
	c, first, _, hosts := newBothCurrent(t)
	for i, host := range hosts {
		_, others := c.hosts("key")
		asker := c.spaces[others[i]]
		serve := c.silences(host, asker)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := asker.PutIf(ctx, []byte("key"), []byte("mine"), first.Version); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("by one host of two: %v", err)
		}
		serve()
	}
}

// A put that is acknowledged between the look-up of a condition and its record has the key looked up anew.
func TestConditionOverAPutElsewhere(t *testing.T) {
	c, first, asker, hosts := newBothCurrent(t)
	o := asker.core.Offer(conditions("key", first.Version)["put"], false, 1, asker.steady)
	looked := 0
	for o.Next() != node.OfferOver {
		switch o.Next() {
		case node.OfferLookUp:
			found, err := asker.lookUpUntil(t.Context(), asker.node.deadline(t.Context()), o.Remote().Shard(), []byte("key"), o.All())
			if looked++; looked == 1 {
				serve := c.silences(hosts[0], asker)
				_, err := asker.Put(t.Context(), []byte("key"), []byte("beside"))
				c.must(err)
				serve()
			}
			o.LookedUp(found, err)
		case node.OfferHand:
			written, err := asker.handOffered(t.Context(), o)
			o.Handed(written, err, false)
		default:
			t.Fatalf("step %d", o.Next())
		}
	}
	if _, err := o.Result(); !errors.Is(err, ErrConflict) || looked < 2 {
		t.Errorf("after %d look-ups: %v", looked, err)
	}
}

// Where writes were given up for want of room, each host must have answered: else a read is not sure, and no condition holds.
func TestOwnWritesGivenUp(t *testing.T) {
	t.Parallel()
	c, first, asker, hosts := newBothCurrent(t)
	serve := c.silences(hosts[0], asker)
	_, err := asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version, Acks(1))
	c.must(err)
	serve()
	remote, err := asker.core.Remote([]byte("key"))
	c.must(err)
	for i := range node.MaxOwnWrites + 1 { // all hosts may have been heard to hold the first one by now
		asker.core.Note(remote, &dbadapter.Record{Key: fmt.Append(nil, i), Version: dbadapter.Version{Clock: 1, Writer: 1}}, nil, asker.steady())
	}
	c.nearest(asker, hosts[0], hosts[1])
	if got, err := asker.Get(t.Context(), []byte("key")); err != nil || string(got.Value) != "second" {
		t.Errorf("it reads %q, %v", got.Value, err)
	}
	c.silences(hosts[1], asker)
	if got, err := asker.Get(t.Context(), []byte("key")); !errors.Is(err, ErrUnsure) {
		t.Errorf("where a host does not answer it reads %q, %v", got.Value, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := asker.PutIf(ctx, []byte("key"), []byte("third"), first.Version, Acks(1)); err == nil || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("and writes on the version before: %v", err)
	}
}

// A wait for what a key holds is for the node's own last write, also where the host that is asked has not heard of it.
func TestWaitForTheOwnWrite(t *testing.T) {
	c, _, asker, hosts := newBothCurrent(t)
	serve := c.silences(hosts[0], asker)
	_, err := asker.Put(t.Context(), []byte("key"), []byte("second"))
	c.must(err)
	serve()
	c.nearest(asker, hosts[0], hosts[1])
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err = asker.Wait(ctx, WaitOptions{Key: []byte("key")})
	if r := c.held(hosts[0], "key"); err == nil && string(r.Value) != "second" {
		t.Errorf("all hosts are said to hold it, and one holds %q", r.Value)
	}
}

// onTwo is a key of which the two hosts of its record are those of its entry, too, and are current in both sets; asker is
// none of them.
func (c *writerCluster) onTwo() (key string, asker *Namespace, hosts []int, first offered) {
	writer := -1
	for w := 0; writer < 0 && w < len(c.nodes); w++ {
		for i := range 400 {
			key = fmt.Sprint("two ", i)
			at := c.holding(key, c.spaces[w].core.OwnShard([]byte(key)))
			if slices.Contains(at, w) && slices.Equal(at, c.holding(key, c.spaces[0].core.Entries([]byte(key)))) {
				writer, hosts = w, at
				break
			}
		}
	}
	if writer < 0 {
		c.t.Fatal("no key has the same hosts twice")
	}
	first, err := c.put(writer, key, "first", route.All)
	c.must(err)
	c.follow()
	for _, set := range []placement.Shard{c.spaces[writer].core.OwnShard([]byte(key)), c.spaces[0].core.Entries([]byte(key))} {
		for i, h := range hosts {
			sh, err := c.spaces[h].numbered(set)
			c.must(err)
			_, err = sh.sync(c.t.Context(), c.nodes[hosts[1-i]].ID(), SyncOptions{})
			c.must(err)
		}
	}
	i := slices.IndexFunc(c.spaces, func(ns *Namespace) bool { return ns != c.spaces[hosts[0]] && ns != c.spaces[hosts[1]] })
	return key, c.spaces[i], hosts, first
}

// So by placement writer: a node reads what it has just written, and refuses a write on what it has replaced.
func TestWriterOwnWrites(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"put", "delete"} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			key, asker, hosts, first := c.onTwo()
			serve := c.silences(hosts[0], asker)
			draft := conditions(key, first.Version)[name]
			draft.Ack = 1
			_, err := asker.offerInTurn(t.Context(), draft, false)
			c.must(err)
			serve()
			c.nearest(asker, hosts[0], hosts[1])
			got, err := asker.Get(t.Context(), []byte(key))
			if name == "put" && (err != nil || string(got.Value) != "mine") || name == "delete" && !errors.Is(err, ErrDeleted) {
				t.Errorf("it reads %q, %v", got.Value, err)
			}
			c.silences(hosts[1], asker)
			if got, err := asker.Get(t.Context(), []byte(key)); err == nil {
				t.Errorf("where its host does not answer it reads %q", got.Value)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := asker.offerInTurn(ctx, conditions(key, first.Version)["put"], false); err == nil || errors.Is(err, ErrUnconfirmed) {
				t.Errorf("a second write on the first version: %v", err)
			}
		})
	}
}
