package reconcile

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// teller is an initiator whose cells are what forge makes of those of its set,
// however many are asked for. It answers the proof with an echo of the
// responder's, gives nothing, and says so.
func teller(a *side, o Options, forge func(from int, cells []rateless.Cell), most int) *script {
	var pairs []rateless.Pair
	for _, r := range a.dump() {
		pairs = append(pairs, pairOf(a.keys.Hasher, &r))
	}
	cells := func(from, to int) []rateless.Cell {
		w := rateless.NewWindow(a.keys.Cells, from, to)
		for _, p := range pairs {
			w.Add(p)
		}
		c, err := w.Cells(from, to)
		if err != nil {
			a.t.Fatal(err)
		}
		forge(from, c)
		return c
	}
	have, want, read, answered := FirstCells, FirstCells, 0, false
	var residual *wire.Result
	return &script{o: o, says: func(heard []wire.Message) wire.Message {
		if len(heard) == 0 {
			return helloOf(a, func(h *wire.Hello) { h.Cells = cells(0, FirstCells) })
		}
		for ; read < len(heard); read++ {
			switch m := heard[read].(type) {
			case *wire.More:
				want += int(m.Cells)
			case *wire.Result:
				residual = m
			}
		}
		switch {
		case have < want && have >= most:
			return nil
		case have < want:
			from := have
			have = min(want, have+wire.MaxCells)
			return &wire.Cells{Cells: cells(from, have)}
		case !answered:
			answered = true
			return &wire.Answer{Residual: residual.Residual}
		}
		return &wire.End{}
	}}
}

// pairOf is the pair of a record that is alone under its index.
func pairOf(h dbadapter.Hasher, r *dbadapter.Record) rateless.Pair {
	index := h.Index(r.Key)
	return coded.Pair(index, h.Checksum(index, r.Version.Clock, []dbadapter.Digest{h.Digest(r)}))
}

// plus adds d to c.
func plus(c *rateless.Cell, d rateless.Cell) {
	c.S1, c.S2 = keyhash.Add(c.S1, d.S1), keyhash.Add(c.S2, d.S2)
	c.Count = (c.Count + d.Count) & 15
}

// times adds a pair so many times to the cells it belongs to, or takes it out.
func times(key rateless.Key, p rateless.Pair, n int) func(int, []rateless.Cell) {
	return func(from int, cells []rateless.Cell) {
		w := rateless.NewWindow(key, from, from+len(cells))
		if n < 0 {
			w.Remove(p)
		} else {
			w.Add(p)
		}
		one, err := w.Cells(from, from+len(cells))
		if err != nil {
			panic(err)
		}
		for i := range cells {
			for range max(n, -n) {
				plus(&cells[i], one[i])
			}
		}
	}
}

// halfInserted adds a pair to every other of its cells.
func halfInserted(key rateless.Key, p rateless.Pair) func(int, []rateless.Cell) {
	add, odd := times(key, p, 1), false
	return func(from int, cells []rateless.Cell) {
		whole := slices.Clone(cells)
		add(from, whole)
		for i := range cells {
			if cells[i] != whole[i] {
				if odd = !odd; odd {
					cells[i] = whole[i]
				}
			}
		}
	}
}

// pure adds a pair to every cell.
func pure(key rateless.Key, p rateless.Pair) func(int, []rateless.Cell) {
	one := make([]rateless.Cell, 1) // every pair belongs to cell 0
	times(key, p, 1)(0, one)
	return func(_ int, cells []rateless.Cell) {
		for i := range cells {
			plus(&cells[i], one[0])
		}
	}
}

