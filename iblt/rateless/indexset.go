package rateless

import "math/rand/v2"

// indexSet is a set of indices other than 0: open addressing with linear
// probing, at most half full. The salt keeps a peer that chooses its indices
// from making them collide; it has no influence on what a Decoder finds.
type indexSet struct {
	slots []Index
	used  int
	salt  uint64
}

func newIndexSet() indexSet {
	return indexSet{slots: make([]Index, 64), salt: rand.Uint64() | topBit}
}

func (s *indexSet) place(k Index) int {
	mask := len(s.slots) - 1
	at := int(fold(uint64(k)^s.salt, odd)) & mask
	for s.slots[at] != 0 && s.slots[at] != k {
		at = (at + 1) & mask
	}
	return at
}

func (s *indexSet) has(k Index) bool { return s.slots[s.place(k)] == k }

// add reports whether k was not in the set before.
func (s *indexSet) add(k Index) bool {
	at := s.place(k)
	if s.slots[at] == k {
		return false
	}
	s.slots[at] = k
	s.used++
	if 2*s.used > len(s.slots) {
		old := s.slots
		s.slots = make([]Index, 2*len(old))
		for _, k := range old {
			if k != 0 {
				s.slots[s.place(k)] = k
			}
		}
	}
	return true
}
