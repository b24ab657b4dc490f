package iblt

import "math/bits"

// permute is the keyed permutation of 64-bit numbers that belongs to a
// subtable: a Feistel network of four rounds. Four suffice: if the rounds
// cannot be told from random functions, the result cannot be told from a
// random permutation (Luby and Rackoff 1988).
func (l *Layout) permute(subtable int, x uint64) uint64 {
	left, right := x>>32, x&(1<<32-1)
	for round := range uint64(4) {
		left, right = right, left^l.feistel(subtable, round, right)
	}
	return left<<32 | right
}

// restore is the inverse of permute.
func (l *Layout) restore(subtable int, x uint64) uint64 {
	left, right := x>>32, x&(1<<32-1)
	for round := uint64(4); round > 0; round-- {
		left, right = right^l.feistel(subtable, round-1, left), left
	}
	return left<<32 | right
}

func (l *Layout) feistel(subtable int, round, half uint64) uint64 {
	return l.rounds.sum(uint64(subtable)<<40|round<<32|half) >> 32
}

// quotients places a key by division. In each subtable the permuted key's
// remainder is the cell, and the cell keeps the quotient.
func (l *Layout) quotients(x uint64, room *places) []place {
	for i := range l.config.Hashes {
		start := l.starts[i]
		size := uint64(l.starts[i+1] - start)
		permuted := l.permute(i, x)
		room[i] = place{cell: int32(start) + int32(permuted%size), code: permuted / size}
	}
	return room[:l.config.Hashes]
}

// key is the key that left code in a cell; ok is false if no key does.
func (l *Layout) key(code uint64, cell int32) (x uint64, ok bool) {
	if !l.config.Quotient {
		return code, true
	}
	i := l.subtable(cell)
	start := l.starts[i]
	high, low := bits.Mul64(code, uint64(l.starts[i+1]-start))
	permuted, carry := bits.Add64(low, uint64(int(cell)-start), 0)
	return l.restore(i, permuted), high == 0 && carry == 0
}
