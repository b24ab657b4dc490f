package rateless

import (
	"fmt"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// Index is a key's place in the set: a number from 1 to P − 1. A keyed hash
// makes it, so that a peer cannot choose two keys that share an index.
type Index uint64

// Checksum stands for what is stored under an index. It is a number that Seal
// made for this index, or 0 for nothing stored. Its lowest 8 bits check the
// index and the other bits. By them a Decoder can tell it from the sum of
// several.
type Checksum uint64

// Seal is the checksum that stands for rest, a hash of what is stored under index
// k. rest is a number from 1 to 2^34 − 2. 0 and 2^34 − 1 are taken for their
// neighbours; a larger number has no meaning.
func Seal(k Index, rest uint64) Checksum { return Checksum(keyhash.Seal(uint64(k), rest)) }

// Rest is what Seal was given; of the checksum 0 it is 0.
func (v Checksum) Rest() uint64 { return uint64(v) >> keyhash.CheckBits }

// Pair is one element of the set that is reconciled.
type Pair struct {
	Index    Index
	Checksum Checksum
}

// isPair reports whether p may be in a set, or stands for no record.
func isPair(p Pair) bool {
	return p.Checksum == 0 || p.Index-1 < keyhash.P-1 && keyhash.Sealed(uint64(p.Index), uint64(p.Checksum))
}

func notAPair(p Pair) error {
	return fmt.Errorf("sketch index %d with checksum %d: %w", p.Index, p.Checksum, ErrPair)
}

func mustBePair(p Pair) {
	if !isPair(p) {
		panic(notAPair(p))
	}
}
