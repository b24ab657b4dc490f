package ribbon

import "math/bits"

// The odd multipliers are rounded digits of well-known constants: the golden
// ratio's and those of Stafford's and Evensen's mixers. Any odd numbers without
// a pattern would do; these have been looked at by others.
const (
	mulLevel       = 0xbf58476d1ce4e5b9 // Stafford, "Better bit mixing", Mix13
	mulCoefficient = 0x9e3779b97f4a7c15 // 2^64/φ
	mulFingerprint = 0x9fb21c651e98df25 // Evensen, rrmxmx
)

// rehash gives the hash that a level works with, from that of the level before.
// For one salt it is a bijection, so two keys that differ never become one.
func rehash(h, salt uint64) uint64 {
	h = (h ^ salt) * mulLevel
	return h ^ h>>32
}

// position maps a hash to [0, n) in the order of the hashes. Keys sorted by
// hash are sorted by position (Lemire, "Fast random integer generation in an
// interval", 2019).
func position(h, n uint64) uint64 {
	hi, _ := bits.Mul64(h, n)
	return hi
}

// coefficients returns the row of a key: the w = 64 bits of its window. The
// first is always set, so that the window begins at the start position.
func coefficients(h uint64) uint64 {
	h *= mulCoefficient
	return h ^ h>>29 | 1
}

// fingerprint returns n bits of a key, 0 ≤ n ≤ 32. The shift before the
// multiplication makes it no linear function of the coefficients.
func fingerprint(h uint64, n int) uint64 {
	h = (h ^ h>>31) * mulFingerprint
	return h >> 1 >> (63 - n)
}

// salt moves the keys of one shard to other places in it. A shard that cannot
// be solved, or only badly, is tried again with the next salt. The other shards
// do not change, so what a try costs does not grow with the number of keys.
type salt struct {
	number      uint64 // 0: the keys stay where they are
	first, last uint64 // the hashes of this shard
}

// maxSalt is the last salt tried. A try fails once in a few times. So more than
// some are needed only for keys made to fail.
const maxSalt = 63

// newSalts returns the salts of a level with all numbers 0.
func (l *level) newSalts() []salt {
	salts := make([]salt, l.shards())
	for i := range salts {
		if i > 0 {
			salts[i].first = l.firstHash(uint64(i))
			salts[i-1].last = salts[i].first - 1
		}
	}
	salts[len(salts)-1].last = ^uint64(0)
	return salts
}

// firstHash is the lowest hash whose position is in a shard, 1 or a later one.
// It is ceil(2^64 · first position / positions).
func (l *level) firstHash(shard uint64) uint64 {
	q, rest := bits.Div64(shard*shardSlots, 0, l.buckets*bucketSlots)
	if rest > 0 {
		q++
	}
	return q
}

// apply returns another hash of the same shard.
func (s *salt) apply(h uint64) uint64 {
	if s.number == 0 {
		return h
	}
	return s.first + position(rehash(h, s.number*mulCoefficient), s.last-s.first)
}

// salted applies the salt of the hash's shard.
func (l *level) salted(h uint64) uint64 {
	return l.salts[position(h, l.buckets*bucketSlots)/shardSlots].apply(h)
}

// place is where the answer for a hash lies: the level, the hash there, and the
// start of its window. It has no pointers, which are slow to keep in arrays.
type place struct {
	level       int
	hash, start uint64
}

// find returns the place of a hash. ok is false if the table is empty.
func (t *table) find(h uint64) (p place, ok bool) {
	for i := range t.levels {
		l := &t.levels[i]
		h = rehash(h, 0)
		if len(l.codes) == 0 {
			h = l.salted(h)
		}
		start := l.start(h)
		if len(l.codes) > 0 && l.bumped(start) {
			continue
		}
		return place{i, h, start}, true
	}
	return place{}, false
}

// blocks returns the two blocks, one after the other, that hold the window of a
// place.
func (t *table) blocks(p place) []uint64 {
	width := uint64(t.width())
	first := block(p.start) * width
	return t.levels[p.level].words[first : first+2*width]
}

// value reads the bits of the columns [from, to), from < to. Each is the parity
// of two words under the coefficients, shifted to where the window begins.
func (t *table) value(p place, from, to int) uint64 {
	c, offset := coefficients(p.hash), p.start&63
	first, second := c<<offset, c>>1>>(63-offset)
	blocks, width := t.blocks(p), t.width()
	a, b := blocks[from:to], blocks[width+from:width+to]
	if wide {
		return parities(&a[0], width, len(a), first, second)
	}
	return paritiesGo(a, b, first, second)
}

// paritiesGo returns the parity of a[i]&first ^ b[i]&second in bit i.
func paritiesGo(a, b []uint64, first, second uint64) (v uint64) {
	b = b[:len(a)]
	for j, x := range a {
		// Column j comes into the highest bit and moves down to its own.
		v = v>>1 | uint64(bits.OnesCount64(x&first^b[j]&second))<<63
	}
	return v >> (uint(-len(a)) & 63)
}
