package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/iblt"
	"github.com/syncd-io/syncd/internal/plot"
)

// report runs the experiments and prints them.
type report struct {
	out    io.Writer
	trials int // of experiments with 10,000 keys
	large  int // of those with 100,000
	seed   uint64
	only   string            // the one part to run, or all
	plots  map[string]*chart // by file name
	wrong  int
	worst  float64 // the least probability of all comparisons with the paper
}

func (r *report) printf(format string, args ...any) { fmt.Fprintf(r.out, format, args...) }

// run simulates one experiment.
func (r *report) run(e experiment) (outcome, error) {
	trials := r.trials
	if e.s.keys == large {
		trials = r.large
	}
	o, err := simulate(e.s, trials, r.seed)
	r.wrong += o.wrong
	return o, err
}

// parts are the names of what can be run alone.
var parts = []string{"table1", "1a", "1b", "faults", "2a", "2b", "lost"}

// chosen are the experiments of a part that are to be run. There are none if another
// part is asked for. Those of 100,000 keys are left out on request.
func (r *report) chosen(part string, all []experiment) []experiment {
	return slices.DeleteFunc(all, func(e experiment) bool {
		return r.only != "" && r.only != part || r.large < 0 && e.s.keys == large
	})
}

// all prints every table and figure, in the order of the paper.
func (r *report) all() error {
	r.worst = 1
	if r.only == "" || r.only == "table1" {
		r.thresholds()
	}
	for _, part := range []func() error{r.figure1, r.faulty, r.figure2, r.lost} {
		if err := part(); err != nil {
			return err
		}
	}
	r.printf("\nAnswers that were not what had been put in, over all trials: %d. ", r.wrong)
	r.printf("Least probability in the column \"same?\": %.2g.\n", r.worst)
	return nil
}

func (r *report) thresholds() {
	r.printf("## Table 1: thresholds c_k\n\n| k | 3 | 4 | 5 | 6 | 7 |\n|---|---|---|---|---|---|\n| paper | 1.222 | 1.295 | 1.425 | 1.570 | 1.721 |\n| here |")
	for k := 3; k <= 7; k++ {
		r.printf(" %.5f |", iblt.TableConfig{Hashes: k}.Threshold())
	}
	r.printf("\n")
}

// figure1 is the part of the keys that is listed around the threshold.
func (r *report) figure1() error {
	for _, f := range []struct {
		part, name, file string
		points           []experiment
	}{
		{"1a", "Figure 1(a): 10,000 keys", "paper-figure-1a.svg", thresholdSmall()},
		{"1b", "Figure 1(b): 100,000 keys", "paper-figure-1b.svg", thresholdLarge()},
	} {
		if f.points = r.chosen(f.part, f.points); len(f.points) == 0 {
			continue
		}
		keys := f.points[0].s.keys
		p := figure(f.name+" with 5 cells each, around the threshold", "cells of the table", "keys listed, % (mean over trials)", "theory, many keys")
		threshold := iblt.TableConfig{Hashes: hashes}.Threshold() * float64(keys)
		p.Marks = []plot.Mark{{Label: "c₅·n = " + thousands(threshold), At: threshold}}
		p.Y.From, p.Y.To = 20, 105 // all points, and the threshold's label above them
		r.printf("\n## %s\n\n| cells | trials | listed, %% | many keys, %% | incomplete trials | 95 %% interval, %% | paper | same? |\n|---|---|---|---|---|---|---|---|\n", f.name)
		for _, e := range f.points {
			o, err := r.run(e)
			if err != nil {
				return err
			}
			m := o.listed()
			ours := count{o.incomplete(), o.trials}
			r.printf("| %s | %d | %.3f ± %.3f | %.3f | %d | %s | %s |\n", thousands(float64(e.s.cells)), o.trials,
				m.value, m.half, 100*recoveredRate(keys, e.s.cells), ours.hits, percent(ours), r.compare(ours, e.paper.incomplete))
			p.add(measured, plot.Point{X: float64(e.s.cells), Y: m.value, Low: m.value - m.half, High: m.value + m.half})
			if e.paper.incomplete.trials > 0 {
				// At least: what a trial that fails has listed is not counted.
				p.add(stated, plot.Point{X: float64(e.s.cells), Y: 100 - 100*e.paper.incomplete.rate()})
			}
		}
		first, last := f.points[0].s.cells, f.points[len(f.points)-1].s.cells
		for i := range 401 { // finely: the curve has a step
			cells := first + (last-first)*i/400
			p.add(predicted, plot.Point{X: float64(cells), Y: 100 * recoveredRate(keys, cells)})
		}
		r.plots[f.file] = p
	}
	return nil
}

