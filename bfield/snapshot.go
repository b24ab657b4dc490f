package bfield

import (
	"fmt"
	"maps"
)

// Snapshot returns a repaired and sealed copy of the field, to Save, with all
// that was written before the call. Look-ups and writes go on; they wait for a
// copy of the primary array at most. The Mutable stays as it is.
func (m *Mutable) Snapshot() (*Field, error) {
	var f *Field
	// No rebuild replaces the log meanwhile.
	err := m.ask(func() (err error) {
		f, err = m.snapshot()
		return err
	})
	return f, err
}

func (m *Mutable) snapshot() (*Field, error) {
	f, exceptions, logged, err := m.now()
	if err != nil {
		return nil, err
	}
	var twice map[key]exception
	if len(exceptions) == 0 {
		if twice, err = m.complete(f, logged, nil); err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
		if len(twice) == 0 {
			return f, nil
		}
	}
	// Keys that have had several values have markers of them all: another array
	// is made, without. Those whose records are insertions alone are found by
	// filling it.
	last := map[key]exception{}
	for k := range exceptions {
		last[k] = exception{removed: true}
	}
	if _, err := m.superseded(logged, last); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	for {
		maps.Copy(last, twice)
		f = newField(f.plan, uint64(m.seed), f.workers)
		f.sealed = true
		if _, err = m.mark(f, logged, last); err == nil {
			twice, err = m.complete(f, logged, last)
		}
		if err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
		if len(twice) == 0 {
			return f, nil
		}
	}
}

// now returns a copy of the primary array and of the exceptions. It also
// returns how many records of the log they are of.
func (m *Mutable) now() (*Field, map[key]exception, uint64, error) {
	m.writing.Lock() // what is written is shown under it
	defer m.writing.Unlock()
	if m.isClosed() {
		return nil, nil, 0, ErrClosed
	}
	return m.field.sealedCopy(true), maps.Clone(m.exceptions), m.log.Len(), nil
}
