package main

import (
	"bytes"
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/iblt"
)

// never is the chance of a false alarm that each comparison here is allowed:
// there are 20 of them, so that one choice of seeds in five million fails for
// nothing.
const never = 1e-8

// spread is the standard deviation of the percentage of 10,000 keys that GET
// finds in a trial: 0.151 to 0.157 in 20,000 trials, and 0.146 if keys were independent.
// A spread that is known takes 6 standard errors for a chance of 2·10^−9; one
// that is estimated from some ten trials would take many more.
const spread = 0.16

// TestFigures is a short run of the paper's experiments. The seeds are fixed:
// a failure is reproduced by running it again.
func TestFigures(t *testing.T) {
	const seed = 7
	at := func(all []experiment, cells, multi int) experiment {
		for _, e := range all {
			if e.s.cells == cells && e.s.multi == multi {
				return e
			}
		}
		t.Fatalf("no experiment of %d cells and %d keys with two values", cells, multi)
		return experiment{}
	}
	// The paper's plot has no number for it; docs/PAPER.md has this one.
	failing := at(thresholdSmall(), 14_000, 0)
	failing.paper.incomplete = count{20_000, 20_000}
	for _, c := range []struct {
		name   string
		e      experiment
		trials int
	}{
		{"14,000 cells", failing, 50},
		{"14,500 cells", at(thresholdSmall(), 14_500, 0), 50},
		{"14,600 cells", at(thresholdSmall(), 14_600, 0), 50},
		{"144,000 cells", at(thresholdLarge(), 144_000, 0), 2},
		{"faults", at(faulty(), 80_000, 0), 60},
		{"500 with two values", at(multipleSmall(), 80_000, 500), 20},
		{"1,000 with two values", at(multipleSmall(), 80_000, 1000), 30},
		{"2,000 with two values", at(multipleSmall(), 80_000, 2000), 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := simulate(c.e.s, c.trials, seed)
			if err != nil {
				t.Fatal(err)
			}
			if o.wrong != 0 {
				t.Errorf("%d wrong answers", o.wrong)
			}
			ours := count{o.incomplete(), o.trials}
			if p := same(ours, c.e.paper.incomplete); p < never {
				t.Errorf("incomplete in %d of %d trials, the paper has %+v: chance %.2g", ours.hits, ours.trials, c.e.paper.incomplete, p)
			}
			for i, percent := range c.e.paper.left {
				if c.e.paper.left[0] == 0 {
					break
				}
				if p := same(count{o.left[i], o.trials}, count{int(percent*200 + 0.5), 20_000}); p < never {
					t.Errorf("%d keys missing in %d of %d trials, the paper has %v %%: chance %.2g", i, o.left[i], o.trials, percent, p)
				}
			}
			if c.e.paper.found != 0 {
				// 6 standard errors; the paper's figure is rounded to 0.01.
				got := o.looked().value
				if off := math.Abs(got - c.e.paper.found); off > 0.005+6*spread/math.Sqrt(float64(c.trials)) {
					t.Errorf("GET finds %.4f %%, the paper has %v", got, c.e.paper.found)
				}
			}
		})
	}
}

// TestThresholds holds the formula against the paper's Table 1, but for k = 7:
// 1.721 there is 1/0.581; the formula gives 1/0.5818 = 1.719.
func TestThresholds(t *testing.T) {
	for k, want := range map[int]float64{3: 1.222, 4: 1.295, 5: 1.425, 6: 1.570, 7: 1.719} {
		if got := (iblt.TableConfig{Hashes: k}).Threshold(); math.Abs(got-want) > 0.0005 {
			t.Errorf("k = %d: %.5f, not %.3f", k, got, want)
		}
	}
}

