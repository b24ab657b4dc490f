package main

import (
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
var twoClasses = design{[]opening{{3, .2}, {5, .3}}, []class{{.4, .1}, {.6, .9}}}

// held is the part of all indices that cell j > 0 holds.
func (d *design) held(j int) (p float64) {
	for _, c := range d.classes {
		p += c.share * d.visits(c.alpha, j)
	}
	return p
}

// TestVisiting counts the cells of many mappings against the formula.
func TestVisiting(t *testing.T) {
	const mappings, end, seed = 30_000, 200, 1
	for _, d := range []design{shipped, regular, twoClasses} {
		visits, together := make([]float64, end), 0.0
		for k := range mappings {
			seen := [end]bool{}
			for w := d.start(seed, k); w.at < end; w.step() {
				visits[w.at]++
				seen[w.at] = true
			}
			if seen[1] && seen[2] {
				together++
			}
		}
		if visits[0] != mappings {
			t.Errorf("%v: cell 0 holds %v of %d keys", d, visits[0], mappings)
		}
		for j := 1; j < end; j++ {
			p := d.held(j)
			if z := deviation(visits[j], mappings*p, mappings*p*(1-p)); z > never {
				t.Errorf("%v: cell %d holds %v keys, want %.0f: %.1f deviations", d, j, visits[j], mappings*p, z)
			}
		}
		if d.join() > 2 || len(d.classes) == 1 { // visits are independent
			p := d.held(1) * d.held(2)
			if z := deviation(together, mappings*p, mappings*p*(1-p)); z > never {
				t.Errorf("%v: %v keys are in both of cells 1 and 2, want %.0f", d, together, mappings*p)
			}
		}
	}
}

// TestShippedConstants holds the constants of design.go against the cells that
// iblt's pairs are in: each cell below the join, and beyond it the number of
// cells of an index, of which those of the busiest class have by far the most.
func TestShippedConstants(t *testing.T) {
	const indices, end, busy, seed = 40_000, 1024, 16, 3
	visits := make([]float64, shipped.join()+8)
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
		pair := rateless.Pair{Index: rateless.Index(1 + k), Checksum: 1}
		window.Add(pair)
		n := 0
		for j, c := range window.Prefix(end) {
			if c.Count == 0 {
				continue
			}
			if j < len(visits) {
				visits[j]++
			}
			if j >= shipped.join() {
				n++
			}
		}
		window.Remove(pair)
		count(&theirs, n)
		n = 0
		for w := shipped.start(seed, k); w.at < end; w.step() {
			if w.at >= shipped.join() {
				n++
			}
		}
		count(&ours, n)
	}
	const advice = "; if iblt's mapping has changed, so must design.go"
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

func TestParseDesign(t *testing.T) {
	for _, d := range []design{shipped, regular, classesOnly, twoClasses} {
		got, err := parseDesign(d.String())
		if err != nil || !equal(got, d) {
			t.Errorf("%v is read as %v: %v", d, got, err)
		}
	}
	if d, err := parseDesign("56|.53|.18:.11,.56:.68,.26:.82"); err != nil || !equal(d, design{[]opening{{56, .53}}, []class{{.18, .11}, {.56, .68}, {.26, .82}}}) {
		t.Errorf("%v, %v", d, err)
	}
	for bad, why := range map[string]string{
		"":                        "three parts",
		"64|.5":                   "three parts",
		"64|.5|1:.5|":             "three parts",
		"0|.5|1:.5":               "rising",
		"x|.5|1:.5":               "rising",
		"5,5|.5,.4|1:.5":          "rising",
		"5,6|.5|1:.5":             "each opening",
		"64|0|1:.5":               "an opening",
		"64|NaN|1:.5":             "an opening",
		"64|.5|":                  "share",
		"64|.5|1":                 "share",
		"64|.5|1:":                "class",
		"64|.5|1:9":               "class",
		"64|.5|.5:.5":             "add up",
		"64|.5|.5:.5,.6:.5":       "add up",
		"64|.5|-.5:.5,1.5:.5":     "share",
		"64|.5|.5:.5,.5:.5,NaN:1": "share",
	} {
		if _, err := parseDesign(bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: the error is %v, and does not speak of %q", bad, err, why)
		}
	}
}

func equal(a, b design) bool {
	return slices.Equal(a.openings, b.openings) && slices.Equal(a.classes, b.classes)
}
