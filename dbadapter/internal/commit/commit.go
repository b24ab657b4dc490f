// Package commit decides what a batch of writes does to a namespace: which
// records win, which conditions fail, and how each bucket changes. It holds no
// data and no lock; a store hands it the records held and stores what it says.
// Every store uses it, so that no two stores decide differently.
//
// A Group is what one transaction of the store commits: the batches of one or
// more callers, decided one after another, each seeing what those before it
// have done.
package commit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// Item is one write, prepared outside the store's lock.
type Item struct {
	Index  dbadapter.Index
	Digest dbadapter.Digest
	Record dbadapter.Record
	If     *dbadapter.Version
	// Stored is the store's own form of the record; this package only carries
	// it through to Held.
	Stored []byte
}

// Held is one record of a bucket. Item is nil for a record that was there
// before the group, else the write that put it there.
type Held struct {
	Record dbadapter.Record
	Digest dbadapter.Digest
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
	// last is the key written last; nil while nothing was.
	last []byte
	// err says why the records could not be read.
	err error
}

// Checksum stands for the records of the bucket after the group.
func (b *Bucket) Checksum(h dbadapter.Hasher) dbadapter.Checksum { return Checksum(h, b.Held) }

// Before is the record that a key held before the group.
func (b *Bucket) Before(key []byte) (Held, bool) {
	if at, ok := find(b.was, key); ok {
		return b.was[at], true
	}
	return Held{}, false
}

// Prepare checks a batch against the limits and hashes its records. The items
// refer to the caller's slices.
func Prepare(h dbadapter.Hasher, writes []dbadapter.Write) ([]Item, error) {
	if len(writes) > dbadapter.MaxBatch {
		return nil, fmt.Errorf("apply %d writes: %w: at most %d go in one batch; split it",
			len(writes), dbadapter.ErrLimit, dbadapter.MaxBatch)
	}
	size := 0
	for i := range writes {
		r := &writes[i].Record
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("apply write %d of %d: %w", i+1, len(writes), err)
		}
		size += len(r.Key) + len(r.Value)
	}
	if size > dbadapter.MaxBatchBytes {
		return nil, fmt.Errorf("apply %d writes of %d bytes: %w: at most %d bytes of keys and values go in one batch; split it",
			len(writes), size, dbadapter.ErrLimit, dbadapter.MaxBatchBytes)
	}
	items := make([]Item, len(writes))
	for i := range writes {
		w := &writes[i]
		items[i] = Item{Index: h.Index(w.Record.Key), Digest: h.Digest(&w.Record), Record: w.Record, If: w.If}
	}
	return items, nil
}

// Checksum stands for a bucket's records; 0 if there are none.
func Checksum(h dbadapter.Hasher, held []Held) dbadapter.Checksum {
	if len(held) == 0 {
		return 0
	}
	var stack [4]dbadapter.Digest
	digests, latest := stack[:0], dbadapter.Timestamp(0)
	for i := range held {
		digests = append(digests, held[i].Digest)
		latest = max(latest, held[i].Record.Version.Clock)
	}
	return h.Checksum(latest, digests)
}

// find is the place of a key among a bucket's records.
func find(held []Held, key []byte) (int, bool) {
	return slices.BinarySearchFunc(held, key, func(h Held, key []byte) int {
		return bytes.Compare(h.Record.Key, key)
	})
}
