package kvstore

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// stagedPart is a part whose entries stand in the running transaction.
type stagedPart struct {
	namespace *namespace
	meta      meta
	changes   []dbadapter.Change
}

// stage puts a part's records, buckets, log entries and head into the
// transaction. The slices it hands over stay as they are until the commit.
func (c *committer) stage(txn kv.Txn, p part) (stagedPart, error) {
	n, m := p.namespace, p.namespace.meta
	changes := p.group.Changes(m.Seq)
	for i, b := range p.group.Touched() {
		for j := range b.Held {
			if it := b.Held[j].Item; it != nil {
				if err := stageRecord(txn, n.number, b, it); err != nil {
					return stagedPart{}, err
				}
			}
		}
		for _, h := range b.Removed() {
			if err := stageRemoval(txn, n.number, &h.Record); err != nil {
				return stagedPart{}, err
			}
		}
		m.Records += uint64(changes[i].Records)
		m.Digest = m.Digest.Add(changes[i].Delta)
		key := c.grow(func(a []byte) []byte { return appendIndexKey(a, n.number, b.Index) })
		if len(b.Held) == 0 {
			if err := txn.Delete(key); err != nil {
				return stagedPart{}, err
			}
			continue
		}
		value := c.grow(func(a []byte) []byte {
			return appendBucket(a, n.number, b.Index, changes[i].New, b.Held)
		})
		if err := txn.Set(key, value); err != nil {
			return stagedPart{}, err
		}
	}
	if m.ahead != 0 {
		m.ahead = 0 // they are there
	} else if err := c.stageKept(txn, n.number, &m.Kept, p.group.Leavers()); err != nil {
		return stagedPart{}, err
	}
	for rest := changes; len(rest) > 0; {
		some := rest[:layout.LogEntry(rest)]
		rest = rest[len(some):]
		last := some[len(some)-1].Seq
		key := c.grow(func(a []byte) []byte { return appendLogKey(a, n.number, last) })
		value := c.grow(func(a []byte) []byte { return layout.AppendLogEntry(a, n.number, some) })
		if err := txn.Set(key, value); err != nil {
			return stagedPart{}, err
		}
	}
	m.Seq += uint64(len(changes))
	m.Latest = max(m.Latest, p.group.Latest())
	if err := txn.Set(metaKey(n.number), m.encode(n.number)); err != nil {
		return stagedPart{}, err
	}
	return stagedPart{n, m, changes}, nil
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
