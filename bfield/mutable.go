package bfield

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// MutableConfig says what a Mutable is for.
type MutableConfig struct {
	// Config of the field. Keys may be exceeded. A Seed other than the log's is
	// refused with ErrLog.
	Config
	// Log keeps what was inserted. It stays the caller's to close, after Close.
	Log Log
	// RepairDelay is how long an insertion waits at most for a repair to begin. If
	// 15 times the duration of the last repair is more, that holds: repairs of few
	// keys take a sixteenth of a processor. 0 stands for one second; below 0 only
	// Repair repairs. Whatever it is, Close ends a goroutine.
	RepairDelay time.Duration
}

// Mutable is a field that changes. Keys are inserted, removed, and change
// their values, while any number of goroutines look up.
//
//	            ┌──────────────► log (durable) ──────────┐ scan
//	insert ─────┤                                        ▼
//	            └─► Array 0       indeterminate keys → Array 1, 2, …
//	change, remove ─► log, and a list of exceptions, until a rebuild
//
// An insertion is logged and marked in the primary array. A goroutine in the
// background scans the log. It makes secondary arrays for the keys that the
// primary one leaves indeterminate. Till then such keys are answered
// Indeterminate; so are keys that the insertion of others made indeterminate.
//
// Bits cannot be taken out of an array. So changed and removed keys are kept as
// exceptions, 48 bytes each or so. When they or the keys are too many, the same
// goroutine builds the field anew from the log, for more keys. During a repair, β·n
// keys are in memory, 32 bytes each. A rebuild also holds those that were changed,
// removed or inserted several times, 48 bytes each or so.
type Mutable struct {
	seed
	log    Log
	values uint64 // θ

	// An append to the log holds writing until the field shows the records. A
	// repair or a rebuild holds it while it notes how many records there are, and
	// at its end. It is taken before mu.
	writing sync.Mutex

	mu         sync.RWMutex // guards what follows
	field      *Field       // this and exceptions change under writing, too
	exceptions map[key]exception
	fresh      uint64 // insertions that no repair has seen
	repeats    uint64 // insertions, since the last rebuild, of what was there already

	wake    chan struct{}   // holds one at most: something was written
	asked   chan chan error // a call of Repair, which waits for the result
	closing sync.Once       // closes stop
	stop    chan struct{}
	kept    sync.WaitGroup // the goroutine of keep
	failed  error          // of the last repair that was due; that goroutine's
}

// exception is what became of a key, in place of what the arrays say.
type exception struct {
	value   uint64
	removed bool
}

// ErrClosed is returned after Close by the methods of a Mutable that use the
// log. Those that Close interrupts return it, too.
var ErrClosed = errors.New("bfield: closed")

// OpenMutable builds the field that the log describes, and starts to maintain it.
func OpenMutable(c MutableConfig) (*Mutable, error) {
	if c.Log == nil {
		return nil, fmt.Errorf("open a mutable field without a log: %w", ErrConfig)
	}
	if c.Log.Seed() != c.Seed {
		return nil, fmt.Errorf("open a mutable field with seed %d on the log of one with seed %d: give it the log's: %w", c.Seed, c.Log.Seed(), ErrLog)
	}
	if c.RepairDelay == 0 {
		c.RepairDelay = time.Second
	}
	plan, err := NewPlan(c.Config)
	if err != nil {
		return nil, err
	}
	m := &Mutable{
		seed: seed(c.Seed), values: c.Values, log: c.Log, field: newField(plan, c.Seed, c.Workers), exceptions: map[key]exception{},
		wake: make(chan struct{}, 1), asked: make(chan chan error), stop: make(chan struct{}),
	}
	if c.Log.Len() > 0 {
		if err := m.rebuild(false); err != nil {
			return nil, fmt.Errorf("open a mutable field: %w", err)
		}
	}
	m.kept.Go(func() { m.keep(schedule{delay: c.RepairDelay}) })
	return m, nil
}

// Insert logs that a key has a value, and adds it. If the key was inserted before
// with another value, the last one holds once that is repaired; Change makes it
// hold at once. With the same value nothing changes but the log. It is compacted
// when it has as many repetitions as keys are planned.
func (m *Mutable) Insert(key keyed.Key, value uint64) error {
	return m.write([]Record{record(Inserted, m.keyOf(key), value)})
}