func (r *report) faulty() error {
	all := r.chosen("faults", faulty())
	if len(all) == 0 {
		return nil
	}
	r.printf("\n## Duplicates and extraneous deletions, 1/5 of the keys each; 8 cells a key\n\n")
	r.printf("| | trials | incomplete | 95 %% interval, %% | paper | same? | GET finds, %% | theory | paper |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range all {
		o, err := r.run(e)
		if err != nil {
			return err
		}
		ours := count{o.incomplete(), o.trials}
		r.printf("| %s | %d | %d | %s | %s | %s |\n", e.name, o.trials, ours.hits, percent(ours), r.compare(ours, e.paper.incomplete), gets(&e, &o))
	}
	return nil
}

// figure2 is how many trials miss a valid key among keys with two values.
// Table 2 counts the keys missed in three of its points.
func (r *report) figure2() error {
	var table strings.Builder
	for _, f := range []struct {
		part, name, file string
		points           []experiment
	}{
		{"2a", "Figure 2(a): 10,000 keys, some with two values; 80,000 cells", "paper-figure-2a.svg", multipleSmall()},
		{"2b", "Figure 2(b): 100,000 keys, some with two values; 800,000 cells", "paper-figure-2b.svg", multipleLarge()},
	} {
		if f.points = r.chosen(f.part, f.points); len(f.points) == 0 {
			continue
		}
		p := figure(f.name, "keys with two values", "trials that miss a valid key, %", "the paper's estimate")
		r.printf("\n## %s\n\n", f.name)
		r.printf("| with two values | trials | incomplete, %% | 95 %% interval, %% | theory | paper | same? | GET finds, %% | theory | paper |\n|---|---|---|---|---|---|---|---|---|---|\n")
		for _, e := range f.points {
			o, err := r.run(e)
			if err != nil {
				return err
			}
			ours := count{o.incomplete(), o.trials}
			theory := 100 * poisonedRate(e.s.keys, e.s.cells, e.s.multi)
			r.printf("| %s | %d | %.3f | %s | %.3f | %s | %s |\n", thousands(float64(e.s.multi)), o.trials,
				100*ours.rate(), percent(ours), theory, r.compare(ours, e.paper.incomplete), gets(&e, &o))
			low, high := ours.interval()
			p.add(measured, plot.Point{X: float64(e.s.multi), Y: 100 * ours.rate(), Low: 100 * low, High: 100 * high})
			if e.paper.incomplete.trials > 0 {
				p.add(stated, plot.Point{X: float64(e.s.multi), Y: 100 * e.paper.incomplete.rate()})
			}
			if e.paper.left[0] != 0 {
				r.table2(&table, &e, &o)
			}
		}
		last := f.points[len(f.points)-1].s
		for i := range 101 {
			multi := last.multi * i / 100
			p.add(predicted, plot.Point{X: float64(multi), Y: 100 * poisonedRate(last.keys, last.cells, multi)})
		}
		r.plots[f.file] = p
	}
	if table.Len() == 0 {
		return nil
	}
	r.printf("\n## Table 2: valid keys that are not listed, %% of trials\n\n| experiment | | trials | 0 | 1 | 2 | 3 | more |\n|---|---|---|---|---|---|---|---|\n%s", table.String())
	return nil
}

