package cuckoo

import (
	"fmt"
	"slices"
)

// exact is the table behind Map.
type exact struct {
	spread
	mixer
	chunks []*chunk
	count  int // entries, those of the stash included
	keys   int // planned; up to these the table does not grow
	grow   int // entries beyond which it does
	stash  []entry
	search search
	work   Work
}

type chunk [chunkBuckets]line

// entry is a key with its value, both below 2^48.
type entry struct{ key, value uint64 }

// place is where an entry may be: its bucket, and its tag there.
type place struct{ bucket, tag uint64 }

func (x *exact) place(number uint64, choice uint8) place {
	if x.mask != 0 {
		b, r := x.masked(number)
		return place{b, tagOf(r, choice)}
	}
	q, r := x.divide(number)
	return place{x.at(q, r), tagOf(r, choice)}
}

// places are the two of a key.
func (x *exact) places(key uint64) [mapHashes]place {
	first := x.first(key)
	return [...]place{x.place(first, 0), x.place(second(first), 1)}
}

// number undoes place, and says by which choice.
func (x *exact) number(p place) (number uint64, choice uint8) {
	q := p.bucket
	if q >= x.base {
		q %= x.base
	}
	return (p.tag>>1-1)*x.base + q, uint8(p.tag & 1)
}

// other is the other place of the entry at p.
func (x *exact) other(p place) place {
	number, choice := x.number(p)
	if choice == 0 {
		return x.place(second(number), 1)
	}
	return x.place(unsecond(number), 0)
}

// keyAt is the key of the entry at p.
func (x *exact) keyAt(p place) uint64 {
	number, choice := x.number(p)
	if choice == 1 {
		number = unsecond(number)
	}
	return x.key(number)
}

func (x *exact) line(b uint64) *line {
	return &x.chunks[b>>chunkBits][b&(chunkBuckets-1)]
}

func (x *exact) get(key uint64) (uint64, bool) {
	if key > keyMask {
		return 0, false
	}
	// Written out: what is called here costs a look-up as much as a read from memory that
	// others overlap. Both lines are requested before the first is looked at. In a Map
	// that grew four keys in ten are in the second, which the processor cannot guess.
	first := x.first(key)
	if x.buckets <= nearBuckets {
		return x.near(key, first)
	}
	var b, r, b1, r1 uint64
	if x.mask != 0 {
		b, r = x.masked(first)
		b1, r1 = x.masked(second(first))
	} else {
		b, r = x.divide(first)
		b = x.at(b, r)
		b1, r1 = x.divide(second(first))
		b1 = x.at(b1, r1)
	}
	l, l1 := x.line(b), x.line(b1)
	tag, tag1, tags1 := tagOf(r, 0), tagOf(r1, 1), l1.tags
	for m := l.matches(tag); m != 0; m &= m - 1 {
		if i := slotOf(m); l.restAt(i) == tag>>16 {
			return l.valueAt(i), true
		}
	}
	for m := matches(tag1, tags1, l1.tags45); m != 0; m &= m - 1 {
		if i := slotOf(m); l1.restAt(i) == tag1>>16 {
			return l1.valueAt(i), true
		}
	}
	return x.stashed(key)
}

// near is get where the lines are in a near cache. It requests the second one only when
// the key is not in the first.
func (x *exact) near(key, first uint64) (uint64, bool) {
	p := x.place(first, 0)
	l := x.line(p.bucket)
	if i := l.find(p.tag); i >= 0 {
		return l.valueAt(i), true
	}
	p = x.place(second(first), 1)
	l = x.line(p.bucket)
	if i := l.find(p.tag); i >= 0 {
		return l.valueAt(i), true
	}
	return x.stashed(key)
}

func (x *exact) stashed(key uint64) (uint64, bool) {
	if i := x.stashAt(key); i >= 0 {
		return x.stash[i].value, true
	}
	return 0, false
}

// stashAt is where a key is in the stash, or −1.
func (x *exact) stashAt(key uint64) int {
	for i := range x.stash {
		if x.stash[i].key == key {
			return i
		}
	}
	return -1
}

// change gives a key that is in the table a new value.
func (x *exact) change(e entry, places [mapHashes]place) bool {
	for _, p := range places {
		l := x.line(p.bucket)
		if i := l.find(p.tag); i >= 0 {
			l.set(i, p.tag, e.value)
			return true
		}
	}
	i := x.stashAt(e.key)
	if i >= 0 {
		x.stash[i] = e
	}
	return i >= 0
}

