package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/route"
)

// counts has four goroutines of one node count up with PutIf, which all hosts are to hold.
func (c *routedCluster) counts(i int, key string) {
	c.t.Helper()
	ns := c.spaces[i]
	_, err := ns.Put(c.t.Context(), []byte(key), []byte("0"), Acks(AckAll))
	c.must(err)
	const workers, each = 4, 10
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				r, err := ns.Get(c.t.Context(), []byte(key))
				if err == nil {
					var count int
					_, _ = fmt.Sscan(string(r.Value), &count)
					_, err = ns.PutIf(c.t.Context(), []byte(key), fmt.Append(nil, count+1), r.Version, Acks(AckAll))
				}
				switch {
				case err == nil:
					done++
				case !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnsure):
					c.t.Errorf("node %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if r, err := ns.Get(c.t.Context(), []byte(key)); err != nil || string(r.Value) != fmt.Sprint(workers*each) {
		c.t.Errorf("the counter of node %d says %s, %v", i, r.Value, err)
	}
}

// On one node PutIf is a compare-and-swap, at a host of the key and at any other node: no increment is lost.
func TestRoutedCounter(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	hosts, others := c.hosts("key")
	c.counts(hosts[0], "key")
	c.counts(others[0], "key")
}

// It is one by placement writer, too, at each node.
func TestWriterCounter(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	for i := range c.nodes {
		c.counts(i, "key")
		c.follow()
	}
}

// conditions are writes of a key on the condition that it has a version.
func conditions(key string, held dbadapter.Version) map[string]node.Draft {
	return map[string]node.Draft{
		"put":    {Record: dbadapter.Record{Key: []byte(key), Value: []byte("mine")}, If: &held},
		"delete": {Record: dbadapter.Record{Key: []byte(key), Deleted: true}, If: &held},
	}
}

// A write on a condition does not replace what another call of its node writes behind its look-up: the host has it
// look anew, and the condition does not hold.
func TestRoutedConditionBesideAPut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"put", "delete"} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			_, others := c.hosts("key")
			ns := c.spaces[others[0]]
			held, err := ns.Put(t.Context(), []byte("key"), []byte("first"), Acks(AckAll))
			c.must(err)
			o := ns.core.Offer(conditions("key", held)[name], false, route.All, ns.steady)
			then := func() {
				_, err := ns.Put(t.Context(), []byte("key"), []byte("beside"), Acks(AckAll))
				c.must(err)
			}
			for o.Next() != node.OfferOver {
				switch o.Next() {
				case node.OfferLookUp:
					found, err := ns.lookUp(t.Context(), []byte("key"), false)
					then()
					then = func() {}
					o.LookedUp(found, err)
				case node.OfferHand:
					written, err := ns.handOffered(t.Context(), o)
					o.Handed(written, err, false)
				default:
					t.Fatalf("the step %d", o.Next())
				}
			}
			if _, err := o.Result(); !errors.Is(err, ErrConflict) {
				t.Errorf("it has ended with %v", err)
			}
			if r, err := ns.Get(t.Context(), []byte("key")); err != nil || string(r.Value) != "beside" {
				t.Errorf("it reads %q, %v", r.Value, err)
			}
		})
	}
}

// So by placement writer: the hosts of the entry, or of the record where it is deleted, have it look anew.
func TestWriterConditionBesideAPut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"put", "delete"} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			ns := c.spaces[1]
			first, err := c.put(0, "key", "first", route.All)
			c.must(err)
			c.follow()
			driver := &interrupted{byWriter: byWriter{ns}, entries: c.spaces[0].core.OwnShard([]byte("key"))}
			driver.then = func() {
				_, err := ns.Put(t.Context(), []byte("key"), []byte("beside"), Acks(AckAll))
				c.must(err)
			}
			_, err = ns.core.NewByWriter(driver).Offer(t.Context(), conditions("key", first.Version)[name], false, route.All, nil)
			if driver.then != nil {
				t.Fatal("the record was not looked up")
			}
			if !errors.Is(err, ErrConflict) {
				t.Errorf("it has ended with %v", err)
			}
			if got, err := c.get(1, "key"); err != nil || got != "beside" {
				t.Errorf("it reads %q, %v", got, err)
			}
		})
	}
}

// A call has the turn of its key alone, other keys wait for nothing, one that waits ends with its context, and
// nothing is kept of a key once no call has its turn or waits for it.
func TestKeyTurns(t *testing.T) {
	var turns keyTurns
	leave, err := turns.take(t.Context(), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.take(t.Context(), []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.take(ctx, []byte("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over: %v", err)
	}
	other()
	leave()
	if len(turns.of) > 0 {
		t.Errorf("%d turns are left", len(turns.of))
	}
}
