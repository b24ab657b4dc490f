package peer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// writerCluster is nodes of one namespace of eight shards, whose placement is writer, each of
// which two of them hold. The test is the background of their locators, too.
type writerCluster struct {
	*routedCluster
	time  time.Duration // of the locators; pass changes it
	clock atomic.Int64  // the same, for what goes on beside the test
	timed map[*Namespace]bool
	cut   sync.Map // the ids of nodes that reach one another only
}

// idsOfWriters draws ids by which firstWriters finds a key.
const idsOfWriters = 2

func newWriterCluster(t *testing.T, size int) *writerCluster {
	t.Helper()
	return newLocatedCluster(t, size, placement.Writer)
}

// newLocatedCluster is newWriterCluster of another placement, with a locator.
func newLocatedCluster(t *testing.T, size int, kind placement.Kind) *writerCluster {
	t.Helper()
	c := &writerCluster{routedCluster: &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}, time: time.Hour, timed: map[*Namespace]bool{}}
	c.kind, c.locator = kind, kind != placement.Writer
	var all []int
	for i := range size {
		// By these ids each node is preferred for a shard, and each two of them hold entries together.
		c.base.Dialed = func(_ context.Context, to ID, conn net.Conn) (net.Conn, error) {
			if c.apart(c.nodes[i].ID(), to) {
				return nil, errApart
			}
			return conn, nil
		}
		c.joinDrawn()
		all = append(all, i)
	}
	c.settle(all...)
	for tries := 0; !c.told(); tries++ {
		if tries == 60 {
			t.Fatal("a node takes another one for a holder of what that has handed over")
		}
		c.round()
	}
	c.follow()
	return c
}

// joinDrawn adds a node whose id is the same in each run, as the layout is drawn by the ids.
func (c *routedCluster) joinDrawn() {
	c.t.Helper()
	at := len(c.nodes)
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-2), idsOfWriters, byte(at))))
	c.must(err)
	c.metrics = append(c.metrics, prometheus.NewRegistry())
	c.base.Identity, c.base.Registerer = key, c.metrics[at]
	c.join()
}

var errApart = errors.New("the network is cut")

func (c *writerCluster) apart(a, b ID) bool {
	_, inA := c.cut.Load(a)
	_, inB := c.cut.Load(b)
	return inA != inB
}

// part cuts the network between some nodes and the others.
func (c *writerCluster) part(some ...int) {
	c.t.Helper()
	for _, i := range some {
		c.cut.Store(c.nodes[i].ID(), true)
	}
	for _, n := range c.nodes {
		for _, o := range c.nodes {
			if c.apart(n.ID(), o.ID()) {
				c.must(n.host.Network().ClosePeer(o.ID()))
			}
		}
	}
}

// heal ends the cut; rounds pass until the sets are equal.
func (c *writerCluster) heal() {
	c.t.Helper()
	c.cut.Clear()
	for _, n := range c.nodes {
		for _, o := range c.nodes {
			if n != o {
				_, err := n.Connect(c.t.Context(), o.Addrs()[0])
				c.must(err)
			}
		}
	}
}

// told: each node has heard which shards the others have handed over. Until then what those
// hold is unknown.
func (c *writerCluster) told() bool {
	for _, ns := range c.spaces {
		for _, hosts := range ns.core.Tellers().Of {
			if len(hosts) != 2 {
				return false
			}
		}
	}
	return true
}

// pass lets time pass for the locators.
func (c *writerCluster) pass(d time.Duration) {
	c.time += d
	c.clock.Store(int64(c.time))
}

// follow lets each node ask all hosts of the directory, and do the work that follows.
func (c *writerCluster) follow() {
	c.t.Helper()
	for range 3 {
		c.pass(time.Second)
		for _, ns := range c.spaces {
			if !c.timed[ns] {
				c.timed[ns] = true
				ns.follows.now = func() time.Duration { return time.Duration(c.clock.Load()) }
				ns.follows.steady = ns.follows.now
			}
			c.followFrom(ns)
			for run := ns.follows.locator.Work(); run != nil; run = ns.follows.locator.Work() {
				c.must(run())
			}
		}
	}
}

// followFrom lets a node ask each host of the directory once, and waits for the answers.
func (c *writerCluster) followFrom(ns *Namespace) {
	ns.heedTellers()
	for _, id := range ns.core.Tellers().All {
		_, _ = ns.followHost(c.t.Context(), id, false) // one that is cut off is not heard
	}
	ns.follows.logHosts(ns)
}

func (c *writerCluster) get(i int, key string) (string, error) {
	r, err := c.spaces[i].Get(c.t.Context(), []byte(key))
	return string(r.Value), err
}

// readEverywhere has each node read a key, surely, as the value.
func (c *writerCluster) readEverywhere(key, value string) {
	c.t.Helper()
	for i := range c.nodes {
		if got, err := c.get(i, key); err != nil || got != value {
			c.t.Errorf("node %d reads %q of %q, %v", i, got, key, err)
		}
	}
}

