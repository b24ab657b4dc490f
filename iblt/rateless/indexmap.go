package rateless

import "math/rand/v2"

// indexMap numbers the indices of beliefs: open addressing with linear probing, at
// most half full. The salt keeps a peer that chooses its indices from making them
// collide. It has no influence on what a Decoder finds.
type indexMap struct {
	slots []numbered
	used  int
	salt  uint64
}

// numbered is the number of a belief, and a part of the hash of its index. The
// part tells most other indices from it.
type numbered struct {
	hash   uint32
	number int32 // one more; 0 is no belief
}

func newIndexMap() indexMap {
	return indexMap{slots: make([]numbered, 64), salt: rand.Uint64() | topBit}
}

func (m *indexMap) hash(k Index) uint32 { return uint32(fold(uint64(k)^m.salt, odd)) }

// place is the slot of k, or a free one.
func (m *indexMap) place(k Index, hash uint32, found []belief) *numbered {
	mask := len(m.slots) - 1
	for at := int(hash) & mask; ; at = (at + 1) & mask {
		s := &m.slots[at]
		if s.number == 0 || s.hash == hash && found[s.number-1].index == k {
			return s
		}
	}
}

// get is the number of the last belief in k that was set, or −1.
func (m *indexMap) get(k Index, found []belief) int32 {
	return m.place(k, m.hash(k), found).number - 1
}

// set gives the index of a belief that belief's number, in the place of the one that it
// has.
func (m *indexMap) set(number int32, found []belief) {
	k := found[number].index
	hash := m.hash(k)
	s := m.place(k, hash, found)
	fresh := s.number == 0
	*s = numbered{hash, number + 1}
	if fresh {
		m.used++
		m.reserve(m.used)
	}
}

// reserve makes room for n indices in all.
func (m *indexMap) reserve(n int) {
	size := len(m.slots)
	for size < 2*n {
		size *= 2
	}
	if size == len(m.slots) {
		return
	}
	old := m.slots
	m.slots = make([]numbered, size)
	for _, s := range old {
		if s.number == 0 {
			continue
		}
		at := int(s.hash) & (size - 1)
		for m.slots[at].number != 0 {
			at = (at + 1) & (size - 1)
		}
		m.slots[at] = s
	}
}
