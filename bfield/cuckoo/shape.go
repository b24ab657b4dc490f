package cuckoo

import "github.com/syncd-io/syncd/bfield/keyed"

// shape is how a Table's buckets lie in words. From its lowest bit, a slot has
// the number of the hash function by which its entry is there, the fingerprint,
// and the value. 0 is free, since no fingerprint is 0. Slots follow each other
// without a gap.
type shape struct {
	hashes, slots int
	choice        int // bits
	fingerprint   int
	value         int
	width         int // of a slot
}

func shapeOf(c Config, fingerprint int) shape {
	s := shape{hashes: c.Hashes, slots: c.Slots, choice: 1, fingerprint: fingerprint, value: c.ValueBits}
	if s.hashes > 2 {
		s.choice = 2
	}
	s.width = s.choice + s.fingerprint + s.value
	return s
}

// chunkWords is the length of a chunk. Its buckets fill whole words, and one
// word more lets a slot be read from two.
func (s *shape) chunkWords() int { return chunkBuckets/64*s.slots*s.width + 1 }

// identity is what a Table knows of a key. It is the bucket by the first hash
// function mod base, the fingerprint, and the value.
type identity struct {
	first       uint64
	fingerprint uint64
	value       uint64
}

// looksLike reports whether two keys cannot be told apart.
func (id identity) looksLike(other identity) bool {
	return id.first == other.first && id.fingerprint == other.fingerprint
}

func (t *Table) identify(hash uint64) identity {
	return identity{
		first:       scale(hash>>32, t.base),
		fingerprint: 1 + scale(hash&(1<<32-1), 1<<t.fingerprint-1),
	}
}

// scale maps 32 random bits to a number below n ≤ 2^32 (Lemire, "Fast random
// integer generation in an interval", 2019).
func scale(bits32, n uint64) uint64 { return bits32 * n >> 32 }

// step says how far the buckets by hash function number choice are from those by
// the first one, mod base. It also says what picks among the descendants of a
// bucket. It depends on the fingerprint alone, so that an entry can move
// although its key is not known. The source is Fan, Andersen, Kaminsky,
// Mitzenmacher, "Cuckoo filter: practically better than Bloom", 2014, section 3.
func (t *Table) step(fingerprint uint64, choice int) (far, descent uint64) {
	h := keyed.Number(fingerprint<<2 | uint64(choice)).Hash(t.config.Seed)
	if choice == 0 {
		return 0, h & (1<<32 - 1)
	}
	return scale(h>>32, t.base), h & (1<<32 - 1)
}

// bucketOf is the bucket of an identity by a hash function.
func (t *Table) bucketOf(id identity, choice int) uint64 {
	if choice == 0 && t.buckets == t.base {
		return id.first
	}
	far, descent := t.step(id.fingerprint, choice)
	q := id.first + far
	if q >= t.base {
		q -= t.base
	}
	return t.at(q, descent)
}

// identityOf is the identity of the entry in a full slot, and by which hash
// function it is there.
func (t *Table) identityOf(bucket, slot uint64) (identity, int) {
	choice := int(slot & (1<<t.choice - 1))
	id := identity{
		first:       bucket % t.base,
		fingerprint: slot >> t.choice & (1<<t.fingerprint - 1),
		value:       slot >> (t.choice + t.fingerprint),
	}
	if far, _ := t.step(id.fingerprint, choice); far > id.first {
		id.first += t.base - far
	} else {
		id.first -= far
	}
	return id, choice
}

// slotOf is the content of a slot.
func (t *Table) slotOf(id identity, choice int) uint64 {
	return id.value<<(t.choice+t.fingerprint) | t.markOf(id, choice)
}

// markOf is the part of a slot by which an entry is found.
func (t *Table) markOf(id identity, choice int) uint64 {
	return id.fingerprint<<t.choice | uint64(choice)
}

// bit is where slot i of a bucket begins.
func (t *Table) bit(b uint64, i int) (chunk []uint64, word int, shift uint) {
	at := (int(b&(chunkBuckets-1))*t.slots + i) * t.width
	return t.chunks[b>>chunkBits], at >> 6, uint(at & 63)
}

func (t *Table) slot(b uint64, i int) uint64 {
	c, word, shift := t.bit(b, i)
	return (c[word]>>shift | c[word+1]<<(64-shift)) & (1<<t.width - 1)
}

func (t *Table) setSlot(b uint64, i int, s uint64) {
	c, word, shift := t.bit(b, i)
	mask := uint64(1)<<t.width - 1
	c[word] = c[word]&^(mask<<shift) | s<<shift
	c[word+1] = c[word+1]&^(mask>>(64-shift)) | s>>(64-shift)
}
