package peer

import (
	"context"
	"errors"
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

// A write on a condition stands in the place of an entry with a date and no writer that leads to no record, once a look-up is sure of
// what there is: no record can name such an entry as seen.
func TestConditionBesideADatedEntry(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"no record is there": false, "an earlier record is there": true} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			key := []byte("key")
			shard := c.spaces[0].core.OwnShard(key)
			var on dbadapter.Version
			if there {
				first, err := c.put(0, "key", "first", route.All)
				c.must(err)
				on = first.Version
			}
			c.now.Add(int64(time.Second))
			ns := c.spaces[1]
			entries := ns.core.RemoteIn(key, ns.core.Entries(key))
			entry, err := entries.Entry(&dbadapter.Record{Key: key, Version: dbadapter.Version{Clock: dbadapter.TimestampAt(c.nodes[0].now().Truncate(time.Millisecond))}}, shard)
			c.must(err)
			hosts, err := entries.Hosts()
			c.must(err)
			for _, h := range hosts {
				_, _, err := ns.offerTo(t.Context(), entries, ID(h), entry, route.Manner{Insists: true})
				c.must(err)
			}
			c.now.Add(int64(time.Second))
			c.round()
			c.follow()
			if _, err := c.spaces[2].PutIf(t.Context(), key, []byte("next"), on); !errors.Is(err, ErrUnsure) {
				t.Errorf("while the record may come: %v", err)
			}
			c.pass(node.EntryPatience)
			c.follow()
			if _, err := c.spaces[2].PutIf(t.Context(), key, []byte("next"), on); err != nil {
				t.Errorf("once it has not come: %v", err)
			}
			if got, err := c.get(3, "key"); err != nil || got != "next" {
				t.Errorf("it reads %q, %v", got, err)
			}
		})
	}
}

// A deletion deletes an entry without a record. It does so, too, once a look-up is sure that the key has no record.
func TestDeletionOfAnEntryWithoutRecord(t *testing.T) {
	c := newWriterCluster(t, 3)
	key := []byte("key")
	c.entered(0, &dbadapter.Record{Key: key}, c.spaces[0].core.OwnShard(key))
	c.round()
	c.follow()
	_, _ = c.get(2, "key")
	c.pass(node.EntryPatience)
	c.follow()
	if _, err := c.get(2, "key"); !errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsure) {
		t.Errorf("it reads %v", err)
	}
	_, err := c.spaces[2].Delete(t.Context(), key)
	c.must(err)
	if entry, err := c.spaces[2].lookUpIn(t.Context(), c.spaces[2].core.Entries(key), key, true); err != nil || entry.Record == nil || !entry.Record.Deleted {
		t.Errorf("the entry: %+v, %v", entry.Record, err)
	}
}

// An item with a date between that of a record and that of an entry whose author has ended is written as of now, once that is sure.
func TestImportBetweenARecordAndAnEntry(t *testing.T) {
	c := newWriterCluster(t, 4)
	key := []byte("key")
	shard := c.spaces[0].core.OwnShard(key)
	_, err := c.put(0, "key", "first", route.All)
	c.must(err)
	c.follow()
	_, first := c.recordAt(c.holding("key", shard)[0], "key")
	c.now.Add(int64(time.Second))
	items := []Item{{Key: key, Value: []byte("dated"), Time: c.nodes[0].now().Truncate(time.Millisecond)}}
	c.now.Add(int64(time.Second))
	c.entered(1, &dbadapter.Record{Key: key}, shard, first)
	c.round()
	c.follow()
	if got, err := c.spaces[2].Import(t.Context(), sequence(items)); !errors.Is(err, ErrUnsure) {
		t.Errorf("while the record may come: %+v, %v", got, err)
	}
	c.pass(node.AbsentFor)
	c.follow()
	if got, err := c.spaces[2].Import(t.Context(), sequence(items), Acks(AckAll)); err != nil || got != (ImportResult{Items: 1, Written: 1, Late: 1}) {
		t.Errorf("once it has not come: %+v, %v", got, err)
	}
	if got, err := c.get(3, "key"); err != nil || got != "dated" {
		t.Errorf("it reads %q, %v", got, err)
	}
}

