package phf

import (
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/bfield/ribbon"
)

// Function is a perfect hash function. The keys that it was built of have numbers from 0 to
// Slots()−1, no two of them the same. It may be read by many goroutines at once.
type Function struct {
	choiceBits int
	minimal    bool
	seed       uint64
	keys       int
	slots      int
	shards     []shard
	// moved has, for each slot behind the numbers of a minimal function's shard, the one
	// that stands for it.
	moved   []uint16
	choices *ribbon.Retrieval
}

// shard is a part of the keys, by their hashes, with slots of its own.
type shard struct {
	keys  uint32
	salt  uint32
	first uint64 // its first number
	moved uint64 // where its part of Function.moved begins
}

// shardKeys is how many keys a shard has on average.
const shardKeys = 1 << 15

// number counts what is before each shard. It returns the length of moved of a minimal
// function.
func (f *Function) number() (moved uint64) {
	var first uint64
	for i := range f.shards {
		s := &f.shards[i]
		s.first, s.moved = first, moved
		m := uint64(slotsOf(int(s.keys), f.choiceBits))
		if f.minimal {
			first += uint64(s.keys)
			moved += m - uint64(s.keys)
		} else {
			first += m
		}
	}
	f.slots = int(first)
	return moved
}

// Slots is how many numbers there are: of a minimal function as many as keys that differ.
func (f *Function) Slots() int { return f.slots }

// Lookup returns the number of a key; of a key that was not there, that of any other one.
func (f *Function) Lookup(key keyed.Key) uint64 {
	if f.slots == 0 {
		return 0
	}
	h := key.Hash(f.seed)
	return f.chosen(h, uint32(f.choices.Lookup(keyed.Number(h))))
}

// chosen is the number of a hash whose choice is known.
func (f *Function) chosen(h uint64, choice uint32) uint64 {
	s := &f.shards[position(h, uint64(len(f.shards)))]
	at := slot(h, s.salt, choice, uint32(slotsOf(int(s.keys), f.choiceBits)))
	if f.minimal && at >= s.keys {
		// What a stranger finds in a last shard without keys would be the number behind all.
		return min(s.first+uint64(f.moved[s.moved+uint64(at-s.keys)]), uint64(f.slots)-1)
	}
	return s.first + uint64(at)
}

// batch is how many keys are hashed before the choices of all are looked up.
const batch = 256

// LookupBatch sets numbers[i] to Lookup of key i, faster than one by one. It panics if
// numbers is shorter than keys.
func (f *Function) LookupBatch(keys keyed.List, numbers []uint64) {
	numbers = numbers[:keys.Len()]
	if f.slots == 0 {
		clear(numbers)
		return
	}
	var hashes, choices [batch]uint64
	for from := 0; from < len(numbers); from += batch {
		n := min(batch, len(numbers)-from)
		for i := range n {
			hashes[i] = keys.At(from + i).Hash(f.seed)
		}
		f.choices.LookupBatch(keyed.Numbers(hashes[:n]), choices[:n])
		for i := range n {
			numbers[from+i] = f.chosen(hashes[i], uint32(choices[i]))
		}
	}
}

// Stats tells of a built function.
type Stats struct {
	Keys  int // that differ
	Slots int // numbers: as many as keys, if it is minimal
	Bits  int // of everything that look-ups read
}

// Stats tells of keys, numbers and bits.
func (f *Function) Stats() Stats {
	s := Stats{Keys: f.keys, Slots: f.slots}
	if f.slots > 0 {
		s.Bits = f.choices.Stats().Bits + 16*len(f.moved) + 192*len(f.shards)
	}
	return s
}
