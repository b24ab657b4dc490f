package locator

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"github.com/syncd-io/syncd/dbadapter"
)

// exact is an exact map of indices to codes, of one set: sorted entries in as few bits as they
// take, which are replaced as a whole, and over them a short sorted list that changes in place.
//
//	filter  ──► six bits an entry: nine in ten indices that are not there end here
//	tail    ──► a few entries, 8 bytes each
//	run     ──► 42 bits and a code each: 6.4 bytes with 256 shards
//
// No entry goes: one that is Gone lies over what the field says.
type exact struct {
	filter []uint64
	tail   []Entry
	run    run
}

// The tail is merged into the run when it has a sixteenth of its entries. So a merge costs an
// entry that is put some 16 others copied; and a long tail is not copied for each of them.
const (
	tailPart            = 16
	leastTail, mostTail = 32, 2048
)

// get returns what is said of an index; maybe is what maybe has returned of it.
func (x *exact) get(index dbadapter.Index, maybe bool) (Code, bool) {
	if !maybe {
		return 0, false
	}
	if i, ok := x.inTail(index); ok {
		return x.tail[i].Code(), true
	}
	if i, ok := x.run.search(index); ok {
		return x.run.at(i).Code(), true
	}
	return 0, false
}

// maybe reports whether the index may be there, by the filter. To read that takes as long as
// memory does, and a processor does other things meanwhile: so it is asked before it matters.
func (x *exact) maybe(index dbadapter.Index) bool {
	if len(x.filter) == 0 {
		return false
	}
	word, bits := x.bits(index)
	return x.filter[word]&bits == bits
}

// bits are an index's in the filter: three of one word (Putze, Sanders and Singler, "Cache-, hash-
// and space-efficient Bloom filters", 2007). The indices of honest hosts are hashes already.
func (x *exact) bits(index dbadapter.Index) (word, of uint64) {
	word, _ = bits.Mul64(uint64(index)<<(64-indexBits), uint64(len(x.filter)))
	return word, 1<<(index&63) | 1<<(index>>6&63) | 1<<(index>>12&63)
}

// put says something of an index.
func (x *exact) put(e Entry) {
	i, ok := x.inTail(e.Index())
	if ok {
		x.tail[i] = e
		return
	}
	x.tail = slices.Insert(x.tail, i, e)
	if x.filter == nil {
		x.filter = newFilter(leastTail)
	}
	x.mark(e)
}

func (x *exact) mark(e Entry) {
	word, bits := x.bits(e.Index())
	x.filter[word] |= bits
}

// newFilter returns a filter for n entries.
func newFilter(n int) []uint64 { return make([]uint64, n*6/64+1) }

// room is how long the tail over so many entries gets.
func room(n int) int { return min(max(leastTail, n/tailPart), mostTail) }

// full reports whether the tail is to be merged.
func (x *exact) full() bool { return len(x.tail) > room(x.run.n) }

// merged is the same map with an empty tail. What it was may be read meanwhile.
func (x *exact) merged(shards int) exact {
	all := make([]Entry, 0, x.len())
	for i := range x.run.n {
		all = append(all, x.run.at(i))
	}
	all = merge(all, x.tail, true)
	m := exact{run: newRun(len(all), shards), filter: newFilter(len(all) + room(len(all)))}
	for _, e := range all {
		m.run.append(e)
		m.mark(e)
	}
	return m
}

func (x *exact) len() int   { return len(x.tail) + x.run.n } // an index in both counts twice
func (x *exact) bytes() int { return 8 * (cap(x.tail) + len(x.run.words) + len(x.filter)) }

// inTail returns where in the tail an index is, or would be.
func (x *exact) inTail(index dbadapter.Index) (at int, ok bool) {
	return slices.BinarySearchFunc(x.tail, index, func(e Entry, i dbadapter.Index) int { return cmp.Compare(e.Index(), i) })
}

// run is a sorted list of entries, packed: each has indexBits and as many bits as codes take:
// the lower ones, of which those of Gone and Shared are no shard's. A word more than they fill lets
// two be read at once.
type run struct {
	n     int
	width uint
	words []uint64
}

// newRun returns a run with room for n entries.
func newRun(n, shards int) run {
	r := run{width: indexBits + uint(bits.Len(uint(shards+1)))}
	if n > 0 {
		r.words = make([]uint64, (uint64(n)*uint64(r.width)+63)/64+1)
	}
	return r
}

// append adds an entry behind the others.
func (r *run) append(e Entry) {
	x := uint64(e.Index())<<(r.width-indexBits) | uint64(e.Code())&(1<<(r.width-indexBits)-1)
	bit := uint64(r.n) * uint64(r.width)
	two := r.words[bit>>6:]
	two[0] |= x << (bit & 63)
	two[1] |= x >> 1 >> (63 - bit&63)
	r.n++
}

// search returns where an index is, or would be.
func (r *run) search(index dbadapter.Index) (at int, ok bool) {
	at = sort.Search(r.n, func(i int) bool { return r.index(i) >= index })
	return at, at < r.n && r.index(at) == index
}

func (r run) word(i int) uint64 {
	bit := uint64(i) * uint64(r.width)
	two := r.words[bit>>6:]
	return (two[0]>>(bit&63) | two[1]<<1<<(63-bit&63)) & (1<<r.width - 1)
}

func (r run) index(i int) dbadapter.Index {
	return dbadapter.Index(r.word(i) >> (r.width - indexBits))
}

func (r run) at(i int) Entry {
	x := r.word(i)
	mask := Code(1<<(r.width-indexBits) - 1)
	c := Code(x) & mask
	if c >= mask-1 { // Gone or Shared
		c |= Gone &^ mask
	}
	return NewEntry(dbadapter.Index(x>>(r.width-indexBits)), c)
}
