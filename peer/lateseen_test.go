package peer

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// An import has seen the entry of a deletion, which one host alone has acknowledged, before that host goes away and the other one
// declines the item's date: what is written as of now does not take the deletion's place as one that it has seen.
func TestLateItemBehindASeenDeletion(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, author, hosts, _ := c.onTwo()
	entries := c.spaces[0].core.Entries([]byte(key))
	importer := c.spaces[slices.IndexFunc(c.spaces, func(ns *Namespace) bool {
		return ns != author && ns != c.spaces[hosts[0]] && ns != c.spaces[hosts[1]]
	})]
	date := c.nodes[0].now().Add(time.Second).Truncate(time.Millisecond)
	c.now.Add(int64(2 * time.Minute))
	c.round()
	c.follow()
	serve := c.silences(hosts[1], author)
	_, err := author.Delete(t.Context(), []byte(key), Acks(1))
	c.must(err)
	serve()

	var looked, gone atomic.Bool
	knows, behind := c.nodes[hosts[0]], c.nodes[hosts[1]]
	c.lies(knows, importer, func(ask *wire.Ask) wire.Answering {
		if q, ok := ask.Question.(*wire.AskHold); ok && !q.Look {
			gone.Store(true)
		}
		if gone.Load() {
			return nil
		}
		looked.Store(true)
		return knows.honest(importer, ask)
	})
	declined := c.promisesOf(hosts[1], importer, func(in placement.Shard) bool { return in == entries })
	c.nearest(importer, hosts[0], hosts[1])
	got, err := importer.Import(t.Context(), sequence([]Item{{Key: []byte(key), Value: []byte("dated"), Time: date}}), Acks(1))
	if !errors.Is(err, ErrUnsure) || got.Written != 0 || !looked.Load() || !gone.Load() || declined.Load() == 0 {
		t.Errorf("%+v, %v; looked %t, gone %t, declined %d times", got, err, looked.Load(), gone.Load(), declined.Load())
	}
	c.serves(knows)
	c.serves(behind)
	importer.node.routing.close()
	for range 3 {
		c.meet()
	}
	for i, ns := range c.spaces {
		if r, err := ns.Get(t.Context(), []byte(key)); !errors.Is(err, ErrDeleted) && !errors.Is(err, ErrNotFound) {
			t.Errorf("node %d reads %q, %v", i, r.Value, err)
		}
	}
}
