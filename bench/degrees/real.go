package main

import (
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
)

// records is the make-up of a difference.
type records string

// Missing records are by turns on one side and on the other; a mixture has as
// many missing as mismatched ones.
const (
	missing    records = "missing"
	mismatched records = "mismatched"
	mixed      records = "mixed"
)

// kind tells on which side difference number i is.
func (r records) kind(i int) rateless.Kind {
	switch {
	case r == mismatched || r == mixed && i%2 == 1:
		return rateless.Mismatched
	case i/2%2 == 0:
		return rateless.MissingHere
	}
	return rateless.MissingThere
}

// set is one of two sets, without what both hold, which cancels. It is an
// rateless.Source whose cells are made when they are asked for.
type set struct {
	*trial
	sums   []rateless.Checksum // under index number i; 0 is an absent record
	sketch *rateless.Sketch
}

// trial is a difference between two sets.
type trial struct {
	key          rateless.Key
	factor       uint64 // index number i is factor·i in the field
	theirs, ours set
}

func newTrial(d int, r records, seed uint64) *trial {
	random := stream(seed)
	t := &trial{}
	for i := range 4 {
		binary.LittleEndian.PutUint64(t.key[8*i:], random.next())
	}
	t.factor = 1 + random.next()%(keyhash.P-1)
	sum := func(i int) rateless.Checksum { return rateless.Seal(t.index(i), random.next()>>(64-keyhash.RestBits)) }
	for _, s := range []*set{&t.theirs, &t.ours} {
		s.trial, s.sums = t, make([]rateless.Checksum, d+1)
		s.sketch = rateless.NewWindow(t.key, 0, 0)
	}
	for i := 1; i <= d; i++ {
		kind := r.kind(i)
		if kind != rateless.MissingThere {
			t.theirs.sums[i] = sum(i)
		}
		if kind != rateless.MissingHere {
			t.ours.sums[i] = sum(i)
		}
		if t.theirs.sums[i] == t.ours.sums[i] {
			i-- // equal by chance: drawn again
		}
	}
	return t
}

// Cells is the Source of a set.
func (s *set) Cells(from, to int) ([]rateless.Cell, error) {
	if have := s.sketch.Len(); to > have {
		more := rateless.NewWindow(s.key, have, to+to/2+32)
		for i, sum := range s.sums {
			more.Add(rateless.Pair{Index: s.index(i), Checksum: sum})
		}
		s.sketch.Append(more)
	}
	return s.sketch.Cells(from, to)
}

// index is index number i.
func (t *trial) index(i int) rateless.Index { return rateless.Index(keyhash.Mul(t.factor, uint64(i))) }

// lookup is the Lookup of our set.
func (t *trial) lookup(indices []rateless.Index, sums []rateless.Checksum) error {
	inverse := keyhash.Inv(t.factor)
	for i, k := range indices {
		sums[i] = 0
		if number := keyhash.Mul(uint64(k), inverse); number < uint64(len(t.ours.sums)) {
			sums[i] = t.ours.sums[number]
		}
	}
	return nil
}

// needed is the number of cells after which a Decoder has found d differences.
// No decode is done with fewer cells than differences, so that many are given at
// once; each further one alone.
func needed(d int, r records, seed uint64) (int, error) {
	t := newTrial(d, r, seed)
	decoder := rateless.NewSourceDecoder(t.key, &t.ours, t.lookup)
	for from, to := 0, d; !decoder.Done(); from, to = to, to+1 {
		cells, err := t.theirs.Cells(from, to)
		if err != nil {
			return 0, err
		}
		if err := decoder.AddCells(cells); err != nil {
			return 0, fmt.Errorf("decode %d differences from %d cells: %w", d, to, err)
		}
	}
	return decoder.Cells(), t.verify(decoder.Differences())
}

// verify fails if what was found is not the difference.
func (t *trial) verify(found []rateless.Difference) error {
	if d := len(t.ours.sums) - 1; len(found) != d {
		return fmt.Errorf("%d differences found where there are %d", len(found), d)
	}
	inverse := keyhash.Inv(t.factor)
	for _, f := range found {
		i := keyhash.Mul(uint64(f.Index), inverse)
		if i >= uint64(len(t.ours.sums)) || f.Theirs != t.theirs.sums[i] || f.Ours != t.ours.sums[i] {
			return fmt.Errorf("index %d is found with checksums that it does not have", f.Index)
		}
	}
	return nil
}
