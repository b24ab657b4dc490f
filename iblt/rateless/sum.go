package rateless

import "github.com/syncd-io/syncd/internal/keyhash"

// sum is a cell that is added to often and read seldom: its fields are reduced
// when it is read, and not with each pair. What is left is three additions; an
// update of a sketch takes some 12 % less time than with four reduced fields.
type sum struct {
	s1, s2 uint64 // Σ v and Σ k·v: p or some multiple of it too large
	rest   uint64 // Σ h(k, v) in the low 48 bits, Σ 1 mod 2^16 above
}

// maxTerms is how many terms a sum has room for. Each is a reduced cell: below
// 2^48 in s1 and s2, below 2^26 in the low part of rest.
const maxTerms = 1 << 16

func sumOf(c *Cell) sum { return sum{c.S1, c.S2, uint64(c.Check) | uint64(c.Count)<<48} }

// add adds one term.
func (s *sum) add(d *sum) {
	s.s1 += d.s1
	s.s2 += d.s2
	s.rest += d.rest
}

// cell is the sum's value.
func (s *sum) cell() Cell {
	return Cell{
		S1:    reduce(s.s1),
		S2:    reduce(s.s2),
		Check: uint32(s.rest) & checkMask,
		Count: uint8(s.rest>>48) & countMask,
	}
}

// reduce returns x mod p. Since 2^48 ≡ 2^48 − p, the part of x above bit 48
// counts as often as that; what is left is below 2p.
func reduce(x uint64) uint64 {
	x = x&sumMask + x>>48*(1<<48-keyhash.P)
	if x >= keyhash.P {
		x -= keyhash.P
	}
	return x
}

// sums are cells that take the same number of terms at most. The zero value
// has no cells.
type sums struct {
	at    []sum
	terms int // no sum has more; at most maxTerms
}

// term makes room for one more term in each sum. Every 65,535 terms it reduces
// all of them, some 2 ns a sum.
func (s *sums) term() {
	if s.terms == maxTerms {
		for i := range s.at {
			c := s.at[i].cell()
			s.at[i] = sumOf(&c)
		}
		s.terms = 1
	}
	s.terms++
}

// values returns the cells of the sums [from, to).
func (s *sums) values(from, to int) []Cell {
	out := make([]Cell, to-from)
	for i := range out {
		out[i] = s.at[from+i].cell()
	}
	return out
}
