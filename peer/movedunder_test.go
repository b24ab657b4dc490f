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

// interrupted is a driver that does something once, behind the first look-up of an entry.
type interrupted struct {
	byWriter
	entries placement.Shard
	then    func()
}

func (d *interrupted) LookUpIn(ctx context.Context, in placement.Shard, key []byte, all bool) (lookedUp, error) {
	found, err := d.byWriter.LookUpIn(ctx, in, key, all)
	if then := d.then; in == d.entries && then != nil {
		d.then = nil
		then()
	}
	return found, err
}

// A write that rests on the record it has found goes into the shard of that, also where the key came
// there after the write had looked up its entry: only there can the record be replaced.
func TestConditionGoesWhereTheRecordIs(t *testing.T) {
	for name, deletes := range map[string]bool{"deletion": true, "version": false} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			a, b, _, key := c.firstWriters()
			_, err := c.put(a, key, "first", route.All)
			c.must(err)
			c.follow()
			ns := c.spaces[a]
			draft := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("over"), Deleted: deletes}}
			if deletes {
				draft.Record.Value = nil
			} else {
				draft.If = new(dbadapter.Version)
			}
			own := c.spaces[b].core.OwnShard([]byte(key))
			driver := &interrupted{byWriter: byWriter{ns}, entries: ns.core.Entries([]byte(key))}
			driver.then = func() {
				_, err := c.spaces[b].Delete(t.Context(), []byte(key), Acks(AckAll))
				c.must(err)
				c.now.Add(int64(time.Second))
				written, err := c.put(b, key, "second", route.All)
				c.must(err)
				if draft.If != nil {
					*draft.If = written.Version
				}
				c.follow()
			}
			_, err = ns.core.NewByWriter(driver).Offer(t.Context(), draft, deletes, route.All, nil)
			c.must(err)
			for _, at := range c.holding(key, own) {
				if got := c.valueAt(at, own, key); got != string(draft.Record.Value) {
					t.Errorf("node %d holds %q of what was replaced", at, got)
				}
			}
			for range 6 {
				c.round()
				c.follow()
				for _, ns := range c.spaces {
					ns.follows.byWriter.Meet(t.Context())
				}
			}
			if listed := c.conflicts(key); len(listed) > 0 {
				t.Errorf("conflicts: %v", listed)
			}
		})
	}
}

// valueAt is the value of a key that a node holds in a set.
func (c *writerCluster) valueAt(i int, set placement.Shard, key string) string {
	c.t.Helper()
	sh, err := c.spaces[i].numbered(set)
	c.must(err)
	held, err := sh.set.Held([]byte(key))
	c.must(err)
	if held == nil {
		return ""
	}
	return string(held.Value)
}
