package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// By placement writer, too, a write on a condition whose record comes too late for what the first host of its shard has promised
// meanwhile is made anew, over its own entry, but not over what its own node has written since.
func TestWriterConditionTooLate(t *testing.T) {
	for _, beside := range []bool{false, true} {
		t.Run(fmt.Sprintf("a put beside it %t", beside), func(t *testing.T) {
			c := newWriterCluster(t, 4)
			key, writer, asker, near := "", -1, 0, -1
			for i := 0; near < 0; i++ {
				if i == 4000 {
					t.Fatal("no key has its record at other nodes alone")
				}
				writer, key = 1+i%3, fmt.Sprint("late ", i)
				if own := c.spaces[writer].core.OwnShard([]byte(key)); !slices.Contains(c.holding(key, own), asker) {
					near = c.firstOf(c.spaces[0].core.RemoteIn([]byte(key), own))
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
				q, ok := ask.Question.(*wire.AskHold)
				if ok = ok && !q.Look && placement.Shard(q.Shard) == shard; ok && string(q.Records[0].Value) == "beside" {
					return nil // it does not hear of it
				}
				if ok {
					if promised == 0 {
						promised = q.Records[0].Version.Clock
					}
					if q.Records[0].Version.Clock <= promised {
						if declined++; beside && declined == 1 {
							_, err := ns.Put(t.Context(), []byte(key), []byte("beside"))
							c.must(err)
						}
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
			want := "second"
			if _, err := ns.PutIf(t.Context(), []byte(key), []byte(want), first.Version); (err != nil) != beside || declined == 0 {
				t.Fatalf("declined %d times: %v", declined, err)
			}
			if beside {
				want = "beside"
			}
			c.follow()
			for range 2 {
				c.round()
			}
			c.follow()
			c.readEverywhere(key, want)
		})
	}
}

// What a node writes behind a write of its own goes to the key's shard, also where its locator has not heard of that, and the answers
// to the own write are lost.
func TestWriteBehindTheOwnGoesToItsShard(t *testing.T) {
	for name, write := range map[string]func(*Namespace, []byte) error{
		"put": func(ns *Namespace, key []byte) error {
			_, err := ns.Put(t.Context(), key, []byte("behind"))
			return err
		},
		"import": func(ns *Namespace, key []byte) error {
			_, err := ns.Import(t.Context(), sequence([]Item{{Key: key, Value: []byte("behind")}}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			c.follow()
			ns := c.spaces[0]
			key, writer := "", -1
			for i := 0; writer < 0; i++ {
				key = fmt.Sprint("behind ", i)
				for w := 1; w < 4; w++ {
					if own := c.spaces[w].core.OwnShard([]byte(key)); !slices.Contains(c.holding(key, own), 0) && ns.core.OwnShard([]byte(key)) != own {
						writer = w
					}
				}
			}
			shard := c.spaces[writer].core.OwnShard([]byte(key))
			_, err := c.put(writer, key, "first", route.All)
			c.must(err)
			n := c.nodes[c.firstOf(ns.core.RemoteIn([]byte(key), shard))]
			c.lies(n, ns, func(ask *wire.Ask) wire.Answering {
				reply, err := n.answerRouted(ns.node.ID(), ask)
				if q, ok := ask.Question.(*wire.AskHold); err != nil || ok && !q.Look && placement.Shard(q.Shard) == shard {
					return nil
				}
				return reply.Answer
			})
			ns.node.routing.close()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err = ns.Put(ctx, []byte(key), []byte("own"), Acks(AckAll))
			if cancel(); !errors.Is(err, ErrUnconfirmed) {
				t.Fatal(err)
			}
			if a := ns.whereIs([]byte(key)); a.Where != directory.Nowhere {
				t.Fatalf("the locator has heard of it: %+v", a)
			}
			c.must(write(ns, []byte(key)))
			for i, ns := range c.spaces {
				for _, sh := range ns.shards() {
					r, err := sh.set.Held([]byte(key))
					if c.must(err); r != nil && !sh.set.Directory() && sh.set.Shard() != shard {
						t.Errorf("node %d holds %q in shard %d, and the key is in %d", i, r.Value, sh.set.Shard(), shard)
					}
				}
			}
		})
	}
}
