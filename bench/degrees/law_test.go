package main

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/iblt/rateless"
)

// Deviations are standard normal. Fewer than 500 are tested in this package, so
// that with six a run fails for nothing once in a million.
const never = 6

func deviation(got, want, variance float64) float64 { return math.Abs(got-want) / math.Sqrt(variance) }

// twoClasses is short, so that all of its parts show in a few cells.
var twoClasses = &steps{[]opening{{3, .2}, {5, .3}}, []part{{.4, .1}, {.6, .9}}}

// compared are laws of all families.
var compared = map[string]law{"shipped": shipped, "joined": joined, "regular": regular, "two classes": twoClasses}

// TestVisiting counts the cells of many mappings against the formula.
func TestVisiting(t *testing.T) {
	const mappings, end, seed = 30_000, 200, 1
	for name, d := range compared {
		visits, together := make([]float64, end), 0.0
		for k := range mappings {
			seen := [end]bool{}
			for _, at := range d.cells(nil, seed, k, end) {
				visits[at]++
				seen[at] = true
			}
			if seen[1] && seen[2] {
				together++
			}
		}
		if visits[0] != mappings {
			t.Errorf("%s: cell 0 holds %v of %d keys", name, visits[0], mappings)
		}
		for j := 1; j < end; j++ {
			p := d.held(j)
			if z := deviation(visits[j], mappings*p, mappings*p*(1-p)); z > never {
				t.Errorf("%s: cell %d holds %v keys, want %.0f: %.1f deviations", name, j, visits[j], mappings*p, z)
			}
		}
		// Visits are independent.
		p := d.held(1) * d.held(2)
		if z := deviation(together, mappings*p, mappings*p*(1-p)); z > never {
			t.Errorf("%s: %v keys are in both of cells 1 and 2, want %.0f", name, together, mappings*p)
		}
	}
}

// TestShippedConstants holds the constants of law.go against the cells that
// iblt's pairs are in: each cell below the join, and beyond it the number of
// cells of an index, of which those of the busiest class have by far the most.
func TestShippedConstants(t *testing.T) {
	const indices, end, busy, seed = 40_000, 1024, 16, 3
	visits := make([]float64, join+8)
	var theirs, ours [2][]float64 // numbers of cells from the join on; of few, and of many
	count := func(side *[2][]float64, n int) {
		class := 0
		if n > busy {
			class = 1
		}
		side[class] = append(side[class], float64(n))
	}
	window := rateless.NewWindow(rateless.Key{seed}, 0, end)
	for k := range indices {
		index := rateless.Index(1 + k)
		pair := rateless.Pair{Index: index, Checksum: rateless.Seal(index, 1)}
		window.Add(pair)
		n := 0
		for j, c := range window.Prefix(end) {
			if c.Count == 0 {
				continue
			}
			if j < len(visits) {
				visits[j]++
			}
			if j >= join {
				n++
			}
		}
		window.Remove(pair)
		count(&theirs, n)
		n = 0
		for _, at := range shipped.cells(nil, seed, k, end) {
			if at >= join {
				n++
			}
		}
		count(&ours, n)
	}
	const advice = "; if iblt's mapping has changed, so must law.go"
	for j := 1; j < len(visits); j++ {
		p := shipped.held(j)
		if z := deviation(visits[j], indices*p, indices*p*(1-p)); z > never {
			t.Errorf("cell %d holds %v pairs, want %.0f: %.1f deviations%s", j, visits[j], indices*p, z, advice)
		}
	}
	p := float64(len(ours[1])) / indices
	if z := deviation(float64(len(theirs[1])), float64(len(ours[1])), 2*indices*p*(1-p)); z > never {
		t.Errorf("%d indices have many cells, want %d: %.1f deviations%s", len(theirs[1]), len(ours[1]), z, advice)
	}
	for class, name := range []string{"few", "many"} {
		a, b := moments(theirs[class]), moments(ours[class])
		if z := deviation(a.mean, b.mean, a.square+b.square); z > never {
			t.Errorf("indices with %s cells have %.3f, want %.3f: %.1f deviations%s", name, a.mean, b.mean, z, advice)
		}
	}
}

// moment is a mean with the square of its standard error.
type moment struct{ mean, square float64 }

func moments(x []float64) (m moment) {
	for _, v := range x {
		m.mean += v / float64(len(x))
	}
	for _, v := range x {
		m.square += (v - m.mean) * (v - m.mean) / float64(len(x)) / float64(len(x)-1)
	}
	return m
}

func TestParseLaw(t *testing.T) {
	other := newBlocks(64, .3, .4, []class{{1, 4}, {255, 384}})
	for _, b := range []*blocks{shipped, other} {
		got, err := parseLaw(b.String())
		if err != nil || got.String() != b.String() || got.opening != b.opening || got.strides != b.strides || !slices.Equal(got.classes, b.classes) {
			t.Errorf("%v is read as %v: %v", b, got, err)
		}
	}
	for bad, why := range map[string]string{
		"":                     "three parts",
		"20|.5,.5":             "three parts",
		"20|.5,.5|256:9|":      "three parts",
		"0|.5,.5|256:9":        "dense",
		"65|.5,.5|256:9":       "dense",
		"x|.5,.5|256:9":        "dense",
		"20|.5|256:9":          "two exponents",
		"20|.5,.5,.5|256:9":    "two exponents",
		"20|0,.5|256:9":        "two exponents",
		"20|.5,3|256:9":        "two exponents",
		"20|.5,.5|256":         "stride",
		"20|.5,.5|256:3":       "stride",
		"20|.5,.5|256:385":     "stride",
		"20|.5,.5|0:9,256:9":   "share",
		"20|.5,.5|255:9":       "add up",
		"20|.5,.5|200:9,200:9": "add up",
	} {
		if b, err := parseLaw(bad); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), shipped.String()) {
			t.Errorf("%q is read as %v: %v", bad, b, err)
		}
	}
}

// TestSearch climbs from a law whose opening is far too sparse, twice the same.
func TestSearch(t *testing.T) {
	poor := newBlocks(1, 1.5, 1.5, []class{{128, 12}, {128, 80}})
	r := &runner{seed: 3, factor: .02, log: io.Discard}
	found := r.search(poor, 10)
	if again := r.search(poor, 10); again.String() != found.String() {
		t.Errorf("%v, and the second time %v", found, again)
	}
	if before, after := r.score(poor, 100, 4), r.score(found, 100, 4); after >= before {
		t.Errorf("%v is no better than %v: %v and %v", found, poor, after, before)
	}
}