func (r *report) table2(b *strings.Builder, e *experiment, o *outcome) {
	name := fmt.Sprintf("%s keys, %s with two values", thousands(float64(e.s.keys)), thousands(float64(e.s.multi)))
	fmt.Fprintf(b, "| %s | paper | 20000 |", name)
	for _, x := range e.paper.left {
		fmt.Fprintf(b, " %.3f |", x)
	}
	fmt.Fprintf(b, " 0 |\n| | here | %d |", o.trials)
	for _, n := range o.left {
		fmt.Fprintf(b, " %.3f |", 100*float64(n)/float64(o.trials))
	}
	fmt.Fprintf(b, "\n| | 95 %% interval | |")
	for _, n := range o.left {
		fmt.Fprintf(b, " %s |", percent(count{n, o.trials}))
	}
	fmt.Fprintf(b, "\n| | same? | |")
	for i, n := range o.left[:4] {
		fmt.Fprintf(b, " %.2g |", r.against(count{n, o.trials}, count{int(e.paper.left[i]*200 + 0.5), 20_000}))
	}
	fmt.Fprintf(b, " |\n")
}

func (r *report) lost() error {
	all := r.chosen("lost", lostSubtable())
	if len(all) == 0 {
		return nil
	}
	r.printf("\n## One of five subtables lost, 10,000 keys\n\n")
	r.printf("The paper gives no figures: four subtables must have c_4 = 1.295 cells a key, and GET finds less.\n\n")
	r.printf("| cells | left a key | trials | incomplete | 95 %% interval, %% | listed, %% | GET finds, %% | theory | paper |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range all {
		o, err := r.run(e)
		if err != nil {
			return err
		}
		m := o.listed()
		ours := count{o.incomplete(), o.trials}
		r.printf("| %s | %.3f | %d | %d | %s | %.3f ± %.3f | %s |\n", thousands(float64(e.s.cells)), float64(e.s.cells)*4/5/float64(e.s.keys),
			o.trials, ours.hits, percent(ours), m.value, m.half, gets(&e, &o))
	}
	return nil
}

// listed is the percentage of valid keys that were listed, averaged over trials.
func (o *outcome) listed() mean {
	each := float64(o.valid) / float64(o.trials)
	missed := meanOf(float64(o.valid-o.recovered), float64(o.missSquare), o.trials)
	return mean{100 - 100*missed.value/each, 100 * missed.half / each}
}

// looked is the percentage of valid keys that GET found, averaged over trials.
func (o *outcome) looked() mean {
	each := float64(o.valid) / float64(o.trials)
	m := meanOf(float64(o.found), float64(o.foundSq), o.trials)
	return mean{100 * m.value / each, 100 * m.half / each}
}

// gets are the three columns of a look-up rate: here, theory, paper.
func gets(e *experiment, o *outcome) string {
	if !e.s.gets {
		return "– | – | –"
	}
	m := o.looked()
	paper := "–"
	if e.paper.found != 0 {
		paper = fmt.Sprintf("%.2f", e.paper.found)
	}
	return fmt.Sprintf("%.4f ± %.4f | %.4f | %s", m.value, m.half, 100*foundRate(e.s.keys, e.s.cells, hashes-e.s.lost), paper)
}

// compare are the two columns of the paper's count and whether ours may be the
// same.
func (r *report) compare(ours, paper count) string {
	if paper.trials == 0 {
		return "– | –"
	}
	return fmt.Sprintf("%d of %s | %.2g", paper.hits, thousands(float64(paper.trials)), r.against(ours, paper))
}

func (r *report) against(ours, paper count) float64 {
	p := same(ours, paper)
	r.worst = min(r.worst, p)
	return p
}

func percent(c count) string {
	low, high := c.interval()
	return fmt.Sprintf("%.3f … %.3f", 100*low, 100*high)
}
