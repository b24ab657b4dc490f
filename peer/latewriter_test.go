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
	t.Parallel()
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
				return n.honest(ns, ask)
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
// to the own write are lost; whether or not the node is a host of that shard.
func TestWriteBehindTheOwnGoesToItsShard(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*Namespace, []byte) error{
		"put": func(ns *Namespace, key []byte) error {
			_, err := ns.Put(t.Context(), key, []byte("behind"))
			return err
		},
		"import": func(ns *Namespace, key []byte) error {
			_, err := ns.Import(t.Context(), sequence([]Item{{Key: key, Value: []byte("behind")}}))
			return err
		},
		"delete": func(ns *Namespace, key []byte) error {
			_, err := ns.Delete(t.Context(), key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { testWriteBehindTheOwn(t, write, false) })
		t.Run(name+" by a host", func(t *testing.T) { testWriteBehindTheOwn(t, write, true) })
	}
}

func testWriteBehindTheOwn(t *testing.T, write func(*Namespace, []byte) error, host bool) {
	c := newWriterCluster(t, 4)
	c.follow()
	ns, key, writer := c.findWriter(func(at, writer int, key string) bool {
		own := c.spaces[writer].core.OwnShard([]byte(key))
		return slices.Contains(c.holding(key, own), at) == host && c.spaces[at].core.OwnShard([]byte(key)) != own &&
			!slices.Contains(c.holding(key, c.spaces[at].core.Entries([]byte(key))), at)
	})
	shard := c.spaces[writer].core.OwnShard([]byte(key))
	_, err := c.put(writer, key, "first", route.All)
	c.must(err)
	for _, i := range c.holding(key, shard) {
		if n := c.nodes[i]; n != ns.node {
			c.lies(n, ns, func(ask *wire.Ask) wire.Answering {
				reply, err := n.answerRouted(ns.node.ID(), ask)
				if q, ok := ask.Question.(*wire.AskHold); err != nil || ok && !q.Look && placement.Shard(q.Shard) == shard {
					return nil
				}
				return reply.Answer
			})
			break
		}
	}
	ns.node.routing.close()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	_, err = ns.Put(ctx, []byte(key), []byte("own"), Acks(AckAll))
	if cancel(); !errors.Is(err, ErrUnconfirmed) {
		t.Fatal(err)
	}
	if a := ns.whereIs([]byte(key)); a.Where == directory.In || a.Where == directory.Here {
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
}

// findWriter finds two nodes and a key for which something is so.
func (c *writerCluster) findWriter(so func(at, writer int, key string) bool) (ns *Namespace, key string, writer int) {
	c.t.Helper()
	for i := range 4000 {
		key = fmt.Sprint("behind ", i)
		for at := range c.nodes {
			for writer = range c.nodes {
				if writer != at && so(at, writer, key) {
					return c.spaces[at], key, writer
				}
			}
		}
	}
	c.t.Fatal("the ids, which are the same in each run, place no key so")
	return nil, "", 0
}

// The tombstone of an import is written where its node's own put stands of which the host of the directory that is left has not heard.
func TestImportDeletesWhatTheNodeHasWritten(t *testing.T) {
	c := newWriterCluster(t, 4)
	var entries []int
	ns, key, _ := c.findWriter(func(at, _ int, key string) bool {
		entries = c.holding(key, c.spaces[at].core.Entries([]byte(key)))
		in := c.holding(key, c.spaces[at].core.OwnShard([]byte(key)))
		return !slices.Contains(entries, at) && !slices.Contains(in, entries[0])
	})
	for i, h := range entries { // both are current
		sh, err := c.spaces[h].numbered(ns.core.Entries([]byte(key)))
		c.must(err)
		_, err = sh.sync(t.Context(), c.nodes[entries[1-i]].ID(), SyncOptions{})
		c.must(err)
	}
	c.follow()
	serve := c.silences(entries[1], ns)
	_, err := ns.Put(t.Context(), []byte(key), []byte("own"))
	c.must(err)
	serve()
	c.must(c.nodes[entries[0]].Close(context.Background()))
	_, err = ns.Import(t.Context(), sequence([]Item{{Key: []byte(key), Deleted: true}}))
	c.must(err)
	for i, ns := range c.spaces {
		if i == entries[0] {
			continue
		}
		for _, sh := range ns.shards() {
			r, err := sh.set.Held([]byte(key))
			if c.must(err); r != nil && !sh.set.Directory() && !r.Deleted {
				t.Errorf("node %d holds %q in shard %d, and its deletion was acknowledged", i, r.Value, sh.set.Shard())
			}
		}
	}
}
