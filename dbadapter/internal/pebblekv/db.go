package pebblekv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/examiner"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// db is an open database.
type db struct {
	pebble   *pebble.DB
	dir      string
	write    *pebble.WriteOptions
	examiner *examiner.Examiner
	patience *patience

	compacting atomic.Pointer[context.CancelCauseFunc] // ends the compaction that runs
}

// failed takes a failure of work in the background, which Pebble tries again, with
// pauses, for ever: a compaction that was asked for would never end.
func (d *db) failed(e Engine, err error) {
	if !pebble.IsCorruptionError(err) {
		logger{e.log()}.Errorf("%v", err)
		return
	}
	err = named(err)
	if end := d.compacting.Load(); end != nil {
		(*end)(err)
	}
	if e.Damaged != nil {
		e.Damaged(err)
		return
	}
	e.log().Error("pebble: the store is damaged", slog.Any("err", err))
}

func (d *db) View() kv.View {
	s := d.pebble.NewSnapshot()
	return view{reader{s}, s}
}

// Begin makes a batch whose memory is used again for the next one.
func (d *db) Begin() kv.Txn {
	return &txn{d, d.pebble.NewBatch(pebble.WithMaxRetainedSizeBytes(keptBatch))}
}

// keptBatch holds the largest transaction of a store: Pebble doubles the memory of a
// batch as it grows.
const keptBatch = 8 << 20

func (d *db) DropPrefix(prefix []byte) error {
	return d.commit(func() error { return d.pebble.DeleteRange(prefix, behind(prefix), d.write) })
}

// commit makes an error of Pebble's panic over a log that it cannot write.
func (d *db) commit(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return do()
}

// Size is that of all tables.
func (d *db) Size() int64 {
	m := d.pebble.Metrics().Total()
	return m.AggregateSize()
}

// Need counts the tables in memory. A compaction that finds no room is undone, and tried
// again; its room counts where writes would soon wait for it: that of the first level, and of
// the level below it.
func (d *db) Need(whole bool) int64 {
	m := d.pebble.Metrics()
	need := int64(m.MemTable.Size)
	if m.Levels[0].Sublevels >= stopWrites-memTables {
		need += m.Levels[0].TablesSize
		for _, l := range m.Levels[1:] {
			if l.TablesSize > 0 {
				need += l.TablesSize
				break
			}
		}
	}
	if whole {
		t := m.Total()
		need += t.AggregateSize()
	}
	return need
}

// Compact merges all tables. Pebble needs no filler for it.
func (d *db) Compact(ctx context.Context, _ kv.Commits) error {
	if err := d.pebble.Flush(); err != nil {
		return named(err)
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	d.compacting.Store(&end)
	defer d.compacting.Store(nil)
	err := d.pebble.Compact(running, []byte{0}, []byte{0xff}, false)
	if err != nil && ctx.Err() == nil {
		if cause := context.Cause(running); cause != nil {
			return cause
		}
		err = named(err)
	}
	return err
}

// Rest gives back memory.
func (*db) Rest() { trim() }

func (d *db) Close() error {
	d.examiner.Close()
	d.patience.end.Do(func() { close(d.patience.closed) })
	if d.patience.waiting.Load() > 0 {
		return kv.ErrLeft
	}
	return d.commit(d.pebble.Close)
}

// behind is the least key that is greater than all with a prefix; nil if there is
// no such key.
func behind(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// source is a database, or a snapshot of one.
type source interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
	NewIter(o *pebble.IterOptions) (*pebble.Iterator, error)
}

type reader struct{ from source }

func (r reader) Get(key []byte, use func([]byte) error) (found bool, err error) {
	defer damage.Recovered("database", &err)
	value, closer, err := r.from.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, named(err)
	}
	defer closer.Close()
	return true, use(value)
}

// view is a snapshot.
type view struct {
	reader
	snapshot *pebble.Snapshot
}

func (v view) Iterate(prefix []byte) kv.Iterator {
	it, err := v.snapshot.NewIter(&pebble.IterOptions{LowerBound: bytes.Clone(prefix), UpperBound: behind(prefix)})
	return &iterator{it: it, err: err}
}

// Find makes an iterator, which keeps the tables at hand that Get would open for each
// key, and asks the filters of all of them: most keys that are looked up are not there.
func (v view) Find() kv.Finder {
	it, err := v.snapshot.NewIter(&pebble.IterOptions{UseL6Filters: true})
	return &finder{iterator{it: it, err: err}}
}

type finder struct{ iterator }

func (f *finder) Get(key []byte, use func([]byte) error) (found bool, err error) {
	f.move(func() bool { return f.it.SeekPrefixGE(key) })
	if !f.Valid() {
		return false, f.Err()
	}
	return true, f.Value(use)
}

// Close fails over an iterator that is open, which would be our own bug.
func (v view) Close() { _ = v.snapshot.Close() }

// iterator keeps the first error; from there on it is not valid.
type iterator struct {
	it  *pebble.Iterator // nil if it could not be made
	err error
}

func (i *iterator) move(to func() bool) {
	defer damage.Recovered("database", &i.err)
	if i.err == nil && !to() {
		i.err = i.it.Error()
	}
}

func (i *iterator) Seek(key []byte) { i.move(func() bool { return i.it.SeekGE(key) }) }
func (i *iterator) Next()           { i.move(i.it.Next) }
func (i *iterator) Valid() bool     { return i.err == nil && i.it.Valid() }
func (i *iterator) Key() []byte     { return i.it.Key() }

func (i *iterator) Value(use func([]byte) error) error {
	value, err := i.it.ValueAndErr()
	if err != nil {
		return named(err)
	}
	return use(value)
}

func (i *iterator) Err() error {
	if i.err == nil {
		return nil
	}
	return named(i.err)
}

// Close returns no error: an iterator repeats in it the one of its last move.
func (i *iterator) Close() {
	if i.it != nil {
		_ = i.it.Close()
	}
}

// txn is a batch.
type txn struct {
	db    *db
	batch *pebble.Batch // nil once given back: Pebble uses batches again
}

func (t *txn) Set(key, value []byte) error { return t.batch.Set(key, value, nil) }
func (t *txn) Delete(key []byte) error     { return t.batch.Delete(key, nil) }
func (t *txn) Commit() error {
	return t.db.commit(func() error { return t.batch.Commit(t.db.write) })
}

func (t *txn) Discard() {
	if t.batch != nil {
		_ = t.batch.Close()
		t.batch = nil
	}
}
