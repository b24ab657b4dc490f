package rateless

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

// nothing looks up an empty set: a hostile peer's cells are decoded against it.
func nothing(_ []Index, sums []Checksum) error {
	clear(sums)
	return nil
}

// zeros is a Source of the empty set.
type zeros struct{}

func (zeros) Cells(from, to int) ([]Cell, error) { return make([]Cell, to-from), nil }

// checkHostile decodes cells in bursts, and checks that nothing is bounded by
// more than their number.
func checkHostile(t *testing.T, key Key, cells []Cell, burst int, local Source, lookup Lookup) *Decoder {
	t.Helper()
	d := NewSourceDecoder(key, local, lookup)
	for len(cells) > 0 {
		n := min(burst, len(cells))
		if err := d.AddCells(cells[:n]); err != nil {
			if !errors.Is(err, ErrForged) {
				t.Fatal(err)
			}
			if again := d.AddCells(cells[n:]); !errors.Is(again, ErrForged) || d.Done() {
				t.Fatalf("after %v: %v, done %v", err, again, d.Done())
			}
			break
		}
		cells = cells[n:]
	}
	if err := hostile(d); err != nil {
		t.Fatal(err)
	}
	seen := map[Index]bool{}
	for _, f := range d.Differences() {
		if seen[f.Index] || f.Index == 0 || f.Index >= p || f.Theirs >= p || f.Ours >= p || f.Theirs == f.Ours {
			t.Fatalf("found %+v", f)
		}
		seen[f.Index] = true
	}
	if e := d.Estimate(); !(e >= float64(len(d.Differences())) && e < 1<<31) {
		t.Fatalf("estimate %v of %d", e, len(d.Differences()))
	}
	return d
}

// forge makes a cell that a test of cell at accepts, as a peer that knows the key
// can.
func forge(w *words, r *rand.Rand, at int) Cell {
	for {
		k := randomIndex(r)
		if w.belongs(k, uint64(at)) {
			return cellOf(sealed(k, r.Uint64N(1<<34)))
		}
	}
}

// TestTooManyActsAreForged: pairs are never more than cells, and acts never more
// than four times as many, even if each test passed.
func TestTooManyActsAreForged(t *testing.T) {
	const seed, n = 23, MinCells
	r := rand.New(rand.NewPCG(seed, 0))
	for _, acts := range []int{0, actsACell*n - 1} {
		d := NewSourceDecoder(Key{}, zeros{}, nothing)
		if err := d.AddCells(make([]Cell, n)); err != nil {
			t.Fatal(err)
		}
		d.work.Acts = acts
		var err error
		accepted := 0
		for ; err == nil; accepted++ {
			k := randomIndex(r)
			for at := range d.cells { // none is zero
				d.cells[at].first |= 7 << sumBits
			}
			c := cellOf(sealed(k, 5))
			d.cells[0] = slotOf(&c)
			err = d.accept(0, k, 0)
		}
		if !errors.Is(err, ErrForged) || accepted != min(n, actsACell*n-acts)+1 {
			t.Errorf("after %d acts and %d pairs out of %d cells: %v", acts, accepted, n, err)
		}
	}
}

// TestRulesOfAcceptance: a cell that looks pure or poisoned is refused if what
// we hold says otherwise.
func TestRulesOfAcceptance(t *testing.T) {
	w := expand(Key{})
	const k = 77
	minus := func(a, b Cell) Cell { a.sub(&b); return a }
	pair := func(rest uint64) Cell { return cellOf(sealed(k, rest)) }
	five, six, seven := Seal(k, 5), Seal(k, 6), Seal(k, 7)
	unsealed := cellOf(Pair{Index: k, Checksum: five ^ 1})
	for _, c := range []struct {
		name string
		cell Cell // of theirs − ours, in each cell of k
		ours Checksum
		want int
	}{
		{"missing here", pair(5), 0, 1},
		{"missing here, but we hold the same", pair(5), five, 0},
		{"missing here, but we hold another", pair(5), six, 0},
		{"missing here, no checksum of it", unsealed, 0, 0},
		{"missing there", minus(Cell{}, pair(5)), five, 1},
		{"missing there, but we do not hold it", minus(Cell{}, pair(5)), 0, 0},
		{"missing there, but we hold another", minus(Cell{}, pair(5)), six, 0},
		{"mismatched", minus(pair(5), pair(6)), six, 1},
		{"mismatched, but we do not hold it", minus(pair(5), pair(6)), 0, 0},
		{"mismatched, but we hold another", minus(pair(5), pair(6)), seven, 0},
		{"mismatched, no checksum of it", minus(unsealed, pair(6)), six, 0},
		{"mismatched, theirs would be none", Cell{S1: p - uint64(six), S2: minus(Cell{}, pair(6)).S2}, six, 0},
		{"index zero", Cell{S1: uint64(Seal(0, 5)), Count: 1}, 0, 0},
		{"two pairs", minus(pair(5), minus(Cell{}, pair(6))), 0, 0},
	} {
		d := NewSourceDecoder(Key{}, zeros{}, func(_ []Index, sums []Checksum) error {
			for i := range sums {
				sums[i] = c.ours
			}
			return nil
		})
		cells := make([]Cell, MinCells)
		for _, at := range cellsOf(&w, k, MinCells) {
			cells[at] = c.cell
		}
		if err := d.AddCells(cells[:MinCells-1]); err != nil || len(d.Differences()) > 0 || d.Done() {
			t.Fatalf("%s: of too few cells: %v, %v, done %v", c.name, d.Differences(), err, d.Done())
		}
		if err := d.AddCells(cells[MinCells-1:]); err != nil {
			t.Fatal(err)
		}
		if len(d.Differences()) != c.want || d.Done() != (c.want == 1) {
			t.Errorf("%s: found %v, done %v", c.name, d.Differences(), d.Done())
		}
	}
}

