package sim

import (
	"slices"
	"testing"
	"time"
)

// Events run in order of their times, those of one time in the order of the calls;
// a skipped one runs late.
func TestOrder(t *testing.T) {
	w := New(1)
	var got []int
	note := func(n int) func() { return func() { got = append(got, n) } }
	w.After(2*time.Second, note(3))
	w.After(time.Second, note(1))
	w.After(time.Second, note(2))
	w.After(time.Second, func() { w.After(500*time.Millisecond, note(5)) })
	w.Run(1200 * time.Millisecond)
	if !slices.Equal(got, []int{1, 2}) || w.Now() != 1200*time.Millisecond {
		t.Fatalf("%v at %s", got, w.Now())
	}
	w.Skip(time.Hour)
	var at time.Duration
	w.After(0, func() { at = w.Now() })
	w.Run(2 * time.Hour)
	if !slices.Equal(got, []int{1, 2, 5, 3}) || at != time.Hour+1200*time.Millisecond {
		t.Errorf("%v, and what was asked for last at %s", got, at)
	}
}

// A draw depends on seed, purpose and counters alone.
func TestDraw(t *testing.T) {
	seen := map[uint64]bool{}
	for _, seed := range []uint64{0, 1, 1 << 63} {
		r := New(seed)
		for p := ForDelay; p <= ForIndices; p++ {
			for a := range uint64(3) {
				for b := range uint64(3) {
					for c := range uint64(3) {
						seen[r.Draw(p, a, b, c)] = true
					}
				}
			}
		}
	}
	if want := 3 * int(ForIndices) * 27; len(seen) != want {
		t.Errorf("%d different draws of %d", len(seen), want)
	}
	if got := New(7).Draw(ForLoss, 1, 2, 3); got != 0x62fe1a3321bb5489 {
		t.Errorf("a draw is %#x now: saved tapes run differently", got)
	}
}

// Shares of a million draws lie within 5 standard deviations of what they
// should be: a false alarm in 10^6 runs, were the draws not fixed.
func TestChance(t *testing.T) {
	r := New(3)
	for _, p := range []float64{0.01, 0.5, 0.9} {
		const n = 1_000_000
		hits := 0
		for i := range uint64(n) {
			if r.Chance(p, ForLoss, i, 0, 0) {
				hits++
			}
		}
		mean := n * p
		if d := float64(hits) - mean; d*d > 25*mean*(1-p) {
			t.Errorf("%d hits of %v expected", hits, mean)
		}
	}
}

// A trace tells runs apart by each part of each note.
func TestTrace(t *testing.T) {
	seen := map[string]bool{}
	for _, note := range []func(*Trace){
		func(tr *Trace) {},
		func(tr *Trace) { tr.Note(1, "x", 2, 3, []byte("y")) },
		func(tr *Trace) { tr.Note(2, "x", 2, 3, []byte("y")) },
		func(tr *Trace) { tr.Note(1, "z", 2, 3, []byte("y")) },
		func(tr *Trace) { tr.Note(1, "x", 1, 3, []byte("y")) },
		func(tr *Trace) { tr.Note(1, "x", 2, 1, []byte("y")) },
		func(tr *Trace) { tr.Note(1, "xy", 2, 3, nil) },
		func(tr *Trace) { tr.Note(1, "x", 2, 3, []byte("y")); tr.Note(1, "x", 2, 3, []byte("y")) },
	} {
		var tr Trace
		note(&tr)
		once := tr.Hash()
		if tr.Hash() != once {
			t.Error("looking at the hash changes it")
		}
		seen[once] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d different traces of 8", len(seen))
	}
}
