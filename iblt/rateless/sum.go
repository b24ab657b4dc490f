package rateless

import "github.com/syncd-io/syncd/internal/keyhash"

// sum is a cell of 16 bytes that is added to often and read seldom. It is reduced
// when it is read, and not with each pair. What is left is two additions. The
// count is above the 60 bits of the first sum, where its carry is lost: it counts
// modulo 16.
type sum struct {
	first  uint64 // Σ 1 above, Σ v below: p or some multiple of it too large
	second uint64 // Σ k·v, likewise
}

const (
	sumBits = 60
	// maxTerms is how many terms a sum has room for, which are below 2^42 each.
	maxTerms = 1 << (sumBits - 42)
)

// sumOf is the sum of one term.
func sumOf(c *Cell) sum { return sum{c.S1 | uint64(c.Count)<<sumBits, c.S2} }

// termOf is what the pair p is worth in each of its cells.
func termOf(p Pair) sum {
	return sum{uint64(p.Checksum) | 1<<sumBits, keyhash.Mul(uint64(p.Index), uint64(p.Checksum))}
}

// negative is what taking a term away adds.
func negative(t sum) sum {
	return sum{keyhash.Sub(0, t.first&(1<<sumBits-1)) | -(t.first >> sumBits << sumBits), keyhash.Sub(0, t.second)}
}

// between is what replacing old by new adds, which have one index and different
// checksums. Either may be 0.
func between(old, new Pair) sum {
	change := keyhash.Sub(uint64(new.Checksum), uint64(old.Checksum))
	t := sum{change, keyhash.Mul(uint64(new.Index), change)}
	switch {
	case old.Checksum == 0:
		t.first |= 1 << sumBits
	case new.Checksum == 0:
		t.first |= countMask << sumBits
	}
	return t
}

// add adds one term.
func (s *sum) add(d *sum) {
	s.first += d.first
	s.second += d.second
}

// cell is the sum's value.
func (s *sum) cell() Cell {
	return Cell{
		S1:    keyhash.Reduce(s.first & (1<<sumBits - 1)),
		S2:    keyhash.Reduce(s.second),
		Count: uint8(s.first >> sumBits),
	}
}

// sums are cells that take the same number of terms at most. The zero value
// has no cells.
type sums struct {
	at    []sum
	terms int // no sum has more; at most maxTerms
}

// term makes room for one more term in each sum. Every 262,143 terms it reduces
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
