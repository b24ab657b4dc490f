package peer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// others are the hosts of a set beside a node.
func (c *writerCluster) others(i int, set placement.Shard) (others []ID) {
	c.t.Helper()
	hosts, err := c.spaces[i].core.RemoteIn(nil, set).Hosts()
	c.must(err)
	for _, id := range hosts {
		if id != node.ID(c.nodes[i].ID()) {
			others = append(others, ID(id))
		}
	}
	slices.Sort(others)
	return others
}

// A wait for a key is for the hosts of the shard that its first writer put it in, at any node;
// of a key that was deleted, for those of its entry, or of its record.
func TestWriterWait(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key := []byte("awaited")
	done, err := c.put(0, string(key), "1", route.Ack(1))
	c.must(err)
	c.follow()
	shard := c.spaces[0].core.OwnShard(key)
	for i, ns := range c.spaces {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		for _, version := range []dbadapter.Version{{}, done.Version} {
			w, err := ns.Wait(ctx, WaitOptions{Key: key, Version: version})
			slices.Sort(w.Held)
			if want := c.others(i, shard); err != nil || !slices.Equal(w.Held, want) {
				t.Errorf("node %d waits for %v: %+v, %v; the other hosts of shard %d are %v", i, version, w, err, shard, want)
			}
		}
		if err := ns.MayWait(key, 3); !errors.Is(err, ErrInvalid) {
			t.Errorf("node %d: a wait for more hosts than there are: %v", i, err)
		}
		if err := ns.MayWait(key, len(c.others(i, shard))); err != nil {
			t.Errorf("node %d: %v", i, err)
		}
		if _, err := ns.Wait(ctx, WaitOptions{Key: []byte("none")}); !errors.Is(err, dbadapter.ErrNotFound) {
			t.Errorf("node %d waits for a key that is not there: %v", i, err)
		}
		cancel()
	}
	gone, err := c.spaces[1].Delete(t.Context(), key, Acks(AckAll)) // no push brings it to the others here
	c.must(err)
	for i, ns := range c.spaces {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		w, err := ns.Wait(ctx, WaitOptions{Key: key, Version: gone})
		slices.Sort(w.Held)
		entry, record := c.others(i, ns.core.Entries(key)), c.others(i, shard)
		if err != nil || !slices.Equal(w.Held, entry) && !slices.Equal(w.Held, record) { // the record's, where a host has not heard of it
			t.Errorf("node %d waits for a deletion: %+v, %v; the other hosts of the entry are %v, those of the record %v", i, w, err, entry, record)
		}
		cancel()
	}
}

// What the placement writer does not have says so, and changes nothing.
func TestWriterRefusals(t *testing.T) {
	c := newWriterCluster(t, 3)
	ns := c.spaces[0]
	if err := ns.Batch(t.Context(), func(b *Batch) error { b.Put([]byte("batched"), nil); return nil }); !errors.Is(err, ErrInvalid) {
		t.Errorf("a batch: %v", err)
	}
	if f, err := ns.lookUp(t.Context(), []byte("batched"), false); err != nil || f.Record != nil {
		t.Errorf("a key of what was refused: %+v, %v", f, err)
	}
}
