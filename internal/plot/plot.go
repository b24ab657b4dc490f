// Package plot draws the charts of the project's documents and commands as SVG.
//
// A Chart is series of points over two axes:
//
//	chart := plot.Chart{
//		Title: "Cells until decoded",
//		X:     plot.Axis{Label: "differences"},
//		Y:     plot.Axis{Label: "cells, a difference"},
//		Series: []plot.Series{
//			{Name: "mean", Line: true, Points: points},
//		},
//	}
//	picture, err := chart.SVG()
//
// The picture needs nothing besides itself: no script, style sheet, font or reference
// by id, so that several can stand in one page. It draws on white, in colours that the
// colour-blind tell apart (Okabe and Ito, "Color Universal Design", 2008). Markers of
// different shapes serve print without colours. The same chart gives the same bytes.
// All text is escaped.
//
// # Limits
//
// The widths of legend entries are estimated, because fonts are the viewer's.
// Labels of ticks that come too close are not thinned out. A chart that cannot
// show its data is an error: bounds in the wrong order, a range that is too wide.
package plot

// Chart is a picture. Its zero value draws an empty frame that says "no data".
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series // drawn in this order, later ones on top
	Marks  []Mark
	// Height is that of the picture in pixels, without the legend, of which each line
	// adds to it. Zero counts as 400. The width is 660.
	Height int
}

// Axis is one of a chart's two axes.
type Axis struct {
	Label string // with the unit, after a comma
	// From and To are the bounds. What lies outside is cut off. If they are
	// equal, the bounds are round numbers around the data.
	From, To float64
}

// Series is one set of points, in the order that a line connects them.
type Series struct {
	Name   string // in the legend; a series without name is not listed
	Line   bool   // a line through the points, not a marker at each, with a bar from Low to High
	Dashed bool   // of the line
	// Open markers are outlines, larger than others: a marker behind one is seen.
	Open   bool
	Points []Point
}

// Point is a value with its interval.
//
// A point with a coordinate that is not a finite number is left out, and interrupts
// the line. An interval is drawn if it is finite and Low < High, so that
// Point{X: x, Y: y} is a point without interval.
type Point struct {
	X, Y      float64
	Low, High float64
}

// Mark is a vertical line across the frame at x = At, with a label: a threshold,
// or an event.
type Mark struct {
	Label string
	At    float64
}
