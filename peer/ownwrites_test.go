package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// silences has a host answer a node nothing that it asks, until it serves again.
func (c *routedCluster) silences(host int, asker *Namespace) (serve func()) {
	n := c.nodes[host]
	c.lies(n, asker, func(*wire.Ask) wire.Answering { return nil })
	asker.node.routing.close()
	return func() {
		n.host.SetStreamHandler(routeProtocol, n.serving(n.serveRoute))
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
	for _, name := range []string{"put", "delete"} {
		t.Run(name, func(t *testing.T) {
			c, first, asker, hosts := newBothCurrent(t)
			serve := c.silences(hosts[0], asker)
			_, err := asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version)
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
	_, err = asker.PutIf(t.Context(), []byte("key"), []byte("second"), first.Version)
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

// What is remembered of a key is its latest write, for twice as long as a host may be behind. Where a write was given up
// for want of room, each key may have one until that time is over.
func TestOwnWrites(t *testing.T) {
	var w ownWrites
	written := func(key string, clock int) *dbadapter.Record {
		return &dbadapter.Record{Key: []byte(key), Version: dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: 1}}
	}
	is := func(key string, now time.Duration, clock int, full bool) {
		t.Helper()
		r, isFull := w.lately([]byte(key), now)
		got := 0
		if r != nil {
			got = int(r.Version.Clock)
		}
		if got != clock || isFull != full {
			t.Errorf("%q at %v: %d, %v", key, now, got, isFull)
		}
	}
	w.note(written("a", 2), 1)
	w.note(written("a", 1), 2)
	is("a", 2, 2, false)
	w.note(written("b", 3), 3)
	w.note(written("a", 4), 4)
	is("a", 4, 4, false)
	is("a", 4+ownWritesFor, 4, false)
	is("a", 5+ownWritesFor, 0, false)
	now := 10 * ownWritesFor
	for i := range maxOwnWrites {
		w.note(written(fmt.Sprint(i), 10+i), now)
	}
	is("a", now, 0, false)
	is("0", now, 10, false)
	w.note(written("one more", 5), now+1)
	if len(w.of) != maxOwnWrites {
		t.Errorf("%d keys are remembered", len(w.of))
	}
	is("0", now+1, 0, true)
	is("a", now+ownWritesFor, 0, true)
	is("a", now+1+ownWritesFor, 0, false)
	is("one more", now+1, 5, false)
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
