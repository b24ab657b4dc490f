package peer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// newThreeHosts is a cluster of five, a key that all three of its hosts hold, and these in the order in which they are asked.
func newThreeHosts(t *testing.T) (c *routedCluster, key []byte, first offered, remote *node.Remote, hosts []int) {
	c = newReplicatedCluster(t, placement.Hash, 5, 3, Config{NoPush: true})
	key = []byte("key")
	first, err := c.put(0, string(key), "first", route.All)
	c.must(err)
	remote, err = c.spaces[0].core.Remote(key)
	c.must(err)
	named, err := remote.Hosts()
	c.must(err)
	for _, id := range named {
		hosts = append(hosts, slices.IndexFunc(c.nodes, func(n *Node) bool { return node.ID(n.ID()) == id }))
	}
	return c, key, first, remote, hosts
}

// Of two writes on one version one is acknowledged by two of three hosts, also where the other one, which the third host has
// taken, comes from there to a host that has taken the first: that does not count it. Both say the same, as two do that count up.
func TestTwoConditionsAtThreeHosts(t *testing.T) {
	t.Parallel()
	c, _, first, _, hosts := newThreeHosts(t)
	var others []*Namespace
	for i, ns := range c.spaces {
		if !slices.Contains(hosts, i) {
			others = append(others, ns)
		}
	}
	one, other := others[0], others[1]
	o := c.lookedUp(one, conditions("key", first.Version)["put"], route.Majority)
	c.now.Add(int64(10 * time.Millisecond))
	later := c.lookedUp(other, conditions("key", first.Version)["put"], route.Majority)
	for _, h := range hosts[:2] { // which the other one does not reach at first
		c.nodes[h].host.SetStreamHandler(routeProtocol, func(s network.Stream) {
			if s.Conn().RemotePeer() == other.node.ID() {
				s.Reset()
				return
			}
			c.nodes[h].serving(c.nodes[h].serveRoute)(s)
		})
	}
	other.node.routing.close()
	done := make(chan error, 1)
	go func() {
		_, err := other.handOffered(t.Context(), later)
		done <- err
	}()
	waitFor(t, "the third host holds the other's", func() bool { return c.held(hosts[2], "key").Version == later.Version() })
	written, err := one.handOffered(t.Context(), o)
	c.must(err)
	o.Handed(written, err, false)
	c.current(hosts[0], hosts[2], "key")
	if got := c.held(hosts[0], "key").Version; got != later.Version() {
		t.Fatalf("the first host holds %v", got)
	}
	for _, h := range hosts[:2] {
		c.serves(c.nodes[h])
	}
	if err := <-done; !errors.Is(err, route.ErrOvertaken) {
		t.Errorf("behind one that was acknowledged, %v: %v", o.Version(), err)
	}
}

// lookedUp is a write on a condition of a node that has looked the key up, and whose record hosts are to be asked to hold.
func (c *shardCluster) lookedUp(ns *Namespace, d node.Draft, ack route.Ack) *node.Offering {
	o := ns.core.Offer(d, false, ack, ns.steady)
	for o.Next() == node.OfferLookUp {
		ctx := c.t.Context()
		o.LookedUp(ns.lookUpUntil(ctx, ns.node.deadline(ctx), o.Remote().Shard(), d.Record.Key, o.All()))
	}
	return o
}

// A batch on a condition that has waited for the commits of its shard heeds a write on a condition that its node has other hosts hold
// since: that would be superseded by what another node writes over the batch.
func TestBatchBehindTheOwnCondition(t *testing.T) {
	t.Parallel()
	c, key, first, remote, hosts := newThreeHosts(t)
	host := c.spaces[hosts[2]]
	for _, h := range hosts[:2] {
		c.current(hosts[2], h, "key")
	}
	sh, err := host.numbered(remote.Shard())
	c.must(err)
	release := sh.set.Import().Hold() // a batch of an import is being committed
	done := make(chan error, 1)
	go func() {
		done <- host.Batch(t.Context(), func(b *Batch) error { b.PutIf(key, []byte("batch"), first.Version); return nil })
	}()
	waitFor(t, "the batch waits", sh.set.Import().Wanted)
	o := c.lookedUp(host, conditions("key", first.Version)["put"], route.Majority)
	release()
	if err := <-done; !errors.Is(err, ErrBusy) {
		t.Errorf("the batch behind %v has ended with %v", o.Version(), err)
	}
	written, err := host.handOffered(t.Context(), o)
	c.must(err)
	if o.Handed(written, err, false); o.Next() != node.OfferOver {
		t.Fatalf("the condition goes on with %d", o.Next())
	}
	if _, err := o.Result(); err != nil {
		t.Errorf("the condition has ended with %v", err)
	}
}
