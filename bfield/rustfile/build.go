package rustfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/syncd-io/syncd/bfield"
)

var (
	// ErrConfig is returned for parameters with which the original makes no field, or
	// could not look up.
	ErrConfig = errors.New("rustfile: no such field")
	// ErrIndeterminate is returned if keys are indeterminate in all arrays: these must
	// be more or larger.
	ErrIndeterminate = errors.New("rustfile: keys are indeterminate in all arrays")
)

// Bounds of an array in bits. The original reads 128 bits at a time.
const (
	leastSize = 128
	mostSize  = 1 << 43
)

// Config are the parameters of a new field, those of the original's create.
type Config struct {
	Size   uint64 // of the first array, in bits; ≥ 128
	Hashes int    // k, 1 to 16
	Nu     int    // ν, 1 to 128
	Kappa  int    // κ, 1 to 9
	Arrays int    // 1 to 255

	// Each array has Scale times the bits of the one before, but at least LeastScale
	// times those of the first. Both are 0 to 1. In the original they are
	// secondary_scaledown and max_scaledown.
	Scale, LeastScale float64

	// Other are the application's own parameters in the encoding of bincode; nil for
	// no parameters. String encodes a string. At most 65,531 bytes.
	Other []byte
}

// String returns a string as Other is to hold it.
func String(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}

// Values returns θ = min(C(ν, κ), 2^32): values go from 0 to θ−1. It is 0 if no
// field has these parameters.
func (c Config) Values() uint64 {
	if !(shape{c.Hashes, c.Nu, c.Kappa}).valid() {
		return 0
	}
	return min(binomials[c.Nu][c.Kappa], math.MaxUint32+1)
}

func (c Config) sizes() ([]uint64, error) {
	if c.Values() == 0 || c.Arrays < 1 || c.Arrays > maxArrays || len(c.Other) > maxOther ||
		!(c.Scale >= 0 && c.Scale <= 1 && c.LeastScale >= 0 && c.LeastScale <= 1) {
		return nil, fmt.Errorf("%d arrays, scales %g and %g, k %d, ν %d, κ %d, %d bytes of parameters: %w",
			c.Arrays, c.Scale, c.LeastScale, c.Hashes, c.Nu, c.Kappa, len(c.Other), ErrConfig)
	}
	size := c.Size
	var sizes []uint64
	for i := range c.Arrays {
		if size < leastSize || size <= uint64(c.Nu) || size > mostSize {
			return nil, fmt.Errorf("array %d with %d bits: %w", i, size, ErrConfig)
		}
		sizes = append(sizes, size)
		size = uint64(max(float64(size)*c.Scale, float64(c.Size)*c.LeastScale))
	}
	return sizes, nil
}

// Build returns a field of keys and their values, values[i] that of keys[i]. Its
// files are those that the original makes of the same input, but for values of
// 200,000 and more.
//
// It fails with ErrConfig or ErrIndeterminate, with bfield.ErrValue for a
// value of θ or more, and with bfield.ErrContradiction if a key has two
// values.
func Build(c Config, keys [][]byte, values []uint64) (*Field, error) {
	sizes, err := c.sizes()
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	if len(keys) != len(values) {
		return nil, fmt.Errorf("build: %d keys and %d values: %w", len(keys), len(values), ErrConfig)
	}
	left := make([]int, len(keys))
	for i, v := range values {
		if v >= c.Values() {
			return nil, fmt.Errorf("build: value %d of key %d: the values go from 0 to %d: %w", v, i, c.Values()-1, bfield.ErrValue)
		}
		left[i] = i
	}
	f, other := new(Field), c.Other
	for _, size := range sizes {
		a := newArray(shape{c.Hashes, c.Nu, c.Kappa}, size, other)
		for _, i := range left {
			a.insert(hashOf(keys[i]), values[i])
		}
		next := left[:0]
		for _, i := range left {
			if a.common(hashOf(keys[i])).ones() > c.Kappa {
				next = append(next, i)
			}
		}
		f.arrays, left, other = append(f.arrays, a), next, nil
	}
	// A key with two values has the ones of both in each of its windows.
	held := make(map[string]uint64, len(left))
	for _, i := range left {
		if v, ok := held[string(keys[i])]; ok && v != values[i] {
			return nil, fmt.Errorf("build: key %d has values %d and %d: %w", i, v, values[i], bfield.ErrContradiction)
		}
		held[string(keys[i])] = values[i]
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("build: %d of %d: %w", len(left), len(keys), ErrIndeterminate)
	}
	return f, nil
}
