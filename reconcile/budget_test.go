package reconcile

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Sessions share a budget: what does not fit is told busy, and all of it is
// there again when they are over.
func TestBudgetIsSharedAndReturned(t *testing.T) {
	for name, c := range map[string]struct {
		of   int // whose budget is too small
		free int64
		want error
	}{
		"enough":                        {1, 2 * baseBytes, nil},
		"no room at the responder":      {1, baseBytes, ErrBusy},
		"no room at the initiator":      {0, baseBytes - 1, ErrBusy},
		"no room for the next cells":    {1, baseBytes + 140*cellBytes, ErrBusy},
		"no room for cells asked of it": {0, baseBytes + 140*cellBytes, ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := diverged(t, seeded(t, 3), 50, 150, 20, time.Hour, nil)
			free := [2]int64{1 << 40, 1 << 40}
			free[c.of] = c.free
			a.budget, b.budget = NewBudget(free[0]), NewBudget(free[1])
			out := run(t, a, b, Options{}, nil)
			if !errors.Is(out.errA, c.want) || c.of == 1 && !errors.Is(out.errB, c.want) {
				t.Errorf("%v, %v; %v", out.errA, out.errB, out.log)
			}
			if a.budget.free != free[0] || b.budget.free != free[1] {
				t.Errorf("%d and %d bytes are free afterwards", a.budget.free, b.budget.free)
			}
			if c.want == nil {
				wantEqual(t, a, b)
			}
		})
	}
	t.Run("abandoned", func(t *testing.T) {
		a, b := diverged(t, seeded(t, 3), 50, 150, 20, time.Hour, nil)
		a.budget = NewBudget(1 << 40)
		s, _ := asking(t, a, b)
		s.Next()
		if a.budget.free == 1<<40 {
			t.Fatal("nothing is lent to a session that has begun")
		}
		if s.Close(); a.budget.free != 1<<40 {
			t.Errorf("%d bytes are free afterwards", a.budget.free)
		}
	})
}

// A member that announces one record and sends random cells takes no more of
// them than the records of both sides can need.
func TestRandomCellsAreBounded(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for i := range 100 {
		b.put(record(fmt.Sprint("b", i), "", at(0)))
	}
	rng := rand.New(rand.NewPCG(4, 4))
	random := func(n int) []rateless.Cell {
		cells := make([]rateless.Cell, n)
		for i := range cells {
			cells[i] = rateless.Cell{S1: 1 + rng.Uint64N(rateless.P-1), S2: 1 + rng.Uint64N(rateless.P-1), Count: uint8(rng.IntN(16))}
		}
		return cells
	}
	most := mostCells(100, 1)
	b.budget = NewBudget(int64(baseBytes + cellBytes*most))
	s, o := asked(t, a, b)
	read, want, cells := 0, 0, 128
	p := script{o: o, says: func(heard []wire.Message) wire.Message {
		if len(heard) == 0 {
			return helloOf(a, func(h *wire.Hello) { h.Records, h.Cells = 1, random(128) })
		}
		for ; read < len(heard); read++ {
			if more, ok := heard[read].(*wire.More); ok {
				want += int(more.Cells)
			}
		}
		if want == 0 {
			return nil
		}
		n := min(want, wire.MaxCells)
		want, cells = want-n, cells+n
		return &wire.Cells{Cells: random(n)}
	}}
	p.play(t, s, 10_000)
	if cells != most || most > 5000 || errors.Is(s.Err(), ErrBusy) {
		t.Errorf("%d cells, %v; %d are enough", cells, s.Err(), most)
	}
}

// A responder cannot ask for more cells than the records of both sides need.
func TestCellsAskedAreBounded(t *testing.T) {
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	a.put(record("k", "v", at(0)))
	for _, records := range []uint64{1, 1 << 20, math.MaxInt64} {
		s, o := asking(t, a, b)
		n := 0
		p := script{o: o, says: func([]wire.Message) wire.Message {
			if n++; n == 1 {
				return &wire.Welcome{Sum: dbadapter.Sum{Records: records, Digest: dbadapter.Digest{1}}}
			}
			return &wire.More{Cells: burst}
		}}
		p.play(t, s, 10_000)
		if !errors.Is(s.Err(), ErrProtocol) || s.Report().Cells > mostCells(1, records) || records == 1 && s.Report().Cells > FirstCells {
			t.Errorf("%d records announced: %d cells, %v", records, s.Report().Cells, s.Err())
		}
	}
}

