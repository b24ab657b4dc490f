package rateless

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/internal/keyhash"
)

func anyCell(t *rapid.T) Cell {
	sum := rapid.OneOf(rapid.Uint64Range(0, p-1), rapid.SampledFrom([]uint64{0, 1, p - 1}))
	return Cell{
		S1:    sum.Draw(t, "s1"),
		S2:    sum.Draw(t, "s2"),
		Count: rapid.Uint8Range(0, countMask).Draw(t, "count"),
	}
}

func TestCellsTravel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.Custom(anyCell), 0, 5).Draw(t, "cells")
		wire := AppendCells([]byte("before"), cells)
		if string(wire[:6]) != "before" || len(wire) != 6+CellSize*len(cells) {
			t.Fatalf("%d cells take %d bytes", len(cells), len(wire)-6)
		}
		got, err := DecodeCells(wire[6:])
		if err != nil || !slices.Equal(got, cells) {
			t.Fatalf("%v came back as %v, %v", cells, got, err)
		}
	})
}

func TestCellsAreAGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyCell(t), anyCell(t)
		c := a
		c.add(&b)
		if !c.inRange() {
			t.Fatalf("%v + %v = %v", a, b, c)
		}
		d := b
		d.add(&a)
		if c != d {
			t.Fatalf("%v + %v = %v, but the other way round %v", a, b, c, d)
		}
		c.sub(&b)
		if c != a {
			t.Fatalf("%v + %v − %v = %v", a, b, b, c)
		}
		c.sub(&a)
		if !c.IsZero() {
			t.Fatalf("%v − itself = %v", a, c)
		}
	})
}

func TestDecodeCellsRefuses(t *testing.T) {
	for length := range 4 * CellSize {
		cells, err := DecodeCells(make([]byte, length))
		if length%CellSize == 0 && (err != nil || len(cells) != length/CellSize) {
			t.Errorf("%d zero bytes: %v, %v", length, cells, err)
		}
		if length%CellSize != 0 && !errors.Is(err, ErrCell) {
			t.Errorf("%d bytes: %v, %v", length, cells, err)
		}
	}
	for _, sum := range []uint64{p, p + 1, 1<<42 - 1} {
		for field := range 2 {
			sums := [2]uint64{}
			sums[field] = sum
			b := AppendCells(make([]byte, CellSize), []Cell{{S1: sums[0], S2: sums[1]}})
			if _, err := DecodeCells(b); !errors.Is(err, ErrCell) {
				t.Errorf("sum %d in field %d: %v", sum, field, err)
			}
		}
	}
}

// TestKeptCellsAre16Bytes holds the memory of a kept sketch to its promise.
func TestKeptCellsAre16Bytes(t *testing.T) {
	if size := unsafe.Sizeof(sum{}); size != 16 {
		t.Errorf("a kept cell takes %d bytes", size)
	}
	if size := unsafe.Sizeof(slot{}); size > 16 {
		t.Errorf("a cell being peeled takes %d bytes", size)
	}
}

