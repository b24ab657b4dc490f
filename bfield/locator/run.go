package locator

import (
	"iter"
	"math/bits"
)

// run is an exact map of 64-bit keys to small codes that never changes. The
// entries are sorted; the first bits of a key choose a bucket, of 8 to 16
// entries in the mean, and only the others are stored (quotienting, Knuth, TAOCP
// 3, section 6.4, exercise 13):
//
//	starts      |0      |3  |4        |9 …        one a bucket
//	remainders  |a|d|f|b|c|e|g|h|m|…              64 − bits each
//	codes       |0|7|7|1|…
//
// With 10^6 entries of 9 bits that is 7.5 bytes an entry; a cuckoo.Map takes
// 12 to 14. What it cannot is change: the tail takes changes, and now and then
// tail and run are merged into the next run, in one pass over both.
type run struct {
	n          int
	bits       uint     // of a key that choose its bucket
	starts     []uint32 // 2^bits + 1
	remainders packed
	codes      packed
}

// entry is a key, keyed, and what the exact map says of it.
type entry struct {
	key  uint64
	code uint32
}

// bucketBits is how many bits of n keys choose the bucket.
func bucketBits(n int) uint { return uint(max(bits.Len(uint(n))-4, 0)) }

// newRun makes a run of n entries, which come in ascending order of keys.
func newRun(n int, codeBits uint, entries iter.Seq[entry]) *run {
	if n == 0 {
		return nil
	}
	r := &run{n: n, bits: bucketBits(n)}
	r.starts = make([]uint32, 1<<r.bits+1)
	r.remainders, r.codes = newPacked(n, 64-r.bits), newPacked(n, codeBits)
	i := 0
	for e := range entries {
		r.starts[r.bucket(e.key)+1]++
		r.remainders.put(i, e.key&(1<<(64-r.bits)-1))
		r.codes.put(i, uint64(e.code))
		i++
	}
	for b := range r.starts[1:] {
		r.starts[b+1] += r.starts[b]
	}
	return r
}

// bucket is the number that the first bits of a key are.
func (r *run) bucket(key uint64) uint64 { return key >> 1 >> (63 - r.bits) }

// get returns the code of a key. A nil run is empty.
func (r *run) get(key uint64) (code uint32, ok bool) {
	if r == nil {
		return 0, false
	}
	b := r.bucket(key)
	rest := key & (1<<(64-r.bits) - 1)
	for i, end := int(r.starts[b]), int(r.starts[b+1]); i < end; i++ {
		if at := r.remainders.at(i); at >= rest {
			if at == rest {
				return uint32(r.codes.at(i)), true
			}
			break
		}
	}
	return 0, false
}

// all yields the entries in ascending order of keys.
func (r *run) all(yield func(entry) bool) {
	if r == nil {
		return
	}
	i := 0
	for b := range r.starts[1:] {
		first := uint64(b) << 1 << (63 - r.bits)
		for end := int(r.starts[b+1]); i < end; i++ {
			if !yield(entry{first | r.remainders.at(i), uint32(r.codes.at(i))}) {
				return
			}
		}
	}
}

func (r *run) len() int {
	if r == nil {
		return 0
	}
	return r.n
}

func (r *run) bytes() int {
	if r == nil {
		return 0
	}
	return 4*len(r.starts) + 8*len(r.remainders.words) + 8*len(r.codes.words)
}

// overlay is a run with sorted changes over it: where both have a key, the
// change wins. keep says which of the changes are kept; one that is not takes
// the run's entry with it.
func (r *run) overlay(codeBits uint, changes []entry, keep func(i int) bool) *run {
	merged := func(yield func(entry) bool) {
		i := 0
		// before yields the changes below a key, and says whether one is at it.
		before := func(key uint64, all bool) (at, more bool) {
			for ; i < len(changes) && (all || changes[i].key <= key); i++ {
				at = at || changes[i].key == key
				if keep(i) && !yield(changes[i]) {
					return at, false
				}
			}
			return at, true
		}
		for e := range r.all {
			at, more := before(e.key, false)
			if !more || !at && !yield(e) {
				return
			}
		}
		before(0, true)
	}
	n := 0
	for range merged {
		n++
	}
	return newRun(n, codeBits, merged)
}
