package peer

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// newStaleCluster is a cluster in which the last of the first three nodes was cut off while others joined, and
// has not heard of the layout that counts since. By its own layout a key
// is at hosts that are all none any more.
func newStaleCluster(t *testing.T) (c *locatedCluster, x int, key string) {
	t.Helper()
	c, x = newLocatedCluster(t, 3, placement.Hash), 2
	c.part(x)
	for i := 3; i < 7; i++ {
		c.metrics = append(c.metrics, prometheus.NewRegistry())
		key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-2), 2, byte(i)))) // as those before
		c.must(err)
		c.base.Registerer, c.base.Identity = c.metrics[i], key
		c.base.Dialed = func(_ context.Context, to ID, conn net.Conn) (net.Conn, error) {
			if c.apart(c.nodes[i].ID(), to) {
				return nil, errApart
			}
			return conn, nil
		}
		c.join()
		_ = c.nodes[x].host.Network().ClosePeer(c.nodes[i].ID()) // as if it was cut off already
	}
	now, was := c.spaces[0].core, c.spaces[x].core
	for range 12 {
		c.round()
	}
	self := node.ID(c.nodes[x].ID())
	for i := range 5000 {
		k := fmt.Appendf(nil, "key %d", i)
		before, _ := was.Remote(k).Hosts()
		after, _ := now.Remote(k).Hosts()
		if len(before) > 0 && !slices.Contains(before, self) && !slices.ContainsFunc(before, func(id node.ID) bool { return slices.Contains(after, id) }) {
			c.cut.Clear()
			return c, x, string(k)
		}
	}
	t.Fatal("no set has gone to other hosts alone")
	return nil, 0, ""
}

// The first write of a node that goes by a layout which counts no more learns of the one that does,
// whether or not the node still knows that the key is nowhere.
func TestWritesHeedTheLayout(t *testing.T) {
	c, x, key := newStaleCluster(t)
	if _, err := c.put(x, key, "v", 1); err != nil {
		t.Errorf("%q: %v", key, err)
	}
}

// A read whose hosts disagree with the node's list, and are busy, waits for them as long as it goes on,
// and not as long as a sync would: it ends with what it knows.
func TestReadsDoNotAwaitBusyPeers(t *testing.T) {
	t.Parallel()
	c, x, key := newStaleCluster(t)
	for i, n := range c.nodes {
		for range 4 { // as many syncs of the node are about to begin as each other one takes
			if i != x {
				n.core.Sessions.Greet(node.ID(c.nodes[x].ID()), true)
			}
		}
	}
	ns := c.spaces[x]
	begun := time.Now()
	found, err := ns.lookUpUntil(t.Context(), ns.node.elapsed()+time.Second, []byte(key), false)
	if took := time.Since(begun); took > node.BusyPatience/2 {
		t.Errorf("it has taken %v", took)
	}
	if found.Sure || err != nil && !errors.Is(err, ErrUnsure) {
		t.Errorf("%+v, %v; want ErrUnsure", found, err)
	}
}