// TestBelowThreshold: far from the threshold the recovered part is what theory
// says, and one lost subtable makes the difference around it.
func TestBelowThreshold(t *testing.T) {
	below, err := simulate(setting{keys: small, cells: 13_000}, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m := below.listed(); math.Abs(m.value-100*recoveredRate(small, 13_000)) > 3 || below.left[0] != 0 {
		t.Errorf("13,000 cells: %.2f %% listed, in theory %.2f", m.value, 100*recoveredRate(small, 13_000))
	}
	for cells, complete := range map[int]int{15_000: 0, 18_000: 5} {
		o, err := simulate(setting{keys: small, cells: cells, lost: 1, gets: true}, 5, 1)
		if err != nil {
			t.Fatal(err)
		}
		if o.left[0] != complete || o.wrong != 0 {
			t.Errorf("a subtable of %d cells lost: %d of 5 complete, not %d; %d wrong", cells, o.left[0], complete, o.wrong)
		}
		if m, want := o.looked(), 100*foundRate(small, cells, hashes-1); math.Abs(m.value-want) > 1 {
			t.Errorf("a subtable of %d cells lost: GET finds %.2f %%, in theory %.2f", cells, m.value, want)
		}
	}
}

// TestSameOnAnyCores: trials have seeds of their own.
func TestSameOnAnyCores(t *testing.T) {
	s := setting{keys: 300, cells: 450, faults: true, multi: 3, gets: true}
	all, err := simulate(s, 40, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var one outcome
	for range 2 {
		if one, err = simulate(s, 40, 3); err != nil {
			t.Fatal(err)
		}
		if one != all {
			t.Fatalf("%+v, then %+v", all, one)
		}
	}
	if other, _ := simulate(s, 40, 4); other == all {
		t.Error("the seed is not used")
	}
}

// TestStatistics holds intervals and Fisher's test against published values.
func TestStatistics(t *testing.T) {
	near := func(what string, got, want, by float64) {
		t.Helper()
		if math.Abs(got-want) > by {
			t.Errorf("%s is %v, not %v", what, got, want)
		}
	}
	low, high := count{0, 10}.interval()
	near("low end of 0 in 10", low, 0, 0)
	near("high end of 0 in 10", high, 1-math.Pow(0.025, 0.1), 1e-9)
	low, high = count{5, 10}.interval()
	near("low end of 5 in 10", low, 0.18709, 1e-5)
	near("high end of 5 in 10", high, 0.81291, 1e-5)
	low, high = count{10, 10}.interval()
	near("low end of 10 in 10", low, math.Pow(0.025, 0.1), 1e-9)
	near("high end of 10 in 10", high, 1, 0)
	// Fisher's tea: all four cups told right, by chance 2/70 on two sides.
	near("tea", same(count{4, 4}, count{0, 4}), 2.0/70, 1e-12)
	near("alike", same(count{3, 30}, count{1, 10}), 1, 1e-9)
	if p := same(count{15, 30}, count{2, 20_000}); p > never {
		t.Errorf("half against a ten-thousandth may be the same: %v", p)
	}
	m := meanOf(6, 14, 3) // 1, 2, 3
	near("mean", m.value, 2, 1e-12)
	near("half an interval", m.half, 1.96/math.Sqrt(3), 1e-12)
}

// TestCommand runs the command in short, and reads what it writes.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	var out, log bytes.Buffer
	if err := run([]string{"--trials", "1", "--large", "-1", "--plots", dir}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Seed 1", "## Table 1", "Figure 1(a)", "Figure 2(a)", "## Table 2", "subtables lost", "put in, over all trials: 0."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	for name, points := range map[string]int{"paper-figure-1a.svg": 8, "paper-figure-2a.svg": 7} {
		picture, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var svg struct {
			Circles  []struct{} `xml:"svg>circle"`
			Curve    []struct{} `xml:"svg>polyline"`
			Diamonds []struct{} `xml:"svg>path"`
		}
		if err := xml.Unmarshal(picture, &svg); err != nil || len(svg.Circles) != points || len(svg.Curve) != 1 || len(svg.Diamonds) != 3 {
			t.Errorf("%s: %d dots, %d curves, %d of the paper; want %d, 1 and 3; %v", name, len(svg.Circles), len(svg.Curve), len(svg.Diamonds), points, err)
		}
	}
	log.Reset()
	if err := run([]string{"-h"}, &out, &log); err != nil || !strings.Contains(log.String(), "-trials") {
		t.Errorf("-h: %v, %s", err, &log)
	}
	out.Reset()
	if err := run([]string{"--trials", "1", "--only", "faults", "--large", "-1"}, &out, &log); err != nil || strings.Count(out.String(), "\n## ") != 1 {
		t.Errorf("a part alone: %v, %s", err, out.String())
	}
	for _, bad := range [][]string{{"--trials", "0"}, {"stray"}, {"--only", "3"}, {"--nonsense"}} {
		if err := run(bad, &out, &log); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
