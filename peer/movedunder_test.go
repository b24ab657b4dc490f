package peer

import (
	"context"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
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
				c.meet()
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

// A write that meets another first write follows it into its shard, too, where the record is at a host
// that does not answer: from another shard it would hide the record, which it has seen.
func TestFollowsWhereTheRecordMayBe(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	b, a, away, key := c.firstWriters() // away and b host b's shard
	own, ns := c.spaces[b].core.OwnShard([]byte(key)), c.spaces[b]
	_, record, entries, entry := c.firstWrite(b, key)
	_, err := c.spaces[away].core.RemoteIn([]byte(key), own).HoldHere(t.Context(), record, route.Manner{})
	c.must(err)
	c.part(away)
	time.Sleep(node.CurrentFor + 500*time.Millisecond) // the other host is not sure any more
	c.follow()
	c.pass(3 * directory.Fresh)
	c.now.Add(int64(time.Second))
	driver := &interrupted{byWriter: byWriter{c.spaces[a]}, entries: entries.Shard(), then: func() {
		_, err := ns.follows.byWriter.HandOver(t.Context(), entries, entry, 1)
		c.must(err)
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	// Both hosts of the entry are to hold it: one refuses, since it holds the other write's.
	_, err = c.spaces[a].core.NewByWriter(driver).Offer(ctx, node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("second")}}, false, route.All, nil)
	if err == nil {
		t.Error("it is acknowledged without the host that does not answer")
	}
	if got := c.valueAt(b, own, key); got != "second" {
		t.Errorf("the other host of the shard holds %q", got)
	}
	c.heal()
	for range 6 {
		c.meet()
	}
	if listed := c.conflicts(key); len(listed) > 0 {
		t.Errorf("conflicts: %v", listed)
	}
	c.readEverywhere(key, "second")
}
