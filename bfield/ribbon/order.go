package ribbon

import (
	"slices"

	"github.com/syncd-io/syncd/bfield/internal/workers"
)

// entry is a key on its way into a level: its hash of that level, and its value
// (without fingerprint).
type entry struct{ hash, value uint64 }

// source gives the keys of a level: it fills its argument with those from a given
// one on. It is called by several goroutines at once, and twice for each key.
type source func(into []entry, from int)

// partition takes the entries of a source, as many as fit in dst. It gives
// them the hashes of this level and sorts them by shard. Those of one shard
// keep their order, whatever the number of parts that are read at once. The entries of shard i
// are dst[ends[i-1]:ends[i]].
func (l *level) partition(dst []entry, parts int, read source) (ends []int) {
	n, shards := len(dst), l.shards()
	chunk := (n + parts - 1) / parts
	counts := make([][]int, parts) // of the entries of one chunk, by shard
	each := func(part int, do func(shard uint64, e entry)) {
		buffer := make([]entry, max(1, min(turnKeys, chunk)))
		for from, end := part*chunk, min(n, (part+1)*chunk); from < end; from += len(buffer) {
			entries := buffer[:min(len(buffer), end-from)]
			read(entries, from)
			for _, e := range entries {
				e.hash = rehash(e.hash, 0)
				do(position(e.hash, l.buckets*bucketSlots)/shardSlots, e)
			}
			giveWay()
		}
	}
	workers.Each(parts, parts, func(w int) {
		c := make([]int, shards)
		each(w, func(shard uint64, _ entry) { c[shard]++ })
		counts[w] = c
	})
	ends = make([]int, shards)
	at := 0
	for s := range shards {
		for _, c := range counts {
			c[s], at = at, at+c[s]
		}
		ends[s] = at
	}
	workers.Each(parts, parts, func(w int) {
		c := counts[w]
		each(w, func(shard uint64, e entry) {
			dst[c[shard]] = e
			c[shard]++
		})
	})
	return ends
}

// sorter sorts the entries of one shard by position, with memory that it keeps
// from one shard to the next.
type sorter struct {
	begins []uint32 // by position within the shard; one more at the end
	sorted []entry
}

// sort returns the entries of a shard in the order of their positions. Entries
// at one position stay in their order. After it, the entries of positions p to
// q-1 (within the shard) are sorted[begins[p]:begins[q]].
func (s *sorter) sort(l *level, entries []entry) (sorted []entry) {
	if cap(s.sorted) < len(entries) {
		s.sorted = make([]entry, len(entries)+len(entries)/16)
	}
	if s.begins == nil {
		s.begins = make([]uint32, min(shardSlots, l.buckets*bucketSlots)+2)
	}
	clear(s.begins)
	n := l.buckets * bucketSlots
	// Counted two places up, the counts become ends one place up, and then,
	// as entries are placed, begins.
	for part := range slices.Chunk(entries, turnKeys) {
		for _, e := range part {
			s.begins[position(e.hash, n)%shardSlots+2]++
		}
		giveWay()
	}
	sum := uint32(0)
	for i, c := range s.begins {
		sum += c
		s.begins[i] = sum
	}
	sorted = s.sorted[:len(entries)]
	for part := range slices.Chunk(entries, turnKeys) {
		for _, e := range part {
			p := &s.begins[position(e.hash, n)%shardSlots+1]
			sorted[*p] = e
			*p++
		}
		giveWay()
	}
	return sorted
}
