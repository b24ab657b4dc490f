package bfield

import (
	"errors"
	"fmt"
	"time"
)

const (
	// freshPart: a repair is due at once when the keys inserted since the last
	// one are this part of those planned.
	freshPart = 16
	// exceptionPart and leastExceptions: a rebuild is due when the exceptions are
	// more than this part of the keys planned, and more than this many.
	exceptionPart   = 16
	leastExceptions = 1024
)

// keep owns the maintenance of a Mutable until Close. All repairs and rebuilds run in its
// goroutine, one after the other. It begins those that are due by itself.
func (m *Mutable) keep(s schedule) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.stop:
			return
		case done := <-m.asked:
			done <- m.mend()
			continue
		case <-m.wake:
			if s.delay < 0 {
				continue // repaired by Repair only
			}
			s.written(time.Now(), m.urgent())
		case <-timer.C:
		}
		now := time.Now()
		if s.due.IsZero() {
			continue
		}
		if s.due.After(now) {
			timer.Reset(s.due.Sub(now))
			continue
		}
		urgent, begun := m.urgent(), now
		err := m.mend()
		if errors.Is(err, ErrClosed) {
			return
		}
		m.failed, now = err, time.Now()
		s.ended(now, now.Sub(begun), urgent, m.failed)
		if !s.due.IsZero() {
			timer.Reset(s.due.Sub(now))
		}
	}
}

func (m *Mutable) urgent() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.full() || m.fresh > m.field.plan.Keys/freshPart
}

// full reports whether a rebuild is due. The caller holds mu.
func (m *Mutable) full() bool {
	planned := m.field.plan.Keys
	return m.field.levels[0].keys > planned || uint64(len(m.exceptions)) > few(planned) || m.repeats > max(leastExceptions, planned)
}

// few is how many exceptions a field for so many keys bears. The same holds for
// repetitions in a log that was just scanned.
func few(planned uint64) uint64 { return max(leastExceptions, planned/exceptionPart) }

// Repair makes each key that was inserted before answer its value, and rebuilds
// the field if it is full. It does what the background does, at once.
func (m *Mutable) Repair() error {
	done := make(chan error, 1)
	select {
	case m.asked <- done:
		return <-done
	case <-m.stop:
		return ErrClosed
	}
}

func (m *Mutable) mend() error {
	if m.isClosed() {
		return ErrClosed
	}
	m.mu.RLock()
	full := m.full()
	m.mu.RUnlock()
	if full {
		return m.rebuild(true)
	}
	return m.repair()
}

// chunks yields the first n records of the log in pieces.
func (m *Mutable) chunks(n uint64, each func([]Record)) error {
	chunk := make([]Record, 0, chunkEntries)
	for r, err := range m.log.Records(0) {
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if r.Op < Inserted || r.Op > Removed || r.Value >= m.values {
			return fmt.Errorf("a record with operation %d and value %d: %w", r.Op, r.Value, ErrLog)
		}
		n--
		if chunk = append(chunk, r); len(chunk) == chunkEntries {
			each(chunk)
			chunk = chunk[:0]
			if m.isClosed() {
				return ErrClosed
			}
		}
	}
	each(chunk)
	if n > 0 {
		return fmt.Errorf("%d records are missing at the end: %w", n, ErrLog)
	}
	return nil
}

// repair scans the log and makes new secondary arrays for the keys that are
// indeterminate now. The old ones serve meanwhile.
func (m *Mutable) repair() error {
	m.writing.Lock()
	m.mu.RLock()
	logged, fresh, repaired := m.log.Len(), m.fresh, m.field.repaired
	m.mu.RUnlock()
	m.writing.Unlock()
	if repaired {
		return nil
	}
	if err := m.rescan(logged, fresh); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

// rescan is repair by the first records of the log, of which so many are fresh.
func (m *Mutable) rescan(logged, fresh uint64) error {
	var pending []undecided
	var chunk [chunkEntries]entry
	err := m.chunks(logged, func(records []Record) {
		m.mu.RLock()
		defer m.mu.RUnlock()
		entries := chunk[:0]
		for _, r := range records {
			// Exceptions need no array, and have no marker of this value.
			if _, ok := m.exceptions[r.key()]; r.Op == Inserted && !ok {
				entries = append(entries, entry{r.key(), r.Value})
			}
		}
		pending = m.field.undecided(pending, entries)
	})
	if err != nil {
		return err
	}
	// Only what does not change is read of the field from here on, but for the
	// last step.
	secondary, twice, err := m.field.secondary(pending)
	if err != nil {
		return err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	last, err := m.lastOf(twice, logged)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, value := range last {
		if _, ok := m.exceptions[k]; !ok {
			m.exceptions[k] = exception{value: value}
		}
	}
	m.field.levels = append(m.field.levels[:1:1], secondary...)
	m.fresh -= fresh
	m.field.repaired = m.fresh == 0
	return nil
}

// lastOf returns the last value of each key that was inserted with several.
// The caller holds writing.
func (m *Mutable) lastOf(twice []entry, logged uint64) (map[key]uint64, error) {
	if len(twice) == 0 {
		return nil, nil
	}
	last := map[key]uint64{}
	for _, e := range twice {
		last[e.key] = e.value
	}
	for r, err := range m.log.Records(logged) {
		if err != nil {
			return nil, err
		}
		if _, ok := last[r.key()]; ok && r.Op != Removed {
			last[r.key()] = r.Value
		}
	}
	return last, nil
}
