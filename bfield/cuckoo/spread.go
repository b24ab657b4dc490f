package cuckoo

import "math/bits"

// spread says which bucket a number addresses, by linear hashing (Litwin,
// "Linear hashing: a new tool for file and table addressing", VLDB 1980). x
// addresses bucket x mod base·2^(level+1) if there is such a bucket yet, and
// otherwise bucket x mod base·2^level. split adds the buckets one by one.
// What is in the bucket that is split either stays or goes into its child,
// which is empty. No other bucket is touched.
//
// With q = x mod base and r = x div base, bucket x mod base·2^level is q +
// base·(r mod 2^level).
type spread struct {
	base       uint64 // buckets at first, fixed for life; any number
	buckets    uint64 // base·2^level ≤ buckets < base·2^(level+1)
	level      uint
	reciprocal uint64 // ⌈2^(64+shift) / base⌉, where 2^shift < base ≤ 2^(shift+1)
	shift      uint
	mask       uint64 // base·2^(level+1) − 1 if base is a power of two, else 0; see masked
}

// spreadOf is the spread after base ≥ 2 has grown to so many buckets.
func spreadOf(base, buckets uint64) spread {
	shift := uint(bits.Len64(base-1)) - 1
	quotient, rest := bits.Div64(1<<shift, 0, base)
	if rest > 0 {
		quotient++
	}
	s := spread{
		base: base, buckets: buckets, level: uint(bits.Len64(buckets/base)) - 1,
		reciprocal: quotient, shift: shift,
	}
	s.remask()
	return s
}

func (s *spread) remask() {
	if s.base&(s.base-1) == 0 {
		s.mask = s.base<<(s.level+1) - 1
	}
}

// divide returns x mod base and x div base, for x < 2^48, without a division.
// Rounding up the reciprocal adds less than x/2^(64+shift) < 1/base to x/base.
// That is too little to reach the next whole number (Granlund, Montgomery,
// "Division by invariant integers using multiplication", 1994).
func (s *spread) divide(x uint64) (q, r uint64) {
	r, _ = bits.Mul64(x, s.reciprocal)
	r >>= s.shift & 63
	return x - r*s.base, r
}

// at is the bucket of q and r. Whether the bucket is split yet is a coin toss to
// the processor. So what the child is further on is masked, without a branch.
func (s *spread) at(q, r uint64) uint64 {
	if s.buckets == s.base {
		return q
	}
	level := s.level & 63
	b := q + s.base*(r&(1<<level-1))
	far := s.base << level & -(r >> level & 1)
	return b + far&uint64(int64(b+far-s.buckets)>>63)
}

// masked returns at(divide(x)) and x div base where base is a power of two. It takes a
// third of the instructions: they limit how many look-ups the processor can overlap.
func (s *spread) masked(x uint64) (bucket, r uint64) {
	b := x & s.mask
	missing := ^uint64(int64(b-s.buckets) >> 63) // ones if there is no such bucket yet
	return b - (s.mask-s.mask>>1)&missing, x >> ((s.shift + 1) & 63)
}

// split adds a bucket: what addressed parent may address child from now on.
func (s *spread) split() (parent, child uint64) {
	child = s.buckets
	parent = child - s.base<<s.level
	s.buckets++
	if s.buckets == s.base<<(s.level+1) {
		s.level++
		s.remask()
	}
	return parent, child
}
