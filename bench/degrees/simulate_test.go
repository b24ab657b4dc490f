package main

import (
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// peeled is the stupid twin of simulator.decode: it peels sets of keys from
// the beginning for each number of cells.
func peeled(law law, d int, seed uint64) int {
	for n := 1; ; n++ {
		cells := make([]map[int]bool, n)
		for i := range cells {
			cells[i] = map[int]bool{}
		}
		for k := range d {
			for _, at := range law.cells(nil, seed, k, n) {
				cells[at][k] = true
			}
		}
		left := d
		for progress := true; progress; {
			progress = false
			for _, c := range cells {
				if len(c) != 1 {
					continue
				}
				for k := range c {
					for _, other := range cells {
						delete(other, k)
					}
				}
				left, progress = left-1, true
			}
		}
		if left == 0 {
			return n
		}
	}
}

func TestSimulationIsAPeel(t *testing.T) {
	for name, law := range compared {
		s := &simulator{law: law}
		for _, d := range []int{1, 2, 3, 5, 10, 30} {
			for seed := range uint64(60 / d) {
				if got, want := s.trial(d, seed), peeled(law, d, seed); got != want {
					t.Errorf("%s, %d differences, seed %d: %d cells, want %d", name, d, seed, got, want)
				}
			}
		}
	}
}

// TestDecoderAgreesWithSimulation at 256 differences, of which each law has
// another mean: the simulated law is that of iblt, and its decoder overlooks
// nothing.
func TestDecoderAgreesWithSimulation(t *testing.T) {
	const d, trials = 256, 300
	r := &runner{seed: 5, log: io.Discard}
	ideal := summarize(r.simulate("", shipped, d, trials), d)
	for _, kind := range []records{missing, mismatched, mixed} {
		cells, err := r.measure(kind, d, trials)
		if err != nil {
			t.Fatal(err)
		}
		s := summarize(cells, d)
		if z := deviation(s.Mean, ideal.Mean, (s.Half*s.Half+ideal.Half*ideal.Half)/(1.96*1.96)); z > 5 {
			t.Errorf("%s: %.4f ± %.4f cells a difference, in simulation %.4f ± %.4f: %.1f deviations", kind, s.Mean, s.Half, ideal.Mean, ideal.Half, z)
		}
	}
}

// TestTrialsAreWhatTheySay counts the kinds of differences, and looks whether
// wrong ones are noticed.
func TestTrialsAreWhatTheySay(t *testing.T) {
	for kind, want := range map[records][3]int{missing: {4, 4, 0}, mismatched: {0, 0, 8}, mixed: {2, 2, 4}} {
		var got [3]int
		for i := range 8 {
			got[kind.kind(i)-rateless.MissingHere]++
		}
		if got != want {
			t.Errorf("%s: %v of each kind, want %v", kind, got, want)
		}
	}
	trial := newTrial(2, mixed, 9)
	found := []rateless.Difference{}
	for i := 1; i <= 2; i++ {
		var sum [1]rateless.Checksum
		k := trial.index(i)
		if err := trial.lookup([]rateless.Index{k}, sum[:]); err != nil || sum[0] != trial.ours.sums[i] {
			t.Errorf("number %d is looked up as %d: %v", i, sum[0], err)
		}
		found = append(found, rateless.Difference{Index: k, Theirs: trial.theirs.sums[i], Ours: trial.ours.sums[i]})
	}
	if err := trial.verify(found); err != nil {
		t.Error(err)
	}
	if trial.verify(found[:1]) == nil {
		t.Error("a difference that was not found is not noticed")
	}
	if found[1].Theirs++; trial.verify(found) == nil {
		t.Error("a wrong checksum is not noticed")
	}
}

// TestSameOnAnyCores: trials have seeds of their own.
func TestSameOnAnyCores(t *testing.T) {
	figures := func(seed uint64) (all [][]int) {
		r := &runner{seed: seed, log: io.Discard}
		cells, err := r.measure(mixed, 20, 30)
		if err != nil {
			t.Fatal(err)
		}
		return append(all, cells, r.simulate("", shipped, 20, 30))
	}
	same := func(a, b [][]int) bool { return slices.EqualFunc(a, b, slices.Equal[[]int]) }
	all := figures(3)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if one := figures(3); !same(all, one) {
		t.Errorf("%v, and on one core %v", all, one)
	}
	if other := figures(4); same(all, other) {
		t.Error("the seed is not used")
	}
}
