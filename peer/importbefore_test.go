package peer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
)

// moving joins nodes until the shard of a key moves by a layout that its host of before has not heard of. It
// returns a host that imports, and that one.
func (c *routedCluster) moving() (key string, importer, left int) {
	c.t.Helper()
	before, _, err := c.spaces[0].core.Layout()
	c.must(err)
	number := func(id node.ID) int {
		return slices.IndexFunc(c.nodes, func(n *Node) bool { return node.ID(n.ID()) == id })
	}
	for rounds := range 300 {
		if rounds%100 == 0 {
			c.joinDrawn()
		}
		c.now.Add(int64(5 * time.Second))
		c.spaces[0].tend()
		now, _, err := c.spaces[0].core.Layout()
		c.must(err)
		for i := range 200 {
			key = fmt.Sprint("key ", i)
			place := c.spaces[0].core.Home([]byte(key))
			was, is := before.Hosts(place), now.Hosts(place)
			at := slices.IndexFunc(was, func(id node.ID) bool { return !slices.Contains(is, id) && number(id) > 0 })
			stays := slices.IndexFunc(is, func(id node.ID) bool { return slices.Contains(was, id) })
			if at >= 0 && (stays >= 0 || len(is) == 1) {
				return key, number(is[max(stays, 0)]), number(was[at])
			}
		}
	}
	c.t.Fatal("no shard moves")
	return "", 0, 0
}

// A host of before holds the shard still, and a later value, which a host of now has not heard of when an
// import brings what it holds itself: the item is written, although the other hosts hold nothing later, or
// this node is the only host.
func TestImportBesideAHostOfBefore(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			c := &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}
			c.kind, c.replicas = placement.Hash, replicas
			var all []int
			for i := range 4 {
				c.joinDrawn()
				all = append(all, i)
			}
			for range 40 { // one host holds all at first, where it is enough
				c.round()
			}
			c.settle(all...)
			key, importer, left := c.moving()
			tell := func() { // the lists, and what each holds; no set is synced
				for i := range c.nodes {
					for j := range c.nodes {
						if i != j {
							_, _ = c.spaces[i].sync(t.Context(), nil, c.nodes[j].ID(), SyncOptions{}) // before a table is here it fails
						}
					}
				}
			}
			home := c.spaces[0].core.Home([]byte(key))
			if !slices.Contains(c.holders(home), importer) { // the new host, which has to hear that it is one
				_, _ = c.spaces[importer].sync(t.Context(), nil, c.nodes[0].ID(), SyncOptions{})
				c.spaces[importer].tend()
			}
			c.write(importer, key, "wanted")
			c.now.Add(int64(time.Second))
			c.write(left, key, "other")
			tell()
			for i := range c.nodes {
				if i != left {
					c.spaces[i].tend()
				}
			}
			tell()
			if r := c.held(left, key); r == nil || string(r.Value) != "other" {
				t.Fatalf("the host of before holds %+v", r)
			}
			c.now.Add(int64(time.Second))
			got, err := c.spaces[importer].Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("wanted")}}))
			if err != nil || got != (ImportResult{Items: 1, Written: 1}) {
				t.Errorf("%+v, %v", got, err)
			}
			for range 40 {
				c.round()
			}
			for i, ns := range c.spaces {
				if r, err := ns.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != "wanted" {
					t.Errorf("node %d reads %q, %v", i, r.Value, err)
				}
			}
		})
	}
}
