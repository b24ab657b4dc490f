package peer

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// By placement writer, too, a write on a condition whose record comes too late for what the first host of its shard has promised
// meanwhile is made anew, over its own entry.
func TestWriterConditionTooLate(t *testing.T) {
	c := newWriterCluster(t, 4)
	key, writer, asker, near := "", -1, 0, -1
	for i := 0; near < 0; i++ {
		if i == 4000 {
			t.Fatal("no key has its record at other nodes alone")
		}
		writer, key = 1+i%3, fmt.Sprint("late ", i)
		if first := c.firstOf(c.spaces[0].core.RemoteIn([]byte(key), c.spaces[writer].core.OwnShard([]byte(key)))); first != asker {
			near = first
		}
	}
	shard := c.spaces[writer].core.OwnShard([]byte(key))
	first, err := c.put(writer, key, "first", route.All)
	c.must(err)
	c.follow()
	ns, n := c.spaces[asker], c.nodes[near]
	var promised dbadapter.Timestamp
	declined := 0
	c.lies(n, ns, func(ask *wire.Ask) wire.Answering {
		if q, ok := ask.Question.(*wire.AskHold); ok && !q.Look && placement.Shard(q.Shard) == shard {
			if promised == 0 {
				promised = q.Records[0].Version.Clock
			}
			if q.Records[0].Version.Clock <= promised {
				declined++
				return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Declined: wire.ReasonFloor}}}
			}
		}
		reply, err := n.answerRouted(ns.node.ID(), ask)
		if err != nil {
			return nil
		}
		return reply.Answer
	})
	ns.node.routing.close()
	if _, err := ns.PutIf(t.Context(), []byte(key), []byte("second"), first.Version); err != nil || declined == 0 {
		t.Fatalf("declined %d times: %v", declined, err)
	}
	c.follow()
	c.readEverywhere(key, "second")
}
