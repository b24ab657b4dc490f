package main

import (
	"math"

	"github.com/syncd-io/syncd/internal/plot"
)

// charts draws the simulated laws, and what the decoder measured beside, by
// file name.
func (r *report) charts() (map[string][]byte, error) {
	mean := plot.Chart{
		Title: "Cells until decoded: mean, and the band from the 95th to the 99th percentile",
		X:     plot.Axis{Label: "differences", Log: true},
		Y:     plot.Axis{Label: "cells a difference", From: 1, To: 4},
	}
	tail := plot.Chart{
		Title: "Cells until decoded: 99th percentile",
		X:     plot.Axis{Label: "differences", Log: true},
		Y:     plot.Axis{Label: "cells a difference", Log: true, From: 1, To: 10},
	}
	for _, l := range laws {
		m := plot.Series{Name: l.name, Draw: plot.Line | plot.Markers | plot.Band}
		p := plot.Series{Name: l.name, Draw: plot.Line | plot.Markers}
		for _, row := range r.Laws {
			if row.Law == l.name {
				x := float64(row.Differences)
				m.Points = append(m.Points, plot.Point{X: x, Y: row.Mean, Low: orNaN(row.P95), High: orNaN(row.P99)})
				p.Points = append(p.Points, plot.Point{X: x, Y: orNaN(row.P99)})
			}
		}
		mean.Series, tail.Series = append(mean.Series, m), append(tail.Series, p)
	}
	means := plot.Series{Name: "blocks, decoder of iblt", Draw: plot.Markers}
	tails := means
	for _, row := range r.Decoder {
		if row.Records == mixed {
			x := float64(row.Differences)
			if row.Mean <= mean.Y.To { // of one to three differences, 12 cells are the least that a decoder looks at
				means.Points = append(means.Points, plot.Point{X: x, Y: row.Mean, Low: row.Mean - row.Half, High: row.Mean + row.Half})
			}
			if row.P99 <= tail.Y.To {
				tails.Points = append(tails.Points, plot.Point{X: x, Y: orNaN(row.P99)})
			}
		}
	}
	mean.Series, tail.Series = append(mean.Series, means), append(tail.Series, tails)
	pictures := map[string][]byte{}
	for name, c := range map[string]*plot.Chart{"iblt-cells-mean.svg": &mean, "iblt-cells-99th.svg": &tail} {
		picture, err := c.SVG()
		if err != nil {
			return nil, err
		}
		pictures[name] = picture
	}
	return pictures, nil
}

// orNaN is a percentile, or no number if there were too few trials.
func orNaN(p float64) float64 {
	if p == 0 {
		return math.NaN()
	}
	return p
}
