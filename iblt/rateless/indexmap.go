package rateless

import "math/rand/v2"

// indexMap numbers indices other than 0: open addressing with linear probing, at
// most half full. The salt keeps a peer that chooses its indices from making them
// collide; it has no influence on what a Decoder finds.
type indexMap struct {
	slots []numbered
	used  int
	salt  uint64
}

type numbered struct {
	index  Index
	number int32
}

func newIndexMap() indexMap {
	return indexMap{slots: make([]numbered, 64), salt: rand.Uint64() | topBit}
}

func (m *indexMap) place(k Index) *numbered {
	mask := len(m.slots) - 1
	at := int(fold(uint64(k)^m.salt, odd)) & mask
	for m.slots[at].index != 0 && m.slots[at].index != k {
		at = (at + 1) & mask
	}
	return &m.slots[at]
}

// get is the number of k, or −1.
func (m *indexMap) get(k Index) int32 {
	if s := m.place(k); s.index == k {
		return s.number
	}
	return -1
}

// set gives k a number, in the place of the one that it has.
func (m *indexMap) set(k Index, number int32) {
	s := m.place(k)
	fresh := s.index == 0
	*s = numbered{k, number}
	if !fresh {
		return
	}
	m.used++
	m.reserve(m.used)
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
		if s.index != 0 {
			*m.place(s.index) = s
		}
	}
}
