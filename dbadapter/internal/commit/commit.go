// Package commit decides what a batch of writes does to a namespace: which
// records win, which conditions fail, and how each bucket changes. It holds no
// data and no lock; a store hands it the records held and stores what it says.
// Every store uses it, so that no two stores decide differently.
//
// A Group is what one transaction of the store commits: the batches of one or more
// callers. They are decided one after another, each seeing what those before it have
// done.
package commit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Item is one write, prepared outside the store's lock.
type Item struct {
	Record dbadapter.Hashed
	If     *dbadapter.Version
	Must   bool
	Action dbadapter.Action
	Past   dbadapter.Timestamp
	// Stored is the store's own form of the record; this package only carries
	// it through to Held.
	Stored []byte
}

// Held is one record of a bucket. Item is nil for a record that was there
// before the group, else the write that put it there.
type Held struct {
	Record dbadapter.Hashed
	Item   *Item
}

// Bucket is the state of one index.
type Bucket struct {
	Index dbadapter.Index
	// Held are the records after the group, by key; it is replaced, never
	// changed in place, so that was stays what it was.
	Held []Held
	// was are the records before the group.
	was []Held
	// touched: a write was applied; at is then the place among the group's.
	touched bool
	at      int
	// err says why the records could not be read.
	err error
}

// Before is the record that a key held before the group.
func (b *Bucket) Before(key []byte) (Held, bool) {
	if at, ok := find(b.was, key); ok {
		return b.was[at], true
	}
	return Held{}, false
}

// changed appends the keys that the group has changed, in ascending order. shared: the
// bucket holds others.
func (b *Bucket) changed(keys [][]byte) (_ [][]byte, shared bool) {
	was := b.was
	for i := range b.Held {
		h := &b.Held[i]
		for len(was) > 0 && bytes.Compare(was[0].Record.Key, h.Record.Key) < 0 {
			keys, was = append(keys, was[0].Record.Key), was[1:]
		}
		same := false
		if len(was) > 0 && bytes.Equal(was[0].Record.Key, h.Record.Key) {
			same, was = was[0].Record.Digest == h.Record.Digest, was[1:]
		}
		if same {
			shared = true
		} else {
			keys = append(keys, h.Record.Key)
		}
	}
	for i := range was {
		keys = append(keys, was[i].Record.Key)
	}
	return keys, shared
}

// Removed are the records that a key held before the group, where it holds no
// record after it.
func (b *Bucket) Removed() (removed []Held) {
	for _, h := range b.was {
		if _, ok := find(b.Held, h.Record.Key); !ok {
			removed = append(removed, h)
		}
	}
	return removed
}

// Leaver is a record that leaves the set for the kept log.
type Leaver struct {
	Why    dbadapter.Why
	Record dbadapter.Hashed
	By     dbadapter.Version
}

// Size is how much the leaver counts for.
func (l *Leaver) Size() int { return len(l.Record.Key) + len(l.Record.Value) }

// Prepare checks a batch against the limits. The items refer to the caller's
// slices.
func Prepare(writes []dbadapter.Write) ([]Item, error) {
	if len(writes) > dbadapter.MaxBatch {
		return nil, fmt.Errorf("apply %d writes: %w: at most %d go in one batch; split it",
			len(writes), dbadapter.ErrLimit, dbadapter.MaxBatch)
	}
	size := 0
	for i := range writes {
		r := &writes[i].Record
		if r.Index == 0 {
			return nil, fmt.Errorf("apply write %d of %d: its record was not made by Hash", i+1, len(writes))
		}
		switch action := writes[i].Action; {
		case action == dbadapter.Replace && writes[i].If == nil:
			return nil, fmt.Errorf("apply write %d of %d: it replaces a record without naming its version", i+1, len(writes))
		case action > dbadapter.SetAside:
			return nil, fmt.Errorf("apply write %d of %d: it has an unknown action, %d", i+1, len(writes), action)
		}
		size += r.Weight()
	}
	if size > dbadapter.MaxBatchBytes {
		return nil, fmt.Errorf("apply %d writes of %d bytes, keys counted twice: %w: at most %d go in one batch; split it",
			len(writes), size, dbadapter.ErrLimit, dbadapter.MaxBatchBytes)
	}
	items := make([]Item, len(writes))
	for i := range writes {
		items[i] = Item{Record: writes[i].Record, If: writes[i].If, Must: writes[i].Must, Action: writes[i].Action, Past: writes[i].Past}
	}
	return items, nil
}

// Checksum stands for a bucket's records; 0 stands for an empty bucket.
func Checksum(h dbadapter.Hasher, held []Held) dbadapter.Checksum {
	var b dbadapter.Bucket
	for i := range held {
		b.Add(&held[i].Record)
	}
	return b.Pair(h).Checksum
}

// find is the place of a key among a bucket's records.
func find(held []Held, key []byte) (int, bool) {
	return slices.BinarySearchFunc(held, key, func(h Held, key []byte) int {
		return bytes.Compare(h.Record.Key, key)
	})
}