func (x *exact) set(e entry) error {
	x.work.begin()
	if e.key > keyMask || e.value > keyMask {
		return fmt.Errorf("cuckoo: set %#x to %#x: %w: both have %d bits", e.key, e.value, ErrRange, keyBits)
	}
	places := x.places(e.key)
	if x.change(e, places) {
		return nil
	}
	if x.expand() {
		x.unstash()
		places = x.places(e.key)
	}
	switch {
	case x.insert(places, e.value):
	case len(x.stash) < stashSize:
		x.stash = append(x.stash, e)
	default:
		return errCrowded(x.count)
	}
	x.count++
	return nil
}

// expand splits buckets while the table is fuller than it should be, and reports
// whether it did.
func (x *exact) expand() (did bool) {
	for range splitsPerInsert {
		if x.count < x.grow || x.buckets == maxBuckets {
			return did
		}
		did = true
		parent, child := x.split()
		if child>>chunkBits == uint64(len(x.chunks)) {
			x.chunks = append(x.chunks, new(chunk))
		}
		from, to := x.line(parent), x.line(child)
		for i := range mapSlots {
			if tag := from.tagAt(i); tag != 0 && x.at(parent%x.base, tag>>1-1) == child {
				to.set(i, tag, from.valueAt(i))
				from.clear(i)
				x.work.move()
			}
		}
		x.limit()
	}
	return did
}

// limit sets how many entries the buckets may have before more are added.
func (x *exact) limit() {
	x.grow = max(x.keys, full(x.buckets, mapSlots, growing(mapHashes, mapSlots)))
}

// insert puts a key that is not in the table, and has these places, into a slot.
func (x *exact) insert(places [mapHashes]place, value uint64) bool {
	roots := [...]hop{{places[0].bucket, 0}, {places[1].bucket, 1}}
	root, slot, ok := x.search.place(x, roots[:], reach{nodes: mapNodes, depth: mapDepth, slots: mapSlots}, &x.work)
	if ok {
		x.line(root.bucket).set(slot, places[root.choice].tag, value)
	}
	return ok
}

// move implements shelves.
func (x *exact) move(from uint64, slot int, to hop, free int) {
	l := x.line(from)
	x.line(to.bucket).set(free, x.other(place{from, l.tagAt(slot)}).tag, l.valueAt(slot))
}

// unstash tries to find a slot for the oldest entry of the stash. It is
// for when there are new slots or free ones; else it would search in vain.
func (x *exact) unstash() {
	if len(x.stash) > 0 && x.insert(x.places(x.stash[0].key), x.stash[0].value) {
		x.stash = append(x.stash[:0], x.stash[1:]...)
		x.work.move()
	}
}

// free implements shelves.
func (x *exact) free(b uint64) int { return x.line(b).find(0) }

// others implements shelves.
func (x *exact) others(b uint64, slot int, hops *[maxHashes]hop) int {
	p := x.other(place{b, x.line(b).tagAt(slot)})
	if p.bucket == b {
		return 0
	}
	hops[0] = hop{p.bucket, uint8(p.tag & 1)}
	return 1
}

func (x *exact) remove(key uint64) bool {
	x.work.begin()
	if key > keyMask || !x.clear(key) {
		return false
	}
	x.count--
	x.unstash()
	return true
}

func (x *exact) clear(key uint64) bool {
	for _, p := range x.places(key) {
		if i := x.line(p.bucket).find(p.tag); i >= 0 {
			x.line(p.bucket).clear(i)
			return true
		}
	}
	i := x.stashAt(key)
	if i >= 0 {
		x.stash = slices.Delete(x.stash, i, i+1)
	}
	return i >= 0
}

// each calls f for every entry until it returns false.
func (x *exact) each(f func(entry) bool) {
	for b := range x.buckets {
		l := x.line(b)
		for i := range mapSlots {
			if tag := l.tagAt(i); tag != 0 && !f(entry{x.keyAt(place{b, tag}), l.valueAt(i)}) {
				return
			}
		}
	}
	for _, e := range x.stash {
		if !f(e) {
			return
		}
	}
}
