package peer

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A put on a condition that a deletion came before takes its entry back. The entry of a put that has followed the deletion
// meanwhile stands: of one by the same node, and of one by another node of which a host of the directory has not heard.
func TestTakenBackBesideAPut(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprint("same node ", same), func(t *testing.T) { takenBackBesideAPut(t, same) })
	}
}

func takenBackBesideAPut(t *testing.T, same bool) {
	c := newWriterCluster(t, 4)
	name, asker, hosts, first := c.onTwo()
	key, entries := []byte(name), asker.core.Entries([]byte(name))
	putter, acks, deleter := asker, Acks(AckAll), c.spaces[hosts[1]]
	if !same {
		i := slices.IndexFunc(c.spaces, func(ns *Namespace) bool {
			return ns != asker && ns != c.spaces[hosts[0]] && ns != c.spaces[hosts[1]]
		})
		putter, acks = c.spaces[i], Acks(1)
	}
	shard, held := c.recordAt(hosts[0], name)
	remote := deleter.core.RemoteIn(key, shard)
	var deleted, put sync.Once
	var mu sync.Mutex // guards what follows
	refused, answered := false, 0
	taken := make(chan struct{})
	for at, h := range hosts {
		c.answers(c.nodes[h], func(by ID, ask *wire.Ask) bool {
			q, ok := ask.Question.(*wire.AskHold)
			if !ok || q.Look || placement.Shard(q.Shard) != entries {
				return true
			}
			if by == asker.node.ID() {
				deleted.Do(func() { // where the record is, a deletion comes first
					gone, err := remote.Make(node.Draft{Record: dbadapter.Record{Key: key, Deleted: true}, If: &first.Version, Seen: []*dbadapter.Record{held}})
					c.must(err)
					_, err = deleter.follows.byWriter.HandOver(t.Context(), remote, gone, route.All)
					c.must(err)
				})
			} else if !same && by == putter.node.ID() && at == 1 {
				<-taken
			}
			return true
		}, func(by ID, ask *wire.Ask, reply *wire.Reply) {
			if by != asker.node.ID() {
				return
			}
			both := false
			mu.Lock()
			switch q := ask.Question.(type) {
			case *wire.AskHold:
				a, ok := reply.Answer.(*wire.HoldAnswer)
				refused = refused || ok && !q.Look && placement.Shard(q.Shard) == shard && a.Outcomes[0].Other != nil
			case *wire.AskRecord:
				if refused && placement.Shard(q.Shard) == shard {
					answered++
					both = answered == 2
				}
			}
			mu.Unlock()
			if both { // both answers tell of the deletion
				put.Do(func() {
					_, err := putter.Put(t.Context(), key, []byte("acknowledged"), acks)
					c.must(err)
					c.now.Add(int64(10 * time.Millisecond))
				})
			}
		})
	}
	asker.node.routing.close()
	putter.node.routing.close()
	if _, err := asker.PutIf(t.Context(), key, []byte("conditional"), first.Version); err == nil || answered < 2 {
		t.Fatalf("behind a deletion, with %d answers about it: %v", answered, err)
	}
	close(taken)
	for _, h := range hosts {
		c.serves(c.nodes[h])
	}
	for range 3 {
		c.meet()
	}
	c.readEverywhere(name, "acknowledged")
}

// recordAt is a key's record that a node holds, and its shard.
func (c *writerCluster) recordAt(i int, key string) (placement.Shard, *dbadapter.Record) {
	c.t.Helper()
	for _, sh := range c.spaces[i].shards() {
		if r, err := sh.set.Held([]byte(key)); err == nil && r != nil && !sh.set.Directory() {
			return sh.set.Shard(), r
		}
	}
	c.t.Fatalf("node %d holds no record of %q", i, key)
	return 0, nil
}
