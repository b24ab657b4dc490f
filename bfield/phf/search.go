package phf

import "slices"

// search finds the choices of a shard's keys.
type search struct {
	choiceBits int
	owner      []int32  // of each slot; -1: empty
	label      []uint16 // of each slot
}

// mostLabel ends a search. Labels are the length of ways to an empty slot. Below the load
// that a table takes they grow with the logarithm of the keys, and above it without bound.
const mostLabel = 1 << 12

// mostSalts is how many salts a shard tries. Each succeeds with a probability of some
// tenths, for few keys at worst.
const mostSalts = 1 << 12

// solve writes the choice of each of the keys' hashes. It returns the salt that made it
// possible; ok is false if there is none.
func (s *search) solve(hashes []uint64, choices []uint8) (salt uint32, ok bool) {
	for salt := range uint32(mostSalts) {
		if s.try(hashes, choices, salt) {
			return salt, true
		}
	}
	return 0, false
}

func (s *search) try(hashes []uint64, choices []uint8, salt uint32) bool {
	m := slotsOf(len(hashes), s.choiceBits)
	s.owner, s.label = slices.Grow(s.owner[:0], m)[:m], slices.Grow(s.label[:0], m)[:m]
	for i := range s.owner {
		s.owner[i] = -1
	}
	clear(s.label)
	for i := range hashes {
		for key := int32(i); key >= 0; {
			var ok bool
			if key, ok = s.put(key, hashes[key], choices, salt); !ok {
				return false
			}
		}
	}
	return true
}

// put gives a key the slot of the lowest label and returns the key that was there, or -1.
// The slot's label is then one above the next lowest: that far the key is from an empty slot.
func (s *search) put(key int32, h uint64, choices []uint8, salt uint32) (out int32, ok bool) {
	lowest, second := uint16(mostLabel), uint16(mostLabel)
	var at, chosen uint32
	for c := range uint32(1) << s.choiceBits {
		p := slot(h, salt, c, uint32(len(s.owner)))
		switch l := s.label[p]; {
		case l < lowest:
			lowest, second = l, lowest
			at, chosen = p, c
		case l < second && p != at:
			second = l
		}
	}
	if lowest == mostLabel {
		return 0, false
	}
	s.label[at] = min(second+1, mostLabel)
	out, s.owner[at] = s.owner[at], key
	choices[key] = uint8(chosen)
	return out, true
}
