package bfield

import (
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/bfield/internal/workers"
)

// An array that no cache holds is filled and read stripe by stripe. The windows of a block
// of entries are sorted by the stripe in which they begin. Then each stripe is gone
// through with all windows in it, while a near cache holds it. In the order of the entries
// each window would wait for memory. In an array that a cache holds, sorting takes longer
// than it saves. There it is done only for workers to share the array.

const (
	// stripeBits: a stripe has 2^21 bits, 256 KiB, of a second-level cache.
	stripeBits = 21
	// leastStripeBits is for small arrays with many workers.
	leastStripeBits = 12
	// mostStripes is how many lists are written at once: one line each in a first-level
	// cache. Larger arrays have longer stripes.
	mostStripes = 256
	// blockBits: 2^19 entries are sorted at a time by all workers, in 8·k bytes each. The
	// more there are, the more windows wait for one line.
	blockBits = 19
	// leastBlock is how many each worker sorts at least.
	leastBlock = 1 << 14
	// stripedFrom is the size in bits from which one worker sorts: 16 MiB.
	stripedFrom = 1 << 27
)

// fillSorted puts the entries of a source into an array. Each worker sorts a block of them,
// and then fills its own stripes.
func (f *Field) fillSorted(a *array, level int, s source, most int) {
	block := blockOf((s.n+most-1)/most, most)
	parts, across := make([]*sorted, most), make([][]mark, most)
	workers.Each(most, most, func(w int) { parts[w] = f.newSorted(a, block, most) })
	stripes := len(parts[0].lists)
	for begin := 0; begin < s.n; begin += most * block {
		workers.Each(most, most, func(w int) {
			from := min(begin+w*block, s.n)
			parts[w].sort(f, a, level, s, from, min(from+block, s.n))
		})
		workers.Each(most, most, func(w int) {
			for _, part := range parts {
				across[w] = part.set(a, stripes*w/most, stripes*(w+1)/most, across[w])
			}
		})
	}
	for _, m := range slices.Concat(across...) {
		a.set(m.place, m.code)
	}
}

// indeterminateSorted returns those entries, from from to end, of which the primary array
// shows more than their own marker. They keep their order.
func (f *Field) indeterminateSorted(s source, from, end int) []undecided {
	a, block := &f.levels[0], blockOf(end-from, f.workers)
	part, common := f.newSorted(a, block, 1), make([]uint64, block)
	list := make([]undecided, 0, int(1.02*f.plan.Indeterminate()*float64(end-from))+fewEntries)
	for ; from < end; from += block {
		part.sort(f, a, 0, s, from, min(from+block, end))
		list = part.undecided(list, f, a, common)
	}
	return list
}

// sorted is a block of entries and their windows in an array, by stripe.
type sorted struct {
	shift   int        // a stripe has 2^shift bits
	lists   [][]uint64 // by stripe: where a window begins, and in the low blockBits which entry's it is
	entries []entry
	codes   []uint64 // of each entry
}

// blockOf is how many entries each of some workers sorts at a time; it has n in all.
func blockOf(n, workers int) int { return min(max(leastBlock, 1<<blockBits/workers), n) }

func (f *Field) newSorted(a *array, block, workers int) *sorted {
	s := &sorted{shift: stripeBits, entries: make([]entry, 0, block), codes: make([]uint64, 0, block)}
	for a.places>>s.shift >= mostStripes {
		s.shift++
	}
	for s.shift > leastStripeBits && a.places>>s.shift < 4*uint64(workers) {
		s.shift--
	}
	s.lists = make([][]uint64, a.places>>s.shift+1)
	room := block * f.plan.Hashes / len(s.lists)
	room += room/16 + 64 // beyond it a list grows
	for i := range s.lists {
		s.lists[i] = make([]uint64, 0, room)
	}
	return s
}

// sort takes the entries from from to end of a source in place of those before.
func (s *sorted) sort(f *Field, a *array, level int, of source, from, end int) {
	for i := range s.lists {
		s.lists[i] = s.lists[i][:0]
	}
	s.entries, s.codes = s.entries[:0], s.codes[:0]
	asked := multipliers[:f.plan.Hashes]
	f.eachChunk(of, from, end, func(chunk []entry) {
		for _, e := range chunk {
			k, number := e.key.at(level), uint64(len(s.codes))
			for i := range asked {
				at := k.place(i, a.places)
				list := &s.lists[at>>s.shift]
				*list = append(*list, at<<blockBits|number)
			}
			s.codes = append(s.codes, f.encode(e))
		}
		s.entries = append(s.entries, chunk...)
	})
}

// unpack takes an element of a list apart.
func unpack(w uint64) (at, number uint64) { return w >> blockBits, w & (1<<blockBits - 1) }

// set puts the codes into the stripes from first on, without that of number end. It
// returns the windows whose bytes reach beyond, which may be another worker's.
func (s *sorted) set(a *array, first, end int, across []mark) []mark {
	for stripe := first; stripe < end; stripe++ {
		inside := (uint64(stripe)+1)<<s.shift - 64
		if stripe+1 < end || end == len(s.lists) {
			inside = a.bits
		}
		for _, w := range s.lists[stripe] {
			at, number := unpack(w)
			if at >= inside {
				across = append(across, mark{at, s.codes[number]})
				continue
			}
			a.set(at, s.codes[number])
		}
	}
	return across
}

// mark is a code that is to be put at a place.
type mark struct{ place, code uint64 }

// undecided appends to list those entries of which the array shows more than their own
// marker.
func (s *sorted) undecided(list []undecided, f *Field, a *array, common []uint64) []undecided {
	common = common[:len(s.codes)]
	for i := range common {
		common[i] = f.mask()
	}
	for _, l := range s.lists {
		for _, w := range l {
			at, number := unpack(w)
			common[number] &= binary.LittleEndian.Uint64(a.bytes[at>>3:]) >> (at & 7)
		}
	}
	for i, acc := range common {
		if acc != s.codes[i] {
			list = append(list, undecided{s.entries[i], acc})
		}
	}
	return list
}