// An item with a date does not take the place of a put whose entry is there and whose record comes some seconds later.
func TestImportOverASlowPut(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	const key = "key"
	shard := c.spaces[0].core.OwnShard([]byte(key))
	hosts, rest := c.holding(key, shard), []int{}
	for i := range c.nodes {
		if !slices.Contains(hosts, i) {
			rest = append(rest, i)
		}
	}
	author, importer := rest[0], c.spaces[rest[1]]
	items := []Item{{Key: []byte(key), Value: []byte("dated"), Time: c.nodes[0].now().Truncate(time.Millisecond)}}
	c.now.Add(int64(time.Second))
	c.entered(0, &dbadapter.Record{Key: []byte(key)}, shard) // so that the put goes to hosts elsewhere
	c.round()
	c.follow()
	c.now.Add(int64(time.Second))
	came, released := make(chan struct{}, 64), make(chan struct{})
	for _, h := range hosts {
		c.hears(c.nodes[h], func(by ID, ask *wire.Ask) bool {
			if q, ok := ask.Question.(*wire.AskHold); ok && by == c.nodes[author].ID() && !q.Look && placement.Shard(q.Shard) == shard {
				came <- struct{}{}
				<-released
			}
			return true
		})
	}
	c.nodes[author].routing.close()
	ended := make(chan error, 1)
	go func() {
		_, err := c.spaces[author].Put(t.Context(), []byte(key), []byte("put"))
		ended <- err
	}()
	<-came
	entries := importer.core.Entries([]byte(key))
	both := c.holding(key, entries)
	for i, n := range both { // both hosts of the directory have the entry, and are sure of it
		sh, err := c.spaces[n].numbered(entries)
		c.must(err)
		_, err = sh.sync(t.Context(), c.nodes[both[1-i]].ID(), SyncOptions{})
		c.must(err)
	}
	for range 2 {
		c.follow()
		if got, err := importer.Import(t.Context(), sequence(items)); !errors.Is(err, ErrUnsure) {
			t.Errorf("while the put's record may come: %+v, %v", got, err)
		}
		c.pass(node.EntryPatience)
	}
	close(released)
	c.must(<-ended)
	c.round()
	c.follow()
	for i := range c.nodes {
		if got, err := c.get(i, key); err != nil || got != "put" {
			t.Errorf("node %d reads %q, %v", i, got, err)
		}
	}
}

// lookedBehind calls then once, when a look-up has asked all shards, and for the entry again.
type lookedBehind struct {
	byWriter
	entries, named placement.Shard
	then           func()

	mu    sync.Mutex // guards what follows
	asked bool       // another shard
}

func (d *lookedBehind) LookUpIn(ctx context.Context, in placement.Shard, key []byte, all bool) (lookedUp, error) {
	found, err := d.byWriter.LookUpIn(ctx, in, key, all)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch in {
	case d.named:
	case d.entries:
		if d.asked && d.then != nil {
			d.then()
			d.then = nil
		}
	default:
		d.asked = true
	}
	return found, err
}

// An item with a date is stale where the key is deleted later, also where that comes while the import looks behind an entry.
func TestImportBesideADeletionOfAnEntry(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key := []byte("key")
	importer, deleter := c.spaces[2], c.spaces[1]
	shard := c.spaces[0].core.OwnShard(key)
	items := []Item{{Key: key, Value: []byte("dated"), Time: c.nodes[0].now().Truncate(time.Millisecond)}}
	c.now.Add(int64(time.Second))
	c.entered(0, &dbadapter.Record{Key: key}, shard)
	c.round()
	c.follow()
	deleted := false
	importer.follows.byWriter = importer.core.NewByWriter(&lookedBehind{byWriter: byWriter{importer}, entries: importer.core.Entries(key), named: shard, then: func() {
		deleted = true
		c.now.Add(int64(time.Second))
		if _, err := deleter.Delete(t.Context(), key, Acks(AckAll)); err != nil {
			t.Error(err)
		}
	}})
	if got, err := importer.Import(t.Context(), sequence(items)); !errors.Is(err, ErrUnsure) {
		t.Errorf("while the record may come: %+v, %v", got, err)
	}
	c.pass(node.AbsentFor)
	c.follow()
	if got, err := importer.Import(t.Context(), sequence(items)); err != nil || got != (ImportResult{Items: 1, Stale: 1}) || !deleted {
		t.Errorf("beside the deletion, which has come %t: %+v, %v", deleted, got, err)
	}
	if got, err := c.get(3, "key"); !errors.Is(err, ErrDeleted) {
		t.Errorf("it reads %q, %v", got, err)
	}
}

// A write on a condition between whose entry and record a deletion has come that has not seen the entry, and has taken it away, is a
// conflict.
func TestConditionMeetsADeletionThatTakesItsEntry(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, asker, hosts, first := c.onTwo()
	shard, _ := c.recordAt(hosts[0], key)
	deleter := c.spaces[slices.IndexFunc(c.spaces, func(ns *Namespace) bool { return ns != asker && !slices.Contains(hosts, slices.Index(c.spaces, ns)) })]
	begun, released, deleted := make(chan struct{}, 64), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	for _, h := range hosts {
		c.hears(c.nodes[h], func(by ID, ask *wire.Ask) bool {
			q, ok := ask.Question.(*wire.AskHold)
			switch {
			case !ok || q.Look || placement.Shard(q.Shard) != shard:
			case by == deleter.node.ID():
				begun <- struct{}{}
				<-released
			case by == asker.node.ID():
				once.Do(func() {
					close(released)
					if err := <-deleted; err != nil {
						t.Error(err)
					}
				})
			}
			return true
		})
	}
	asker.node.routing.close()
	deleter.node.routing.close()
	c.now.Add(int64(time.Second)) // by the deleter's clock it is later
	go func() {
		_, err := deleter.Delete(t.Context(), []byte(key))
		deleted <- err
	}()
	<-begun
	c.now.Add(-int64(time.Second))
	if _, err := asker.PutIf(t.Context(), []byte(key), []byte("next"), first.Version); !errors.Is(err, ErrConflict) {
		t.Errorf("behind the deletion: %v", err)
	}
	for _, h := range hosts {
		c.serves(c.nodes[h])
	}
	c.round()
	c.follow()
	for i := range c.nodes {
		if got, err := c.get(i, key); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) || errors.Is(err, ErrUnsure) {
			t.Errorf("node %d reads %q, %v", i, got, err)
		}
	}
}
