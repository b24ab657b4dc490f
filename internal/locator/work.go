package locator

import (
	"cmp"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/internal/placement"
)

// work is what is due.
type work struct {
	save   []placement.Shard // copies to be written
	insert []placement.Shard // sets to be put into the field, which has room for them
	build  bool              // or all sets, into another one
}

// Work returns what is to be done in the background, or nil: it writes copies to disk, and takes
// sets into the field, or builds another one. A driver runs it in the background, and asks
// again after it: until what it returned has been run, Work returns nil. It returns errors of the
// disk; then it is to be asked again later. more says that further sets are on their way: then a
// field is built each time as many keys wait as it has, and all fields together cost twice the
// last one.
//
// While a field is built, both take memory, and 40 bytes each key that the new one's first array
// leaves indeterminate, a fiftieth with 256 shards. Of the copies one at a time is in memory: 5
// bytes a key of that set to build, some 30 to write it, as to replace it.
func (x *Index) Work(more bool) func() error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.working {
		return nil
	}
	w := x.due(more)
	if len(w.save)+len(w.insert) == 0 && !w.build {
		return nil
	}
	x.working = true
	return func() error {
		errs := []error{x.save(w.save)}
		for _, s := range w.insert {
			errs = append(errs, x.insert(s))
		}
		if w.build {
			errs = append(errs, x.build())
		}
		x.writing.Lock()
		defer x.writing.Unlock()
		x.working = false
		return errors.Join(errs...)
	}
}

// due says what is. writing is held.
func (x *Index) due(more bool) (w work) {
	keys, waiting, changed, exact := 0, 0, 0, 0
	for s, t := range x.sets {
		if !t.known {
			continue
		}
		keys += t.keys
		changed += len(t.changed)
		exact += x.live.exact[s].len()
		if x.of[s] == nil {
			waiting += t.keys + len(t.changed)
			w.insert = append(w.insert, placement.Shard(s))
		}
		if len(t.changed) > 0 {
			w.save = append(w.save, placement.Shard(s))
		}
	}
	// The copies with the most changes are written, until half of all changes are on disk.
	slices.SortFunc(w.save, func(a, b placement.Shard) int { return cmp.Compare(len(x.sets[b].changed), len(x.sets[a].changed)) })
	most, n := max(x.least/4, keys/changedPart), 0
	for left := changed; changed > most && left > most/2; n++ {
		left -= len(x.sets[w.save[n]].changed)
	}
	w.save = w.save[:n]
	room := x.live.room()
	// What is not on disk lies over the next field again: it is no reason to build one.
	w.build = exact > max(x.least, keys/16, 2*changed) || room < 0 && x.live.field != nil
	if len(w.insert) > 0 && waiting > room {
		w.insert = nil
		w.build = w.build || !more || waiting >= x.live.keys+x.live.added
	}
	if w.build {
		w.insert = nil
	}
	return w
}

// insert puts a set into the field in place, some at a time, so that changes do not wait.
func (x *Index) insert(s placement.Shard) error {
	x.writing.Lock()
	t := x.sets[s]
	x.writing.Unlock()
	stored := t
	stored.changed = nil
	entries, ok, err := x.entries(s, stored)
	if !ok {
		return err
	}
	for part := range slices.Chunk(entries, chunk) {
		x.writing.Lock()
		x.put(x.live, s, part)
		x.writing.Unlock()
	}
	x.take(x.live, s, t)
	return nil
}

// take lays what has changed of a set over its copy on disk, if layers were made of that, and has
// look-ups and changes go there.
func (x *Index) take(l *layers, s placement.Shard, of set) {
	x.writing.Lock()
	defer x.writing.Unlock()
	if !of.known || x.sets[s].written != of.written {
		return
	}
	x.put(l, s, x.sets[s].changed)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of[s] = l
}

// build builds layers anew of all copies on disk, which takes seconds of the processor for 10^7
// keys, and then has one set after the other go there.
func (x *Index) build() error {
	x.writing.Lock()
	sets, keys := slices.Clone(x.sets), 0
	for _, t := range sets {
		keys += t.keys + len(t.changed)
	}
	x.writing.Unlock()
	var unread []error
	next, err := newLayers(x.config, keys, x.least, func(yield func(placement.Shard, Entry)) error {
		for s := range sets {
			s := placement.Shard(s)
			ok, err := x.read(s, sets[s], func(es []Entry) {
				for _, e := range es {
					yield(s, e)
				}
			})
			if !ok {
				unread = append(unread, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for s, t := range sets {
		x.take(next, placement.Shard(s), t)
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for s, l := range x.of {
		if l != next {
			x.of[s] = nil // its copy is another one meanwhile
		}
	}
	x.live = next
	x.rebuilt++
	return errors.Join(unread...)
}

// Stats are counts of an Index.
type Stats struct {
	Sets    int // that are known
	Keys    int // of their copies on disk
	Changed int // changes that are not on disk
	Added   int // keys that were put into the field since it was built
	Exact   int // entries of the exact maps
	Damaged int // copies that were let go of: damaged, not to be read, or not to be written
	Rebuilt int // times that the field was

	// Bytes, by part.
	FieldBytes   int // the room for new keys among them
	ExactBytes   int
	ChangedBytes int
}

// Bytes is the sum over the parts.
func (s Stats) Bytes() int { return s.FieldBytes + s.ExactBytes + s.ChangedBytes }

// Stats returns the counts.
func (x *Index) Stats() Stats {
	x.writing.Lock()
	defer x.writing.Unlock()
	st := Stats{Added: x.live.added, Damaged: x.damaged, Rebuilt: x.rebuilt}
	if x.live.field != nil {
		st.FieldBytes = int(x.live.field.Stats().Bits / 8)
	}
	for s, t := range x.sets {
		st.Exact += x.live.exact[s].len()
		st.ExactBytes += x.live.exact[s].bytes()
		st.Changed += len(t.changed)
		st.ChangedBytes += 8 * cap(t.changed)
		if t.known {
			st.Sets++
			st.Keys += t.keys
		}
	}
	return st
}
