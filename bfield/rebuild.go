package bfield

import (
	"fmt"
	"iter"
)

// rebuild makes a new field from the log and takes it in place of the old one. What is
// written meanwhile goes into the old one, and at the end into the new one as well. If
// keys were changed, removed or often inserted again, a log with each key once
// replaces it. grown: the field was full.
func (m *Mutable) rebuild(grown bool) error {
	last := map[key]exception{} // of keys with more than one record
	m.writing.Lock()
	logged := m.log.Len()
	for k := range m.exceptions { // they change under writing only
		last[k] = exception{removed: true}
	}
	m.writing.Unlock()
	next, err := m.filled(logged, last, grown)
	if err == nil {
		err = m.exchange(next, logged, last)
	}
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	return nil
}

// filled returns a field of the first n records, its exceptions and how many
// repetitions are left among the records. If these were many, their keys go into last.
// A second field is then filled, which is as large as the others need.
func (m *Mutable) filled(n uint64, last map[key]exception, grown bool) (*Mutable, error) {
	old := m.field // replaced by a rebuild only
	for first := true; ; first = false {
		live, err := m.superseded(n, last)
		if err != nil {
			return nil, err
		}
		plan := old.plan
		live += uint64(len(last))
		if live > plan.Keys || grown && live > plan.Keys*3/4 {
			plan.Keys = max(live, min(2*plan.Keys, MaxKeys))
		}
		f := newField(plan, uint64(m.seed), old.workers)
		again, err := m.mark(f, n, last)
		if err != nil {
			return nil, err
		}
		if repeats := uint64(len(again)); !first || repeats <= few(old.plan.Keys) {
			exceptions, err := m.complete(f, n, last)
			return &Mutable{field: f, exceptions: exceptions, repeats: repeats}, err
		}
		for _, k := range again {
			last[k] = exception{removed: true} // until the records are gone through again
		}
	}
}

// superseded goes through the first n records of the log. It notes in last what
// became of each key that is in it, or that was changed or removed. It returns
// how many records are of other keys, or precede the key's first change.
func (m *Mutable) superseded(n uint64, last map[key]exception) (others uint64, err error) {
	err = m.chunks(n, func(records []Record) {
		for _, r := range records {
			_, ok := last[r.key()]
			switch {
			case r.Op == Removed:
				last[r.key()] = exception{removed: true}
			case r.Op == Changed || ok:
				last[r.key()] = exception{value: r.Value}
			default:
				others++
			}
		}
	})
	return others, err
}

// live yields those of the first n records of the log whose keys are not in
// last. Then it yields what last says, as insertions.
func (m *Mutable) live(n uint64, last map[key]exception, each func([]entry)) error {
	var chunk [chunkEntries]entry
	err := m.chunks(n, func(records []Record) {
		entries := chunk[:0]
		for _, r := range records {
			if _, ok := last[r.key()]; !ok {
				entries = append(entries, entry{r.key(), r.Value})
			}
		}
		each(entries)
	})
	if err != nil {
		return err
	}
	for k, e := range last {
		if !e.removed {
			each([]entry{{k, e.value}})
		}
	}
	return nil
}

// mark fills the primary array of a new field with what the log holds. It returns the
// keys that were in it already before their record. They were inserted again, or, now
// and then, are in it by chance.
func (m *Mutable) mark(f *Field, logged uint64, last map[key]exception) (again []key, err error) {
	err = m.live(logged, last, func(entries []entry) {
		for _, e := range entries {
			if code := f.encode(e); f.levels[0].common(e.key, code, &f.plan) == code {
				again = append(again, e.key)
			}
			f.mark(e)
		}
	})
	return again, err
}

// complete gives a field the secondary arrays that the keys of the log need. It
// returns those that were inserted with several values as exceptions.
func (m *Mutable) complete(f *Field, logged uint64, last map[key]exception) (map[key]exception, error) {
	var pending []undecided
	err := m.live(logged, last, func(entries []entry) { pending = f.undecided(pending, entries) })
	if err != nil {
		return nil, err
	}
	secondary, twice, err := f.secondary(pending)
	if err != nil {
		return nil, err
	}
	f.levels = append(f.levels, secondary...)
	f.repaired = true
	exceptions := map[key]exception{}
	for _, e := range twice {
		exceptions[e.key] = exception{value: e.value}
	}
	return exceptions, nil
}

// exchange brings a new field up to date, compacts the log, and replaces the
// old field by the new one.
func (m *Mutable) exchange(next *Mutable, logged uint64, last map[key]exception) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	for r, err := range m.log.Records(logged) {
		if err != nil {
			return err
		}
		next.show(r)
	}
	if len(last) > 0 {
		if err := m.log.Replace(m.compacted(logged, last)); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.field, m.exceptions, m.fresh, m.repeats = next.field, next.exceptions, next.fresh, next.repeats
	return nil
}

// compacted yields one insertion for each live key of the first n records, and
// then the records behind them.
func (m *Mutable) compacted(n uint64, last map[key]exception) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		more := true
		err := m.live(n, last, func(entries []entry) {
			for _, e := range entries {
				more = more && yield(record(Inserted, e.key, e.value), nil)
			}
		})
		if err != nil && more {
			yield(Record{}, err)
			return
		}
		for r, err := range m.log.Records(n) {
			if !more || !yield(r, err) {
				return
			}
		}
	}
}
