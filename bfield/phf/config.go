package phf

import (
	"errors"
	"fmt"
)

// Config says what to build.
type Config struct {
	// ChoiceBits is r: each key chooses among 2^r slots, and its choice takes r bits.
	// It is 1 or 2; 0 stands for 2.
	ChoiceBits int

	// Minimal numbers n keys 0 to n−1, with no number left out. It takes choices of 2 bits.
	Minimal bool

	// Seed of the hashes.
	Seed uint64

	// Workers is how many goroutines build at once, up to 256; the default is GOMAXPROCS. It
	// changes the time only: the result is the same in every bit.
	Workers int
}

// ErrUnsolvable is wrapped by the error of a build that found no choices, for any of its
// salts. Uniform hashes do not come to it; hashes chosen by an adversary that knows the
// seed may.
var ErrUnsolvable = errors.New("the hashes of the keys are not spread")

func (c Config) bits() (int, error) {
	switch {
	case c.ChoiceBits < 0 || c.ChoiceBits > 2:
		return 0, fmt.Errorf("phf: choices of %d bits: 1 and 2 are possible", c.ChoiceBits)
	case c.ChoiceBits == 1 && c.Minimal:
		return 0, fmt.Errorf("phf: a minimal function of choices of 1 bit takes 19 bits a key: take choices of 2")
	case c.ChoiceBits == 0:
		return 2, nil
	}
	return c.ChoiceBits, nil
}

// slotsOf is how many slots a shard of so many keys has. Two choices fill a table up to
// half, four up to 0.9768. Near these loads the search takes long and fails often.
func slotsOf(keys, choiceBits int) int {
	if choiceBits == 1 {
		return keys*21/10 + 1
	}
	return keys + keys*3/100 + 1
}
