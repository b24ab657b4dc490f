package locator

import (
	"cmp"
	"errors"
	"slices"

	"github.com/syncd-io/syncd/internal/placement"
)

// Work returns what is to be done in the background, or nil: it writes copies to disk, and builds
// another field, also for sets for which this one has no room. A driver runs it in the background, and asks
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
	save, build := x.due(more)
	if len(save) == 0 && !build {
		return nil
	}
	x.working = true
	return func() error {
		err := x.save(save)
		if build {
			err = errors.Join(err, x.build())
		}
		x.writing.Lock()
		defer x.writing.Unlock()
		x.working = false
		return err
	}
}

// due says which copies are to be written, and whether a field is to be built. writing is held.
func (x *Index) due(more bool) (save []placement.Shard, build bool) {
	keys, waiting, waits, changed, exact := 0, 0, false, 0, 0
	for s, t := range x.sets {
		if !t.known {
			continue
		}
		keys += t.keys
		changed += len(t.changed)
		exact += x.live.exact[s].len()
		if x.of[s] == nil {
			waiting, waits = waiting+t.keys, true
		}
		if len(t.changed) > 0 {
			save = append(save, placement.Shard(s))
		}
	}
	// The copies with the most changes are written, until half of all changes are on disk.
	slices.SortFunc(save, func(a, b placement.Shard) int { return cmp.Compare(len(x.sets[b].changed), len(x.sets[a].changed)) })
	most, n := max(x.least/4, keys/changedPart), 0
	for left := changed; changed > most && left > most/2; n++ {
		left -= len(x.sets[save[n]].changed)
	}
	build = waits && (!more || waiting >= x.live.keys+x.live.added) || x.live.field != nil && x.live.room() < 0 ||
		// What is not on disk lies over the next field again: it is no reason to build one.
		exact > max(x.least, keys/16, 2*changed)
	return save[:n], build
}

// take lays what has changed of a set over its copy on disk, if layers were made of that and are
// the latest ones, and has look-ups and changes go there.
func (x *Index) take(l *layers, s placement.Shard, of set) {
	x.writing.Lock()
	defer x.writing.Unlock()
	if !of.known || x.sets[s].written != of.written || l != x.live {
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
	next, err := newLayers(x.config, keys, x.least, func(yield func(placement.Shard, Entry)) {
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
	})
	if err != nil {
		return err
	}
	x.writing.Lock()
	x.live = next
	x.rebuilt++
	x.writing.Unlock()
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
