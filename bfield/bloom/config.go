package bloom

import (
	"fmt"
	"math"
	"sort"
)

// Kind is where the bits of a key lie.
type Kind uint8

const (
	// Blocked keeps the bits of a key in one cache line.
	Blocked Kind = iota

	// Classic spreads them over the whole filter.
	Classic

	kinds = iota
)

func (k Kind) String() string {
	if k < kinds {
		return [...]string{"blocked", "classic"}[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Config says how to make a filter. Filters of one Config, but for Workers, can be merged.
type Config struct {
	// Keys is how many keys the filter is to hold at the rate that it promises. More may
	// be inserted, at a higher rate. The Build functions take the number of their keys
	// if it is 0.
	Keys int

	// BitsPerKey is the size: 1 to 64 bits for each of Keys.
	BitsPerKey float64

	// FalsePositive is the rate, if BitsPerKey is 0. The filter has the fewest bits a
	// key, in steps of 1/8, at which a stranger passes no more often. The rate is from
	// 10^-9 to 0.5.
	FalsePositive float64

	// Hashes is how many bits a key sets, 1 to 32; 0 chooses the number with the lowest
	// rate.
	Hashes int

	// Kind is Blocked or Classic.
	Kind Kind

	// Seed of the hashes. Filters of different seeds err at different keys.
	Seed uint64

	// Workers is how many goroutines build at once, up to 256; the default is GOMAXPROCS. It
	// changes the time only.
	Workers int
}

const (
	maxHashes = 32
	maxBits   = 64
	// maxWords keeps a filter to 8 TiB, so that no product overflows.
	maxWords = 1 << 40
)

// plan returns the filter, without its words.
func (c Config) plan() (*Filter, error) {
	switch {
	case c.Keys < 0:
		return nil, fmt.Errorf("bloom: a filter for %d keys", c.Keys)
	case c.Kind >= kinds:
		return nil, fmt.Errorf("bloom: no filter of kind %d: 0 to %d are possible", c.Kind, kinds-1)
	case c.Hashes < 0 || c.Hashes > maxHashes:
		return nil, fmt.Errorf("bloom: %d hashes a key: 1 to %d are possible, and 0 for the best", c.Hashes, maxHashes)
	case c.BitsPerKey == 0 && c.FalsePositive == 0:
		return nil, fmt.Errorf("bloom: neither BitsPerKey nor FalsePositive is given")
	}
	bits, hashes := c.BitsPerKey, c.Hashes
	if bits == 0 {
		var err error
		if bits, err = c.bitsFor(c.FalsePositive); err != nil {
			return nil, err
		}
	}
	if !(bits >= 1 && bits <= maxBits) {
		return nil, fmt.Errorf("bloom: %v bits a key: 1 to %d are possible", bits, maxBits)
	}
	if hashes == 0 {
		hashes, _ = best(c.Kind, bits)
	}
	words := max(1, math.Ceil(bits*float64(c.Keys)/64))
	if c.Kind == Blocked {
		words = math.Ceil(words/blockWords) * blockWords
	}
	if words > maxWords {
		return nil, fmt.Errorf("bloom: %v bits for each of %d keys are more than a filter can have", bits, c.Keys)
	}
	return &Filter{kind: c.Kind, hashes: hashes, seed: c.Seed, size: int(words)}, nil
}

// bitsFor returns the fewest bits a key, in steps of 1/8, that reach the rate.
func (c Config) bitsFor(rate float64) (float64, error) {
	if !(rate >= 1e-9 && rate <= 0.5) {
		return 0, fmt.Errorf("bloom: a rate of false positives of %v: 1e-9 to 0.5 are possible", rate)
	}
	reached := func(bits float64) bool {
		if c.Hashes != 0 {
			return predicted(c.Kind, bits, c.Hashes) <= rate
		}
		_, r := best(c.Kind, bits)
		return r <= rate
	}
	eighths := 8 + sort.Search(8*(maxBits-1)+1, func(more int) bool { return reached(float64(8+more) / 8) })
	if eighths > 8*maxBits {
		return 0, fmt.Errorf("bloom: a %v filter does not reach a rate of %v with %d bits a key", c.Kind, rate, maxBits)
	}
	return float64(eighths) / 8, nil
}
