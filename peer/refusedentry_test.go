package peer

import (
	"context"
	"errors"
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
	t.Parallel()
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

// slow is a driver to which one host of the directory does not answer until the other one has refused the first entry. It is
// asked first from then on.
type slow struct {
	byWriter
	c         *writerCluster
	entries   placement.Shard
	host, far int
	refused   bool
}

func (d *slow) Hand(ctx context.Context, remote *node.Remote, record *dbadapter.Record, here node.ID, settled bool, need int, how route.Manner) (route.Written, error) {
	if remote.Shard() != d.entries || d.refused {
		return d.byWriter.Hand(ctx, remote, record, here, settled, need, how)
	}
	serve := d.c.silences(d.host, d.ns)
	w, err := d.byWriter.Hand(ctx, remote, record, here, settled, need, how)
	d.refused = errors.Is(err, route.ErrOvertaken)
	serve()
	d.c.nearest(d.ns, d.host, d.far)
	return w, err
}

// So does one which then asks a host of the directory that has not heard of the other one's entry, and gives the entry
// before, whose key was deleted since.
func TestFollowsWhatWasRefusedForLater(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters()
	asker := 0
	for asker == a || asker == b {
		asker++
	}
	ns, own, entries := c.spaces[asker], c.spaces[b].core.OwnShard([]byte(key)), c.spaces[b].core.Entries([]byte(key))
	_, err := c.put(a, key, "first", route.All)
	c.must(err)
	c.follow()
	sh, err := c.spaces[a].numbered(entries)
	c.must(err)
	_, err = sh.sync(t.Context(), c.nodes[b].ID(), SyncOptions{}) // it is sure of what it holds
	c.must(err)
	c.deletedHalfWay(a, key)
	c.now.Add(int64(time.Second))
	_, err = c.spaces[b].Delete(t.Context(), []byte(key)) // the entry's tombstone stays at this host, as what is written next
	c.must(err)
	_, err = c.spaces[b].Put(t.Context(), []byte(key), []byte("second"))
	c.must(err)
	c.now.Add(int64(time.Second))
	c.nearest(ns, a, b)
	driver := &slow{byWriter: byWriter{ns}, c: c, entries: entries, host: a, far: b}
	_, err = ns.core.NewByWriter(driver).Offer(t.Context(), node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("third")}}, false, route.All, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !driver.refused {
		t.Fatal("it was not refused: this test shows nothing")
	}
	for _, at := range c.holding(key, own) {
		if got := c.valueAt(at, own, key); got != "third" {
			t.Errorf("node %d holds %q of what was replaced", at, got)
		}
	}
}
