package rateless

import (
	"fmt"

	"github.com/syncd-io/syncd/internal/keyhash"
)

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