func TestSketchUpdatesDoNotAllocate(t *testing.T) {
	s := NewSketch(Key{}, 1<<14)
	r := rand.New(rand.NewPCG(1, 1))
	pairs := randomPairs(r, 100)
	if n := testing.AllocsPerRun(10, func() {
		for _, q := range pairs {
			s.Add(q)
			s.Replace(q, sealed(q.Index, 1))
			s.Remove(sealed(q.Index, 1))
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if cells := s.Prefix(s.Len()); slices.ContainsFunc(cells, func(c Cell) bool { return !c.IsZero() }) {
		t.Error("what was added and removed is still there")
	}
}

func TestSketchRefuses(t *testing.T) {
	panics := func(name string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	s := NewWindow(Key{}, 10, 20)
	panics("Replace of another index", func() { s.Replace(sealed(1, 1), sealed(2, 1)) })
	panics("a window that ends before it begins", func() { NewWindow(Key{}, 2, 1) })
	panics("a window below 0", func() { NewWindow(Key{}, -1, 1) })
	panics("Window outside", func() { s.Window(5, 12) })
	panics("Append of what does not follow", func() { s.Append(NewWindow(Key{}, 21, 22)) })
	good := sealed(p-1, 1<<34-2)
	for _, numbers := range [][2]uint64{{0, uint64(Seal(0, 1))}, {p, uint64(Seal(p, 1))}, {1 << 60, uint64(Seal(1<<60, 1))}, {1, p}, {1, 1 << 60}, {1, uint64(Seal(1, 1)) ^ 1}, {1, uint64(Seal(2, 1))}} {
		bad := Pair{Index: Index(numbers[0]), Checksum: Checksum(numbers[1])}
		panics("Add of no pair", func() { s.Add(bad) })
		panics("Remove of no pair", func() { s.Remove(bad) })
		panics("Replace by no pair", func() { s.Replace(Pair{Index: bad.Index}, bad) })
		panics("Replace of no pair", func() { s.Replace(bad, Pair{Index: bad.Index}) })
		if err := s.AddAll(sequence([]Pair{good, bad, good}, nil)); !errors.Is(err, ErrPair) {
			t.Errorf("AddAll of %v: %v", bad, err)
		}
	}
	panics("Append of another key", func() { s.Append(NewWindow(Key{1}, 20, 21)) })
	for _, bad := range [][2]int{{9, 12}, {10, 21}, {15, 14}, {-1, 0}} {
		if cells, err := s.Cells(bad[0], bad[1]); err == nil {
			t.Errorf("Cells(%d, %d) = %v", bad[0], bad[1], cells)
		}
	}
}

func TestCopiesAreCopies(t *testing.T) {
	s := NewSketch(Key{}, 100)
	s.Add(sealed(5, 6))
	clone, window, prefix := s.Clone(), s.Window(0, 50), s.Prefix(100)
	before := slices.Clone(prefix)
	for i := range Index(40) { // one leaves the estimator as it is with probability 1/2
		s.Add(sealed(7+i, 8))
	}
	if !slices.Equal(clone.Prefix(100), before) || !slices.Equal(window.Prefix(50), before[:50]) || !slices.Equal(prefix, before) {
		t.Error("a copy changed with the sketch")
	}
	if bytes.Equal(clone.Estimator(), s.Estimator()) {
		t.Error("the estimator of a copy changed with the sketch")
	}
}

func TestAppendIsALongerSketch(t *testing.T) {
	short, tail, long := NewSketch(Key{}, 64), NewWindow(Key{}, 64, 500), NewSketch(Key{}, 500)
	for _, s := range []*Sketch{short, tail, long} {
		r := rand.New(rand.NewPCG(2, 2))
		for _, q := range randomPairs(r, 300) {
			s.Add(q)
		}
	}
	short.Append(tail)
	for _, q := range randomPairs(rand.New(rand.NewPCG(2, 3)), 300) {
		short.Add(q)
		long.Add(q)
	}
	if !slices.Equal(short.Prefix(500), long.Prefix(500)) || !bytes.Equal(short.Estimator(), long.Estimator()) {
		t.Error("a sketch that grew differs from one made at that length")
	}
}

func FuzzDecodeCells(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, CellSize))
	f.Add(AppendCells(nil, []Cell{{S1: p - 1, S2: p - 1, Count: 15}, {}, {S1: 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		cells, err := DecodeCells(b)
		if err != nil {
			if !errors.Is(err, ErrCell) || cells != nil {
				t.Fatalf("%v, %v", cells, err)
			}
			return
		}
		for _, c := range cells {
			if !c.inRange() {
				t.Fatalf("accepted %+v", c)
			}
		}
		if !bytes.Equal(AppendCells(nil, cells), b) {
			t.Fatalf("%x encodes as %x", b, AppendCells(nil, cells))
		}
	})
}

// add adds d to c, as a forger does.
func (c *Cell) add(d *Cell) {
	c.S1 = keyhash.Add(c.S1, d.S1)
	c.S2 = keyhash.Add(c.S2, d.S2)
	c.Count = (c.Count + d.Count) & countMask
}

// sealed is the pair of k that says rest.
func sealed(k Index, rest uint64) Pair { return Pair{Index: k, Checksum: Seal(k, rest)} }
