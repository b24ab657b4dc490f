package main

import (
	"fmt"
	"io"

	"github.com/syncd-io/syncd/internal/plot"
)

func printLoads(out io.Writer, o options, rows []reached) {
	fmt.Fprintf(out, "Load at the first insertion without room: mean of %d trials of about %d slots, 95 %% interval, lowest.\n\n", o.trials, o.slots)
	fmt.Fprintf(out, "| H | B | slides | theory | measured, %d buckets searched | lowest | measured, all searched | lowest |\n", bounded)
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintf(out, "| %d | %d | %v | %.5f | %.5f ± %.5f | %.5f | %.5f ± %.5f | %.5f |\n", r.hashes, r.slots, r.slides, r.theory,
			r.bounded.mean, r.bounded.half, r.bounded.least, r.exhaustive.mean, r.exhaustive.half, r.exhaustive.least)
	}
}

func printCosts(out io.Writer, o options, all []costs) {
	fmt.Fprintf(out, "\nBuckets searched and entries moved an insertion, at load theory − ε: means of %d trials, 95 %% interval.\n\n", o.trials)
	fmt.Fprintln(out, "| H | B | 1/ε | searched | searched · ε | moved |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	for _, c := range all {
		for _, r := range c.rows {
			fmt.Fprintf(out, "| %d | %d | %.0f | %.2f ± %.2f | %.2f | %.3f ± %.3f |\n", c.hashes, c.slots, r.inverse,
				r.searched.mean, r.searched.half, r.searched.mean/r.inverse, r.moved.mean, r.moved.half)
		}
	}
}

// chart draws both costs over 1/ε.
func chart(all []costs) ([]byte, error) {
	c := plot.Chart{
		Title: "What an insertion costs close to the largest load",
		X:     plot.Axis{Label: "1/ε, where ε = largest load − load", Log: true},
		Y:     plot.Axis{Label: "an insertion, mean", Log: true},
	}
	for _, s := range all {
		searched := plot.Series{Name: fmt.Sprintf("buckets searched, %v", s.shape), Draw: plot.Line | plot.Markers}
		for _, r := range s.rows {
			searched.Points = append(searched.Points, plot.Point{X: r.inverse, Y: r.searched.mean})
		}
		c.Series = append(c.Series, searched)
	}
	for _, s := range all {
		moved := plot.Series{Name: fmt.Sprintf("entries moved, %v", s.shape), Draw: plot.Line, Dashed: true}
		for _, r := range s.rows {
			if r.moved.mean > 0 {
				moved.Points = append(moved.Points, plot.Point{X: r.inverse, Y: r.moved.mean})
			}
		}
		c.Series = append(c.Series, moved)
	}
	return c.SVG()
}
