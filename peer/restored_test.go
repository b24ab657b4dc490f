package peer

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What a node writes while it writes a hidden record anew stands: the record has seen none of that.
func TestPutBesideARestoredRecord(t *testing.T) {
	t.Parallel()
	// run writes the key in the look of a round, once the node has heard what the shard holds that the entry names. It
	// returns the round in which the hidden record was written anew, or -1.
	run := func(look int) (c *writerCluster, key string, restored int) {
		c = newWriterCluster(t, 4)
		a, b, _, key := c.firstWriters()
		c.part(b)
		c.follow()
		first, err := c.put(a, key, "acknowledged", 1)
		c.must(err)
		c.now.Add(int64(time.Second))
		own, named := c.spaces[a].core.OwnShard([]byte(key)), c.spaces[b].core.OwnShard([]byte(key))
		c.entered(b, &dbadapter.Record{Key: []byte(key)}, named)
		c.heal()
		looks := false
		for _, n := range c.nodes {
			c.answers(n, func(ID, *wire.Ask) bool { return true }, func(by ID, ask *wire.Ask, _ *wire.Reply) {
				q, ok := ask.Question.(*wire.AskRecord)
				if !ok || !looks || by != c.nodes[a].ID() || placement.Shard(q.Shard) != named {
					return
				}
				looks = false
				_, err := c.spaces[a].Put(t.Context(), []byte(key), []byte("beside"), Acks(AckAll))
				c.must(err)
				c.now.Add(int64(10 * time.Millisecond))
			})
		}
		for _, ns := range c.spaces {
			ns.node.routing.close()
		}
		sh, err := c.spaces[a].numbered(own)
		c.must(err)
		for round := range 20 {
			c.round()
			c.follow()
			for i, ns := range c.spaces {
				looks = round == look && i == a
				ns.follows.byWriter.Meet(t.Context())
			}
			if r, err := sh.set.Held([]byte(key)); err != nil || r.Version != first.Version {
				c.must(err)
				return c, key, round
			}
			c.pass(node.AbsentFor / 8)
		}
		return c, key, -1
	}
	_, _, restored := run(-1)
	c, key, again := run(restored)
	if restored < 0 || again != restored {
		t.Fatalf("it was written anew in round %d, and in round %d", restored, again)
	}
	for range 3 {
		c.round()
		c.follow()
	}
	c.readEverywhere(key, "beside")
}