// fresh is a replica that allocates each value it returns, and can count the
// bytes of those that are still in use.
type fresh struct {
	*set
	read map[weak.Pointer[byte]]int
}

func (f *fresh) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	all, err := f.set.Buckets(indices)
	for _, records := range all {
		for n := range records {
			records[n].Value = append(make([]byte, 0, len(records[n].Value)), records[n].Value...)
			if v := records[n].Value; len(v) > 0 {
				f.read[weak.Make(&v[0])] = len(v)
			}
		}
	}
	return all, err
}

func (f *fresh) inUse() (bytes int) {
	runtime.GC()
	for p, size := range f.read {
		if p.Value() != nil {
			bytes += size
		}
	}
	return bytes
}

// A reader that pushes stale records makes this side hold keys and digests, not
// the newer records that they do not answer.
func TestOwedValuesAreNotHeld(t *testing.T) {
	const n, size = 300, 100 << 10
	for _, direction := range []wire.Direction{wire.Both, wire.Push} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		for i := range n {
			key := fmt.Sprint("k", i)
			a.put(record(key, "old", at(0)))
			b.put(record(key, strings.Repeat("x", size), at(time.Second)))
		}
		replica := &fresh{b.open(), map[weak.Pointer[byte]]int{}}
		defer replica.Close()
		va := a.open()
		defer va.Close()
		sa := Initiate(va, a.options(b, Options{Direction: direction}))
		sb := Respond(opening(replica), b.options(a, Options{}))
		defer sa.Close()
		defer sb.Close()
		peak := 0
		var out outcome
		carry(t, sa, sb, &out, func(initiator bool, m wire.Message) wire.Message {
			switch m.(type) {
			case *wire.End, *wire.Answer, *wire.Records:
				peak = max(peak, replica.inUse())
			}
			return m
		})
		if sa.Err() != nil || sb.Err() != nil {
			t.Fatal(sa.Err(), sb.Err())
		}
		t.Logf("%v: %d values of %d bytes read, %d bytes in use", direction, len(replica.read), size, peak)
		if most := cacheBytes + 2*wire.BatchBytes; peak > most {
			t.Errorf("%v: values of %d bytes are in use; at most %d may be", direction, peak, most)
		}
	}
}

// What a cell takes in a decode in which each yields a difference, at both sides
// together, with the difference plans and all.
func TestMemoryOfACell(t *testing.T) {
	a, b, o := sets(rand.New(rand.NewPCG(9, 1)), 0, 50_000, 0, time.Hour)
	o.Self, o.Remote, o.DryRun = []byte("a"), []byte("b"), true
	back := o
	back.Self, back.Remote = o.Remote, o.Self
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, peak := heap(), int64(0)
	sa, sb := Initiate(a, o), Respond(opening(b), back)
	defer sa.Close()
	defer sb.Close()
	carry(t, sa, sb, &outcome{}, func(_ bool, m wire.Message) wire.Message {
		switch m.(type) {
		case *wire.More, *wire.Result:
			peak = max(peak, heap()-before)
		}
		return m
	})
	cells := sa.Report().Cells
	t.Logf("%d cells, %d bytes each at both sides", cells, (peak-2*cacheBytes)/int64(cells))
	if peak > 2*baseBytes+2*cellBytes*int64(cells) {
		t.Errorf("%d bytes for %d cells", peak, cells)
	}
}

// However small the records that arrive are, those that one admission must
// compare them with are bounded: a store reads them all.
func TestAdmissionComparesWithLittle(t *testing.T) {
	const size = 1 << 20
	for _, o := range []Options{{Direction: wire.Push}, {Method: wire.MethodAll}} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		for i := range 30 {
			key := fmt.Sprint("k", i)
			a.put(record(key, "old", at(0)))
			b.put(record(key, strings.Repeat("x", size), at(time.Second)))
		}
		calls, most := 0, 0
		b.admit = func(records []dbadapter.Record) ([]Verdict, error) {
			calls++
			most = max(most, len(records))
			return b.write(records)
		}
		synced(t, a, b, o, nil)
		if calls == 0 || most > besideBytes/size {
			t.Errorf("%v, %v: %d records of 1 MiB are compared at once", o.Direction, o.Method, most)
		}
	}
}
