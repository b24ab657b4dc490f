package peer

import (
	"context"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// between is a driver that does something once before a look-up of an entry, but the first.
type between struct {
	byWriter
	entries placement.Shard
	looked  bool
	then    func()
}

func (d *between) LookUpIn(ctx context.Context, in placement.Shard, key []byte, all bool) (lookedUp, error) {
	if then := d.then; in == d.entries && d.looked && then != nil {
		d.then = nil
		then()
	}
	d.looked = d.looked || in == d.entries
	return d.byWriter.LookUpIn(ctx, in, key, all)
}

// A write that a host has refused for another one's entry follows that one into its shard, also where
// its own entry, which is later, has taken the other one's place at all hosts before it tries again.
func TestFollowsWhatWasRefusedFor(t *testing.T) {
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters() // both have the entry; a has no part in b's shard
	own, ns := c.spaces[b].core.OwnShard([]byte(key)), c.spaces[b]
	remote, record, entries, entry := c.firstWrite(b, key)
	_, err := ns.follows.byWriter.HandOver(t.Context(), entries, entry, 1)
	c.must(err)
	_, err = ns.follows.byWriter.HandOver(t.Context(), remote, record, 1)
	c.must(err)
	c.now.Add(int64(time.Second))
	driver := &between{byWriter: byWriter{c.spaces[a]}, entries: entries.Shard(), then: c.round}
	_, err = c.spaces[a].core.NewByWriter(driver).Offer(t.Context(), node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("second")}}, false, route.All, nil)
	if err != nil {
		t.Fatal(err)
	}
	if driver.then != nil {
		t.Fatal("it was not refused: this test shows nothing")
	}
	for _, at := range c.holding(key, own) {
		if got := c.valueAt(at, own, key); got != "second" {
			t.Errorf("node %d holds %q of what was replaced", at, got)
		}
	}
	for range 6 {
		c.meet()
	}
	if listed := c.conflicts(key); len(listed) > 0 {
		t.Errorf("conflicts: %v", listed)
	}
}
