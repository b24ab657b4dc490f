// Package subject is what command versions measures of one version of
// iblt/rateless. The command copies this file once for each version and lets the
// copy import that version, so that it uses only what all versions have, and its
// callers see no type of any version.
package subject

import (
	"errors"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// Pair is index and checksum.
type Pair = [2]uint64

func pairOf(p Pair) rateless.Pair {
	return rateless.Pair{Index: rateless.Index(p[0]), Checksum: rateless.Checksum(p[1])}
}

func pairsOf(pairs []Pair) []rateless.Pair {
	out := make([]rateless.Pair, len(pairs))
	for i, p := range pairs {
		out[i] = pairOf(p)
	}
	return out
}

// Replacing adds the old pairs to a kept sketch of m cells and returns what puts the
// fresh ones from one number to another in their place, and then the old ones again.
func Replacing(old, fresh []Pair, m int) func(from, to int) {
	s := rateless.NewSketch(rateless.Key{}, m)
	a, b := pairsOf(old), pairsOf(fresh)
	for _, p := range a {
		s.Add(p)
	}
	return func(from, to int) {
		for i := from; i < to; i++ {
			s.Replace(a[i], b[i])
			a[i], b[i] = b[i], a[i]
		}
	}
}

// Decoding returns what finds the d differences of two sets from m cells that come at
// once. local has what this side holds.
func Decoding(theirs, ours []Pair, local map[uint64]uint64, d, m int) func() error {
	a, b := rateless.NewSketch(rateless.Key{}, m), rateless.NewSketch(rateless.Key{}, m)
	for _, p := range theirs {
		a.Add(pairOf(p))
	}
	for _, p := range ours {
		b.Add(pairOf(p))
	}
	cells := a.Prefix(m)
	return func() error {
		decoder := rateless.NewDecoder(b, set(local).lookup)
		if err := decoder.AddCells(cells); err != nil {
			return err
		}
		if !decoder.Done() || len(decoder.Differences()) != d {
			return errors.New("a decode did not find the differences")
		}
		return nil
	}
}

// set has the checksum of each index that this side holds.
type set map[uint64]uint64

func (s set) lookup(indices []rateless.Index, sums []rateless.Checksum) error {
	for i, k := range indices {
		sums[i] = rateless.Checksum(s[uint64(k)])
	}
	return nil
}

// Building returns what sketches pairs into m cells on all processors.
func Building(pairs []Pair, m int) func() error {
	return func() error {
		s := rateless.NewSketch(rateless.Key{}, m)
		return s.AddAll(func(yield func(rateless.Pair, error) bool) {
			for _, p := range pairs {
				if !yield(pairOf(p), nil) {
					return
				}
			}
		})
	}
}