// A key that one node writes is in a shard of that node, and all nodes read it; what another
// node writes over it stays there. A key that there is not is known not to be, without a request.
func TestWriterPlacement(t *testing.T) {
	c := newWriterCluster(t, 3)
	for i := range c.nodes {
		for k := range 5 {
			key := fmt.Sprintf("key %d of %d", k, i)
			if done, err := c.put(i, key, "1", route.All); err != nil || done.Held != 2 {
				t.Fatalf("node %d writes %q: %+v, %v", i, key, done, err)
			}
		}
	}
	c.follow()
	for i := range c.nodes {
		for k := range 5 {
			key := fmt.Sprintf("key %d of %d", k, i)
			shard := c.spaces[i].core.OwnShard([]byte(key))
			layout, _, err := c.spaces[i].core.Layout()
			c.must(err)
			if !layout.Has(shard, node.ID(c.nodes[i].ID())) {
				t.Errorf("node %d writes to shard %d, of which it is no host", i, shard)
			}
			for at := range c.nodes {
				if a := c.spaces[at].whereIs([]byte(key)); a.Where != directory.In && a.Where != directory.Here || a.Shard != shard {
					t.Errorf("node %d: %q is %+v, and was written to shard %d", at, key, a, shard)
				}
				if got, err := c.get(at, key); err != nil || got != "1" {
					t.Errorf("node %d reads %q: %q, %v", at, key, got, err)
				}
			}
			if _, err := c.put((i+1)%3, key, "2", route.All); err != nil {
				t.Errorf("another node overwrites %q: %v", key, err)
			}
			if f, err := c.spaces[i].lookUp(t.Context(), []byte(key), false); err != nil || !f.Sure || string(f.Record.Value) != "2" || f.Shard != shard {
				t.Errorf("%q is overwritten: %+v, %v", key, f, err)
			}
		}
	}
	c.follow()
	misses := 0
	for k := range 100 {
		for at, ns := range c.spaces {
			key := []byte(fmt.Sprint("none ", k))
			f, err := ns.lookUp(t.Context(), key, false)
			if err != nil || !f.Sure || f.Record != nil {
				t.Fatalf("node %d: a key that is not there: %+v, %v", at, f, err)
			}
			if f.Requests > 0 {
				misses++
			}
			if _, err := ns.Get(t.Context(), key); !errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsure) {
				t.Fatalf("node %d: a key that is not there: %v", at, err)
			}
		}
	}
	if misses > 6 { // 2^-12 of 300 is 0.07; seven or more are seen once in 10^12 runs
		t.Errorf("%d of 300 misses took a request", misses)
	}
	for i, ns := range c.spaces {
		for _, sh := range ns.shards() {
			if n := sh.set.Store.KeptCount(dbadapter.KeptConflict); n != 0 {
				t.Errorf("node %d keeps %d conflicts of shard %d", i, n, sh.set.Shard())
			}
		}
	}
}

// A key that was deleted is not there; written again by another node, it is in that one's shard.
func TestWriterDeletesAndMoves(t *testing.T) {
	c := newWriterCluster(t, 3)
	_, err := c.put(0, "key", "1", route.All)
	c.must(err)
	c.follow()
	if _, err := c.spaces[1].Delete(t.Context(), []byte("key"), Acks(AckAll)); err != nil {
		t.Fatal(err)
	}
	for at := range c.nodes { // also where the locator has not heard of it
		if got, err := c.get(at, "key"); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) {
			t.Errorf("node %d reads a key that was deleted: %q, %v", at, got, err)
		}
	}
	c.follow()
	_, err = c.put(2, "key", "2", route.All)
	c.must(err)
	want := c.spaces[2].core.OwnShard([]byte("key"))
	for _, heard := range []bool{false, true} {
		for at, ns := range c.spaces {
			f, err := ns.lookUp(t.Context(), []byte("key"), false)
			if !heard && err == nil && f.Requests == 0 && f.Record == nil {
				continue // it was written less than directory.Fresh ago
			}
			if err != nil || !f.Sure || f.Record == nil || string(f.Record.Value) != "2" || f.Shard != want {
				t.Errorf("node %d, has heard of it: %v: %+v, %v; it was written to shard %d", at, heard, f, err, want)
			}
		}
		c.follow()
	}
}

// A node that starts again knows the directory once it has heard of its hosts.
func TestWriterRestart(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	for k := range 20 {
		_, err := c.put(0, fmt.Sprint("key ", k), "1", route.All)
		c.must(err)
	}
	c.follow()
	c.reopen(2)
	c.follow()
	for k := range 20 {
		if a := c.spaces[2].whereIs(fmt.Append(nil, "key ", k)); a.Where != directory.In && a.Where != directory.Here {
			t.Errorf("%+v", a)
		}
	}
	if a := c.spaces[2].whereIs([]byte("none")); a.Where != directory.Nowhere && a.Where != directory.In {
		t.Errorf("%+v", a) // In: a false positive, of one in 4,096
	}
}
