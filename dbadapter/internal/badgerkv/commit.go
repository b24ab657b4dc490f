package badgerkv

import (
	"errors"
	"strconv"

	"github.com/dgraph-io/badger/v4/pb"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// batch is what one commit writes, in the order in which it goes into Badger's table in
// memory.
type batch struct {
	entries []entry
	size    int // as Badger counts it
}

type entry struct {
	key, value []byte
	deleted    bool
}

func (b *batch) add(e entry) {
	b.entries = append(b.entries, e)
	b.size += len(e.key) + len(e.value) + kv.EntryBytes
}

// largeCommit is from how many entries on a commit goes past Badger's transactions. These
// gather what they write in a map, of which it comes in no order: of 8,192 entries each
// takes twice as long. What goes past them takes some hundred KiB of memory for the
// largest commit that there may be.
const largeCommit = 1024

// fits reports whether a batch has room for an entry more, beside the mark of its end.
func (d *db) fits(b *batch, key, value []byte) bool {
	return int64(len(b.entries))+2 < d.badger.MaxBatchCount() &&
		int64(b.size+len(key)+len(value)+kv.EntryBytes+finBytes) < d.badger.MaxBatchSize()
}

// finBytes is more than what the mark of a commit's end takes.
const finBytes = 64

// commit writes a batch, and returns when it is on the disk.
func (d *db) commit(b *batch) error {
	if len(b.entries) == 0 {
		return nil
	}
	if err := d.lost(); err != nil {
		return err
	}
	return d.times.commit(func(time uint64) error {
		if len(b.entries) < largeCommit {
			return d.commitSmall(b, time)
		}
		return d.commitLarge(b, time)
	})
}

func (d *db) commitSmall(b *batch, time uint64) error {
	txn := d.badger.NewTransactionAt(time-1, true)
	defer txn.Discard()
	for _, e := range b.entries {
		var err error
		if e.deleted {
			err = txn.Delete(e.key)
		} else {
			err = txn.Set(e.key, e.value)
		}
		if err != nil {
			return err
		}
	}
	return txn.CommitAt(time, nil)
}

// commitLarge hands Badger the entries as it would log those of a transaction: each says
// that it is a part of one, and behind them stands the mark of its end, without which
// none of them is there after a power cut (probe_log.go). Badger's own restoring of
// backups is the way to do so.
func (d *db) commitLarge(b *batch, time uint64) error {
	l := d.badger.NewKVLoader(1)
	part := [...]byte{txnMark}
	gone := [...]byte{txnMark | deletedMark}
	e := pb.KV{Version: time}
	for i := range b.entries {
		e.Key, e.Value, e.Meta = b.entries[i].key, b.entries[i].value, part[:]
		if b.entries[i].deleted {
			e.Meta = gone[:]
		}
		if err := l.Set(&e); err != nil {
			return err
		}
	}
	e.Key, e.Value, e.Meta = finKey, strconv.AppendUint(nil, time, 10), []byte{finMark}
	return errors.Join(l.Set(&e), l.Finish())
}

// txn is a transaction that writes.
type txn struct {
	db    *db
	batch batch
}

// Begin uses the memory of the entries of another transaction again: Badger keeps none of
// it behind a commit.
func (d *db) Begin() kv.Txn {
	t := &txn{db: d}
	if used, ok := d.entries.Get().(*[]entry); ok {
		t.batch.entries = *used
	}
	return t
}

func (t *txn) Set(key, value []byte) error { return t.add(entry{key: key, value: value}) }
func (t *txn) Delete(key []byte) error     { return t.add(entry{key: key, deleted: true}) }

func (t *txn) add(e entry) error {
	if !t.db.fits(&t.batch, e.key, e.value) {
		return kv.ErrTooBig
	}
	t.batch.add(e)
	return nil
}

func (t *txn) Commit() error {
	defer t.Discard()
	return t.db.commit(&t.batch)
}

func (t *txn) Discard() {
	if used := t.batch.entries; cap(used) > 0 {
		clear(used)
		used = used[:0]
		t.db.entries.Put(&used)
		t.batch = batch{}
	}
}