func TestDecoderErrors(t *testing.T) {
	failed := errors.New("failed")
	s := NewSketch(Key{}, MinCells)
	s.Add(sealed(1, 1))
	d := NewSourceDecoder(Key{}, zeros{}, func([]Index, []Checksum) error { return failed })
	if err := d.AddCells(s.Prefix(MinCells)); !errors.Is(err, failed) || d.Done() {
		t.Errorf("failing look-up: %v, done %v", err, d.Done())
	}
	d = NewDecoder(NewSketch(Key{}, 5), nothing)
	if err := d.AddCells(s.Prefix(10)); err == nil || d.Done() {
		t.Errorf("more cells than ours: %v, done %v", err, d.Done())
	}
	for _, c := range []Cell{{S1: p}, {S2: p}, {Count: 16}} {
		d = NewSourceDecoder(Key{}, zeros{}, nothing)
		if err := d.AddCells([]Cell{c}); !errors.Is(err, ErrCell) || d.Done() {
			t.Errorf("%+v: %v, done %v", c, err, d.Done())
		}
		d = NewSourceDecoder(Key{}, zeros{}, nothing)
		if err := d.AddCells(make([]Cell, MinCells)); err != nil || !d.Done() {
			t.Errorf("zero cells: %v, done %v", err, d.Done())
		}
		if err := d.AddCells([]Cell{c}); !errors.Is(err, ErrCell) || d.Done() {
			t.Errorf("%+v after all was explained: %v, done %v", c, err, d.Done())
		}
		if err := d.AddCells(nil); !errors.Is(err, ErrCell) {
			t.Errorf("%+v, and then no cells: %v", c, err)
		}
	}
	d = NewSourceDecoder(Key{}, zeros{}, nothing)
	if err := d.AddCells(nil); err != nil || d.Done() || d.Estimate() != 0 {
		t.Errorf("no cells: %v, done %v", err, d.Done())
	}
	for n := 1; n <= MinCells; n++ {
		if err := d.AddCells(make([]Cell, 1)); err != nil || d.Done() != (n == MinCells) {
			t.Errorf("%d zero cells: %v, done %v", n, err, d.Done())
		}
	}
}

// FuzzDecoder reads from bytes what is added to the cells of two sets: to
// which cell, and a forged pair, a multiple of a cell before, or raw fields.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{}, uint8(5), uint8(9))
	f.Add([]byte{0, 0, 1, 2, 1, 3, 9, 9, 2, 7, 200, 14, 0, 4, 4, 4}, uint8(30), uint8(1))
	f.Add([]byte{3, 0, 0, 0, 3, 1, 1, 1, 3, 2, 2, 2, 3, 3, 3, 3}, uint8(0), uint8(64))
	f.Fuzz(func(t *testing.T, edits []byte, differences, burst uint8) {
		const m = 96
		key := Key{differences, burst}
		n := int(differences % 64)
		r := rand.New(rand.NewPCG(uint64(differences), uint64(burst)))
		s := diverge(r, key, m, 5, n/3, n/3, n/3)
		w := expand(key)
		cells := s.theirs.Prefix(m)
		for ; len(edits) >= 4; edits = edits[4:] {
			at := int(edits[1]) % m
			number := uint64(binary.LittleEndian.Uint16(edits[2:]))
			switch edits[0] % 4 {
			case 0: // a pair that may or may not belong here
				c := cellOf(sealed(Index(number+1), uint64(edits[3])))
				cells[at].add(&c)
			case 1: // another cell
				c := cells[number%m]
				cells[at].sub(&c)
			case 2: // raw fields
				c := Cell{S1: number * 0x1234567 % p, S2: number * 0x7654321 % p, Count: edits[3] & countMask}
				cells[at].add(&c)
			case 3: // a pair that does belong here
				c := forge(&w, rand.New(rand.NewPCG(number, 0)), at)
				cells[at] = c
			}
		}
		checkHostile(t, key, cells, int(burst%m)+1, s.ours, s.lookup)
	})
}
