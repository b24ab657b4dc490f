package locator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// Feed calls yield for each key that is in a shard, until yield returns false or
// it fails. A feed that could not yield all of them must fail: what is not fed
// is Nowhere.
type Feed func(yield func(hash uint64, s Shard) bool) error

// Rebuild makes a new base of the keys that the feed yields, in any order, and
// lets go of all older changes. Look-ups and changes go on meanwhile; those that
// are made after Rebuild was called hold over the feed, those made before must be
// in it. It keeps 25 bytes a key for its time, 26 if there are more than 256
// shards.
//
// A key that the feed puts into several shards is OneOf these until it is set;
// more than MaxSeveral such keys are ErrContradiction. After an error, the feed's
// own among them, the Locator answers as if Rebuild had not been called.
func (l *Locator) Rebuild(feed Feed) error {
	l.maintaining.Lock()
	defer l.maintaining.Unlock()
	l.beginRebuild()
	base, several, err := l.build(feed)
	l.writing.Lock()
	defer l.writing.Unlock()
	l.rebuilding = false
	if err != nil {
		l.giveUp()
		return fmt.Errorf("rebuild a locator: %w", err)
	}
	l.replace(base, several)
	return nil
}

// beginRebuild puts what is so far under an empty exact map.
func (l *Locator) beginRebuild() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.fold()
	v := *l.view.Load()
	v.older, v.run, v.tail = v.run, nil, newTail(0)
	l.rebuilding = true
	l.view.Store(&v)
}

func (l *Locator) build(feed Feed) (*ribbon.Map, map[uint64][]Shard, error) {
	var wrong error
	base, several, err := ribbon.BuildMapFrom(l.config.base(), func(yield func(hash, value uint64) bool) error {
		err := feed(func(hash uint64, s Shard) bool {
			if int(s) >= l.config.Shards {
				wrong = fmt.Errorf("%w: key %x is in shard %d of %d", ErrShard, hash, s, l.config.Shards)
				return false
			}
			return yield(hash, uint64(s))
		})
		return cmp.Or(wrong, err)
	}, MaxSeveral)
	if errors.Is(err, ribbon.ErrContradiction) {
		err = fmt.Errorf("%w (%w)", ErrContradiction, err)
	}
	shards := make(map[uint64][]Shard, len(several))
	for _, s := range several {
		key := l.key(s.Hash)
		for _, value := range s.Values {
			shards[key] = append(shards[key], Shard(value))
		}
	}
	return base, shards, err
}

// young returns the changes since the rebuild began, in ascending order of keys.
// The caller holds writing.
func (l *Locator) young(v *view) []entry {
	entries := v.tail.sorted()
	for i := range entries {
		entries[i].code = entries[i].code&^below - 1
	}
	all := v.run.overlay(l.config.codeBits(), entries, func(int) bool { return true })
	return slices.Collect(all.all)
}

// giveUp puts the changes since the rebuild began over those before. The caller
// holds writing.
func (l *Locator) giveUp() {
	v := *l.view.Load()
	v.run = v.older.overlay(l.config.codeBits(), l.young(&v), func(int) bool { return true })
	v.older, v.tail = nil, newTail(v.run.len()+l.inField(&v))
	l.view.Store(&v)
}

// replace puts the changes since the rebuild began over the new base. The caller
// holds writing.
func (l *Locator) replace(base *ribbon.Map, several map[uint64][]Shard) {
	old := l.view.Load()
	entries := l.young(old)
	v := &view{base: base, several: several}
	doubtful := make([]entry, 0, len(several))
	for key := range several {
		doubtful = append(doubtful, entry{key, l.config.severalShards()})
	}
	slices.SortFunc(doubtful, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	v.run = newRun(len(doubtful), l.config.codeBits(), slices.Values(doubtful))
	drop := make([]bool, len(entries))
	l.sift(v, entries, drop)
	l.sort(v, entries, drop)
	v.run = v.run.overlay(l.config.codeBits(), entries, func(i int) bool { return !drop[i] })
	v.tail = newTail(v.run.len() + l.inField(v))
	l.rebuilds++
	l.view.Store(v)
}

// sift drops what the base answers as well, and gives the codes of the others as
// a tail has them.
func (l *Locator) sift(v *view, entries []entry, drop []bool) {
	var hashes, values [reworked]uint64
	var found [reworked]bool
	for from := 0; from < len(entries); from += reworked {
		part := entries[from:min(from+reworked, len(entries))]
		for i, e := range part {
			hashes[i] = l.hash(e.key)
		}
		v.base.LookupBatch(keyed.Numbers(hashes[:len(part)]), values[:], found[:])
		for i := range part {
			e := &part[i]
			drop[from+i] = found[i] && values[i] == uint64(e.code)
			e.code++
			if found[i] {
				e.code |= below
			}
		}
	}
}

// Repair gives a FieldDelta's field what it needs to answer all of its keys, so
// that OneOf is left for strangers and contradictions. The feed is as that of
// Rebuild; keys that the base answers are passed over. Look-ups and changes go
// on; new keys go into the exact map meanwhile. With an ExactDelta it does nothing.
func (l *Locator) Repair(feed Feed) error {
	l.maintaining.Lock()
	defer l.maintaining.Unlock()
	v := l.beginRepair()
	if v.field == nil || v.field.Stats().Repaired {
		l.endRepair(nil)
		return nil
	}
	field, err := v.field.RepairedFrom(func(yield func(key keyed.Key, value uint64) bool) error {
		return feed(func(hash uint64, s Shard) bool {
			if _, ok := v.exact(l.key(hash)); ok {
				return true
			}
			if _, ok := v.base.Lookup(keyed.Number(hash)); ok {
				return true
			}
			return yield(keyed.Number(hash), uint64(s))
		})
	})
	l.endRepair(field)
	if err != nil {
		return fmt.Errorf("repair a locator: %w", err)
	}
	return nil
}

func (l *Locator) beginRepair() *view {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.fold()
	l.repairing = true
	return l.view.Load()
}

// endRepair puts the repaired field, if there is one, in the place of the other,
// which has not changed.
func (l *Locator) endRepair(field *bfield.Field) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.repairing = false
	if field != nil {
		v := *l.view.Load()
		v.field = field
		l.view.Store(&v)
	}
}
