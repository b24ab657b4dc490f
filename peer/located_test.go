package peer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// locatedCluster is nodes of one namespace of eight shards with a locator, each of which two of
// them hold. The test is the background of their locators, too.
type locatedCluster struct {
	*routedCluster
	time  time.Duration // of the locators; pass changes it
	clock atomic.Int64  // the same, for what goes on beside the test
	timed map[*Namespace]bool
	cut   sync.Map // the ids of nodes that reach one another only
}

// newLocatedCluster is so many nodes of a namespace of that placement.
func newLocatedCluster(t *testing.T, size int, kind placement.Kind) *locatedCluster {
	t.Helper()
	c := &locatedCluster{routedCluster: &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}, time: time.Hour, timed: map[*Namespace]bool{}}
	c.kind, c.locator = kind, true
	var all []int
	for i := range size {
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
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-2), 2, byte(at))))
	c.must(err)
	c.metrics = append(c.metrics, prometheus.NewRegistry())
	c.base.Identity, c.base.Registerer = key, c.metrics[at]
	c.join()
}

var errApart = errors.New("the network is cut")

func (c *locatedCluster) apart(a, b ID) bool {
	_, inA := c.cut.Load(a)
	_, inB := c.cut.Load(b)
	return inA != inB
}

// part cuts the network between some nodes and the others.
func (c *locatedCluster) part(some ...int) {
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
func (c *locatedCluster) heal() {
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
func (c *locatedCluster) told() bool {
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
func (c *locatedCluster) pass(d time.Duration) {
	c.time += d
	c.clock.Store(int64(c.time))
}

// follow lets each node ask all hosts for their feeds, and do the work that follows.
func (c *locatedCluster) follow() {
	c.t.Helper()
	for range 3 {
		c.pass(time.Second)
		for _, ns := range c.spaces {
			if !c.timed[ns] {
				c.timed[ns] = true
				ns.follows.now = func() time.Duration { return time.Duration(c.clock.Load()) }
			}
			c.followFrom(ns)
			for run := ns.follows.locator.Work(); run != nil; run = ns.follows.locator.Work() {
				c.must(run())
			}
		}
	}
}

// followFrom lets a node ask each host once, and waits for the answers.
func (c *locatedCluster) followFrom(ns *Namespace) {
	ns.heedTellers()
	for _, id := range ns.core.Tellers().All {
		_, _ = ns.followHost(c.t.Context(), id, false) // one that is cut off is not heard
	}
	ns.follows.logHosts(ns)
}

// where is what a node's locator knows of a key.
func (c *locatedCluster) where(ns *Namespace, key string) directory.Where {
	home, index := ns.core.ToldAs([]byte(key))
	return ns.follows.locator.Locate(home, index, ns.follows.now()).Where
}
