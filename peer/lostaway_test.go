package peer

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// A first write that has lost, while one of its two hosts was away, does not come back over the deletion
// of the other first write, though nothing tells of that any more: the host that was there knows it,
// and is not the one that others prefer.
func TestLostWhileAHostWasAway(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 6)
	away, there, winner, key := c.loserApart()
	own := c.spaces[away].core.OwnShard([]byte(key))
	_, record, _, _ := c.firstWrite(away, key) // its entry loses at the directory
	for _, i := range []int{away, there} {
		_, err := c.spaces[i].core.RemoteIn([]byte(key), own).HoldHere(t.Context(), record, route.Manner{})
		c.must(err)
	}
	c.now.Add(int64(time.Second))
	c.part(away)
	_, err := c.put(winner, key, "winner", route.All)
	c.must(err)
	look := func() {
		c.pass(time.Minute)
		c.round()
		c.follow()
		c.spaces[there].follows.byWriter.HeardOf(own)
		c.spaces[there].follows.byWriter.Meet(t.Context())
	}
	look()
	look()
	_, err = c.spaces[winner].offer(t.Context(), node.Draft{Record: dbadapter.Record{Key: []byte(key), Deleted: true}}, true, route.All)
	c.must(err)
	for rounds := 0; c.heldBeside(own, key); rounds++ {
		if rounds == 60 {
			t.Fatal("the deletion is not collected")
		}
		look()
	}
	if c.valueAt(there, own, key) == "" {
		t.Fatal("the host that is there has let it recede alone")
	}
	c.heal()
	for range 12 {
		c.pass(time.Minute)
		c.meet()
	}
	for i := range c.nodes {
		if v, err := c.get(i, key); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) {
			t.Errorf("node %d reads %q, %v: what has lost, over a deletion", i, v, err)
		}
	}
	if got := c.conflicts(key); len(got) != 2 {
		t.Errorf("it is listed at %v, and has two hosts", got)
	}
}

// loserApart are the two hosts of the first one's own shard for a key, of which that is the one that others
// prefer, and a node whose own shard they do not host; neither do they host the key's entry.
func (c *writerCluster) loserApart() (first, second, winner int, key string) {
	core := c.spaces[0].core
	for k := range 5000 {
		key = strconv.Itoa(k)
		entries := c.holding(key, core.Entries([]byte(key)))
		for first = range c.nodes {
			own := c.spaces[first].core.OwnShard([]byte(key))
			hosts := c.holding(key, own)
			by, _ := core.RemoteIn([]byte(key), own).Hosts()
			if by[0] != node.ID(c.nodes[first].ID()) || slices.Contains(entries, hosts[0]) || slices.Contains(entries, hosts[1]) {
				continue
			}
			for winner = range c.nodes {
				other := c.holding(key, c.spaces[winner].core.OwnShard([]byte(key)))
				if !slices.Contains(other, hosts[0]) && !slices.Contains(other, hosts[1]) {
					return first, hosts[0] + hosts[1] - first, winner, key
				}
			}
		}
	}
	c.t.Fatal("there are no such nodes")
	return 0, 0, 0, ""
}

// heldBeside reports whether a node holds a key in another set than the given one.
func (c *writerCluster) heldBeside(own placement.Shard, key string) bool {
	for _, ns := range c.spaces {
		for _, sh := range ns.shards() {
			if sh.set.Shard() == own {
				continue
			}
			held, err := sh.set.Held([]byte(key))
			c.must(err)
			if held != nil {
				return true
			}
		}
	}
	return false
}