// Cells of no set, by a stranger to the key and by a member. The session ends
// with a named error, or unverified; it asks for cells in bounded rounds and
// lets nothing in.
func TestForgedCells(t *testing.T) {
	nowhere := rateless.Pair{Index: 12345, Checksum: rateless.Seal(12345, 67890)}
	const enough = 2048 // cells, after which a peer that is asked for more is gone
	for name, c := range map[string]struct {
		forge   func(a, b *side) func(from int, cells []rateless.Cell)
		decoded bool // the cells are explained in full
	}{
		// The pair is decoded and asked for, and does not come.
		"a pair of no record": {func(a, _ *side) func(int, []rateless.Cell) { return times(a.keys.Cells, nowhere, 1) }, true},
		// A record of both is told to be newer, and does not come.
		"a checksum of no record": {func(a, b *side) func(int, []rateless.Cell) {
			own := b.dump()[0]
			p := pairOf(b.keys.Hasher, &own)
			remove, add := times(a.keys.Cells, p, -1), times(a.keys.Cells, rateless.Pair{Index: p.Index, Checksum: rateless.Seal(p.Index, 1<<33)}, 1)
			return func(from int, cells []rateless.Cell) { remove(from, cells); add(from, cells) }
		}, true},
		// Counts go round; the sums do not.
		"twice a pair":      {func(a, _ *side) func(int, []rateless.Cell) { return times(a.keys.Cells, nowhere, 2) }, false},
		"16 times a pair":   {func(a, _ *side) func(int, []rateless.Cell) { return times(a.keys.Cells, nowhere, 16) }, false},
		"17 times a pair":   {func(a, _ *side) func(int, []rateless.Cell) { return times(a.keys.Cells, nowhere, 17) }, false},
		"half a key":        {func(a, _ *side) func(int, []rateless.Cell) { return halfInserted(a.keys.Cells, nowhere) }, false},
		"a pure cell often": {func(a, _ *side) func(int, []rateless.Cell) { return pure(a.keys.Cells, nowhere) }, false},
		"another key":       {func(*side, *side) func(int, []rateless.Cell) { return times(rateless.Key{1}, nowhere, 1) }, false},
		"counts alone": {func(*side, *side) func(int, []rateless.Cell) {
			return func(_ int, cells []rateless.Cell) {
				for i := range cells {
					cells[i].Count = (cells[i].Count + 63) & 63
				}
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "a", nil), newSide(t, "b", nil)
			for i := range 5 {
				a.put(record(fmt.Sprint("k", i), "", at(0)))
				b.put(record(fmt.Sprint("k", i), "", at(0)))
			}
			a.put(record("of a", "", at(time.Hour)))
			before := b.dump()
			s, o := asked(t, a, b)
			p := teller(a, o, c.forge(a, b), enough)
			heard := p.play(t, s, 4*maxRounds)
			asks, stuck := 0, false
			for _, m := range heard {
				switch m := m.(type) {
				case *wire.More:
					asks++
				case *wire.Result:
					stuck = m.Method == wire.MethodRanges
				}
			}
			r := s.Report()
			if r.Verified || r.Applied > 0 || !reflect.DeepEqual(b.dump(), before) || asks > maxRounds/4 {
				t.Errorf("verified %v, %d applied, %d rounds", r.Verified, r.Applied, asks)
			}
			// A comparison by range follows; the peer goes on as if all were proved.
			ends := stuck && errors.Is(s.Err(), ErrProtocol) || errors.Is(s.Err(), io.EOF) && r.Cells >= enough
			if c.decoded != errors.Is(s.Err(), ErrNotVerified) || !c.decoded && !ends {
				t.Errorf("%v, %+v", s.Err(), r)
			}
		})
	}
}

// Cells that explain nothing, for as long as more are asked for: the records of
// both sides bound them. Then the responder has the sets compared by range.
func TestCellsForEver(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("a", "", at(0)))
	b.put(record("b", "", at(0)))
	s, o := asked(t, a, b)
	p := teller(a, o, func(_ int, cells []rateless.Cell) {
		for i := range cells {
			cells[i].Count = (cells[i].Count + 8) & 15
		}
	}, MaxCells)
	asks := 0
	heard := p.play(t, s, 8*maxRounds)
	for _, m := range heard {
		if _, ok := m.(*wire.More); ok {
			asks++
		}
	}
	if r := s.Report(); !errors.Is(s.Err(), ErrProtocol) || r.Verified || r.Cells != mostCells(1, 1) || asks > maxRounds/2 || len(heard) == 0 || heard[len(heard)-2].Kind() != wire.KindResult {
		t.Errorf("%v after %d cells in %d rounds by the method %s", s.Err(), r.Cells, asks, r.Method)
	}
}
