package rateless

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// P is the prime 2^48 − 59: cells are sums in the field of P elements.
const P = keyhash.P

// Index is a key's place in the set: a number from 1 to P − 1, made by a keyed
// hash, so that a peer cannot choose two keys that share an index.
type Index uint64

// Checksum stands for what is stored under an index: a number from 1 to P − 1,
// or 0 for nothing stored.
type Checksum uint64

// Pair is one element of the set that is reconciled.
type Pair struct {
	Index    Index
	Checksum Checksum
}

// ErrPair tells that numbers are no Pair: an Index that is not in [1, p − 1], or
// a Checksum that is not below p. Such a pair would never come out of its cells
// again, and those who ask for cells until it does would ask for ever.
var ErrPair = errors.New("not a pair of numbers below p")

// isPair reports whether p may be in a set, or stands for no record.
func isPair(p Pair) bool {
	return p.Checksum == 0 || p.Index-1 < keyhash.P-1 && p.Checksum < keyhash.P
}

func notAPair(p Pair) error {
	return fmt.Errorf("sketch index %d with checksum %d: %w", p.Index, p.Checksum, ErrPair)
}

func mustBePair(p Pair) {
	if !isPair(p) {
		panic(notAPair(p))
	}
}