// InsertBatch inserts many keys with one append to the log. Look-ups may see the
// first of them before the others.
func (m *Mutable) InsertBatch(keys keyed.List, values []uint64) error {
	if keys.Len() != len(values) {
		return fmt.Errorf("insert %d keys with %d values: %w", keys.Len(), len(values), ErrConfig)
	}
	records := make([]Record, len(values))
	for i, v := range values {
		records[i] = record(Inserted, m.keyOf(keys.At(i)), v)
	}
	return m.write(records)
}

// Change gives an inserted key another value.
func (m *Mutable) Change(key keyed.Key, value uint64) error {
	return m.write([]Record{record(Changed, m.keyOf(key), value)})
}

// Remove takes a key out: it is Absent. After the next rebuild it is like any
// key that was never inserted.
func (m *Mutable) Remove(key keyed.Key) error {
	return m.write([]Record{record(Removed, m.keyOf(key), 0)})
}

func record(op Op, k key, value uint64) Record { return Record{op, [2]uint64{k.a, k.b}, value} }

func (r Record) key() key { return key{r.Key[0], r.Key[1]} }

// write logs records and then shows them.
func (m *Mutable) write(records []Record) error {
	for _, r := range records {
		if r.Value >= m.values {
			return fmt.Errorf("value %d: the values go from 0 to %d: %w", r.Value, m.values-1, ErrValue)
		}
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.isClosed() {
		return ErrClosed
	}
	if err := m.log.Append(records); err != nil {
		return fmt.Errorf("log %d records: %w", len(records), err)
	}
	// Look-ups come in between: a large batch does not hold them up.
	for part := range slices.Chunk(records, chunkEntries) {
		m.mu.Lock()
		for _, r := range part {
			m.show(r)
		}
		m.mu.Unlock()
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return nil
}

func (m *Mutable) isClosed() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// show brings the field up to a record. The caller holds mu.
func (m *Mutable) show(r Record) {
	_, excepted := m.exceptions[r.key()]
	switch {
	case r.Op == Removed:
		m.exceptions[r.key()] = exception{removed: true}
	case r.Op == Changed || excepted:
		m.exceptions[r.key()] = exception{value: r.Value}
	case m.field.answers(entry{r.key(), r.Value}):
		m.repeats++
	default:
		m.field.mark(entry{r.key(), r.Value})
		m.fresh++
	}
}

// Lookup returns the value of a key, as Field.Lookup does.
func (m *Mutable) Lookup(key keyed.Key) (uint64, Answer) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k := m.keyOf(key)
	if e, ok := m.exceptions[k]; ok {
		if e.removed {
			return 0, Absent
		}
		return e.value, Found
	}
	return m.field.lookup(k)
}

// Candidates returns the values that a key may have, as Field.Candidates does.
func (m *Mutable) Candidates(key keyed.Key) []uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k := m.keyOf(key)
	if e, ok := m.exceptions[k]; ok {
		if e.removed {
			return nil
		}
		return []uint64{e.value}
	}
	return m.field.candidates(k)
}

// MutableStats are counts of a Mutable.
type MutableStats struct {
	Stats
	Exceptions int    // keys changed or removed since the last rebuild
	LogRecords uint64 // in the log
	Fresh      uint64 // insertions that no repair has seen
}

// Stats returns the field's counts. Keys counts markers: a changed key counts
// once, a removed one until the next rebuild.
func (m *Mutable) Stats() MutableStats {
	// The log may be busy with an fsync. A look-up would wait for that if Len
	// were called under mu: it waits for a writer that waits for a reader.
	records := m.log.Len()
	m.mu.RLock()
	defer m.mu.RUnlock()
	return MutableStats{m.field.Stats(), len(m.exceptions), records, m.fresh}
}

// Close stops the background and waits for it, and for all calls that use the
// log. It returns why the background had given up, if it had. Look-ups go on;
// the log stays open. It may be called several times, also at once.
func (m *Mutable) Close() error {
	m.closing.Do(func() { close(m.stop) })
	m.kept.Wait()
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.failed
}
