package ribbon

import (
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/bfield/internal/workers"
)

// Config says what to build. The zero value of a field means its default;
// each build function says which fields it uses.
type Config struct {
	// ValueBits is the width of the values: 1 to 64.
	ValueBits int

	// FingerprintBits is f: a key that was never inserted is taken for one
	// with probability 2^-f. 1 to 32.
	FingerprintBits int

	// Filter chooses the kind of a filter; the default is Standard.
	Filter Kind

	// TwoLayers keeps a Retrieval, a Map, a Coded and a Bumped filter to two layers. A
	// look-up then looks into two at most. It takes some half a per cent more of the space.
	TwoLayers bool

	// Seed of the hashes. Structures of different seeds err at different keys.
	Seed uint64

	// Workers is how many goroutines build at once, up to 256; the default is
	// GOMAXPROCS. It changes the time only: the result is the same in every
	// bit.
	Workers int
}

// ErrContradiction is wrapped by the error of a build that was given one key
// twice, with values that differ.
var ErrContradiction = errors.New("one key with different values")

// ErrUnsolvable is wrapped by the error of a build that found no solution for
// any of its salts. Uniform hashes do not come to it; hashes chosen by an
// adversary that knows the seed may.
var ErrUnsolvable = errors.New("the hashes of the keys are not spread")

// Stats tells of a built structure.
type Stats struct {
	Keys   int // as given: a key given twice counts twice
	Levels int // of bumped ribbons; 1 for the other filters
	Bits   int // of everything that look-ups read

	// Overhead is how much more Bits is than the least that a structure of this
	// kind can have. The least is value and fingerprint bits times keys. 0.003 is
	// 0.3 %. It is 0 if there are no keys.
	Overhead float64

	// FalsePositive is the probability that a key that was never inserted is
	// found. It is 1 for a Retrieval, which has no "no".
	FalsePositive float64
}

// setWorkers gives Workers its default.
func (c *Config) setWorkers() (err error) {
	if c.Workers, err = workers.Of(c.Workers); err != nil {
		return fmt.Errorf("ribbon: %w", err)
	}
	return nil
}

// table builds a table. A filter bumps only if it is asked to.
func (c *Config) table(values, fingerprints, n int, read source) (*table, error) {
	if values == 0 && c.Filter == Standard {
		return newStandard(fingerprints, n, c.Workers, read)
	}
	most := maxLevels
	if c.TwoLayers {
		most = 2
	}
	return newTable(most, values, fingerprints, n, c.Workers, read)
}

func (c *Config) checkValues(keys int, values []uint64) error {
	if err := c.setWorkers(); err != nil {
		return err
	}
	if c.ValueBits < 1 || c.ValueBits > 64 {
		return fmt.Errorf("ribbon: values of %d bits: 1 to 64 are possible", c.ValueBits)
	}
	if keys != len(values) {
		return fmt.Errorf("ribbon: %d keys with %d values", keys, len(values))
	}
	for i, v := range values {
		if v>>(c.ValueBits-1)>>1 != 0 {
			return fmt.Errorf("ribbon: value %d of key %d does not fit in %d bits", v, i, c.ValueBits)
		}
	}
	return nil
}

func (c *Config) checkFingerprint() error {
	if err := c.setWorkers(); err != nil {
		return err
	}
	if c.FingerprintBits < 1 || c.FingerprintBits > maxFingerprint {
		return fmt.Errorf("ribbon: fingerprints of %d bits: 1 to %d are possible", c.FingerprintBits, maxFingerprint)
	}
	return nil
}

// maxFingerprint is the widest fingerprint, in bits. Hashes have 64 bits, so
// at 2^32 keys a wider one would no longer lower the false positive rate.
const maxFingerprint = 32
