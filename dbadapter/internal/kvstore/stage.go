package kvstore

import (
	"bytes"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// stage puts a part's buckets, log entries, records and head into the transaction. The
// slices it hands over stay as they are until the commit.
//
// beside: others follow without a pause, and what the change log need not keep any more
// goes with the transaction.
//
// Buckets and records come in the order of their keys: a database sorts what it is given
// by searching its table in memory for the place of each entry, which is found at once
// behind the place of the one before.
func (c *committer) stage(txn kv.Txn, p *part, beside bool) error {
	n, m, touched := p.Namespace, &p.Meta, p.Group.Touched()
	p.Count(n.Meta)
	for i := range p.Group.ByIndex() {
		if err := c.stageBucket(txn, n.Number, touched[i], p.Changes[i].New); err != nil {
			return err
		}
	}
	if m.Own != 0 {
		m.Own = 0 // they are there
	} else if err := c.stageKept(txn, n.Number, &m.Kept, p.Group.Leavers()); err != nil {
		return err
	}
	for some := range layout.LogEntries(p.Changes) {
		last := some[len(some)-1].Seq
		key := c.grow(func(a []byte) []byte { return appendLogKey(a, n.Number, last) })
		value := c.grow(func(a []byte) []byte { return layout.AppendLogEntry(a, n.Number, some) })
		if err := txn.Set(key, value); err != nil {
			return err
		}
	}
	if err := c.stageRecords(txn, n.Number, touched); err != nil {
		return err
	}
	if beside {
		if err := c.stageTrim(txn, n, m); err != nil {
			return err
		}
	}
	return txn.Set(metaKey(n.Number), m.Encode(n.Number))
}

func (c *committer) stageBucket(txn kv.Txn, number uint32, b *commit.Bucket, sum dbadapter.Checksum) error {
	key := c.grow(func(a []byte) []byte { return appendIndexKey(a, number, b.Index) })
	if len(b.Held) == 0 {
		return txn.Delete(key)
	}
	return txn.Set(key, c.grow(func(a []byte) []byte { return appendBucket(a, number, b.Index, sum, b.Held) }))
}

// stageRecords puts the records that the buckets have gained into the transaction, and
// takes out those that they have lost.
func (c *committer) stageRecords(txn kv.Txn, number uint32, touched []*commit.Bucket) error {
	c.puts = c.puts[:0]
	for _, b := range touched {
		for j := range b.Held {
			if it := b.Held[j].Item; it != nil {
				c.puts = append(c.puts, put{b, it})
			}
		}
		for _, h := range b.Removed() {
			if err := stageRemoval(txn, number, &h.Record); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(c.puts, func(a, b put) int { return bytes.Compare(a.item.Record.Key, b.item.Record.Key) })
	for _, p := range c.puts {
		if err := stageRecord(txn, number, p.bucket, p.item); err != nil {
			return err
		}
	}
	clear(c.puts)
	return nil
}

// put is a record to be written, and its bucket.
type put struct {
	bucket *commit.Bucket
	item   *commit.Item
}

// stageRecord puts a record into the transaction, cut in two if it is long, and
// takes away the tail of a long one that it replaces.
func stageRecord(txn kv.Txn, number uint32, b *commit.Bucket, it *commit.Item) error {
	at := prefixSize + len(it.Record.Key)
	key, envelope := it.Stored[:at:at], it.Stored[at:]
	if isLong(&it.Record.Record) {
		if err := txn.Set(tailKey(number, it.Record.Key), envelope[cut:]); err != nil {
			return err
		}
		envelope = envelope[:cut]
	} else if held, ok := b.Before(it.Record.Key); ok && isLong(&held.Record.Record) {
		if err := txn.Delete(tailKey(number, it.Record.Key)); err != nil {
			return err
		}
	}
	return txn.Set(key, envelope)
}

// stageRemoval takes a record out of the database.
func stageRemoval(txn kv.Txn, number uint32, r *dbadapter.Hashed) error {
	if isLong(&r.Record) {
		if err := txn.Delete(tailKey(number, r.Key)); err != nil {
			return err
		}
	}
	return txn.Delete(append(appendPrefix(make([]byte, 0, prefixSize+len(r.Key)), number, kindRecord), r.Key...))
}

// grow appends to the arena and returns what was appended. Growing the arena
// leaves earlier pieces where they are, in the old memory.
func (c *committer) grow(app func([]byte) []byte) []byte {
	start := len(c.arena)
	c.arena = app(c.arena)
	return c.arena[start:len(c.arena):len(c.arena)]
}
