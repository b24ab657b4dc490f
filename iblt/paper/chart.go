package main

import (
	"fmt"

	"github.com/syncd-io/syncd/internal/plot"
)

// chart is a picture of measured percentages with their intervals. It also
// has the curve that theory predicts, and what the paper's text states.
type chart struct{ plot.Chart }

// The series of a chart. The paper's diamonds are open: our points are behind
// some of them.
const (
	measured = iota
	predicted
	stated
)

func figure(title, x, y, theory string) *chart {
	return &chart{plot.Chart{
		Title: title, X: plot.Axis{Label: x}, Y: plot.Axis{Label: y}, Height: 420,
		Series: []plot.Series{
			measured:  {Name: "measured, 95 % interval"},
			predicted: {Name: theory, Line: true, Dashed: true},
			stated:    {Name: "the paper's text", Open: true},
		},
	}}
}

// add adds a percentage; no interval of one goes beyond 100, and no axis need.
func (c *chart) add(series int, p plot.Point) {
	p.High = min(p.High, 100)
	c.Series[series].Points = append(c.Series[series].Points, p)
}

// thousands writes a number with commas.
func thousands(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
