// Package plot draws the charts of the project's documents and commands as SVG.
//
// A Chart is series of points over two axes:
//
//	chart := plot.Chart{
//		Title: "Cells until decoded",
//		X:     plot.Axis{Label: "differences", Log: true},
//		Y:     plot.Axis{Label: "cells", Unit: "a difference"},
//		Series: []plot.Series{
//			{Name: "mean", Draw: plot.Line | plot.Markers, Points: points},
//		},
//	}
//	picture, err := chart.SVG()
//
// The picture needs nothing besides itself: no script, style sheet, font or
// reference by id, so that several can stand in one page. It draws on white, in
// colours that the colour-blind tell apart (Okabe and Ito, "Color Universal
// Design", 2008), with markers of different shapes for print without colours.
// The same chart gives the same bytes. All text is escaped.
//
// # Limits
//
// The widths of legend entries are estimated, because fonts are the viewer's.
// Labels of ticks that come too close are not thinned out. What a chart cannot
// show is an error, not a picture that lies: a value that is not positive on a
// logarithmic axis, bounds in the wrong order.
package plot

// Chart is a picture. Its zero value draws an empty frame that says "no data".
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series // drawn in this order, later ones on top
	Marks  []Mark
	// Width and Height are those of the picture in pixels; less than 240 and
	// 160 count as these. Zero stands for 660 and 400. Each line of the legend
	// adds to the height.
	Width, Height int
}

// Axis is one of a chart's two axes.
type Axis struct {
	Label string
	Unit  string // follows the label after a comma; may be empty
	// Log makes the axis logarithmic; all of its values must be positive then.
	Log bool
	// From and To are the bounds. What lies outside is cut off. If they are
	// equal, the bounds are round numbers around the data.
	From, To float64
}

// Series is one set of points, in the order that a line connects them.
type Series struct {
	Name   string // in the legend; a series without name is not listed
	Draw   Style
	Dashed bool // of the line
	// Open markers are outlines, larger than others: a marker behind one is seen.
	Open   bool
	Points []Point
}

// Style says what is drawn of each point. Styles add up: Line|Band is a curve
// with its band.
type Style uint8

// The styles. Zero stands for Markers.
const (
	Markers Style = 1 << iota // a marker at (X, Y), with a bar from Low to High
	Line                      // a line through (X, Y)
	Band                      // the area between Low and High; no bars then
)

// Point is a value with its interval.
//
// A point with a coordinate that is not a finite number is left out, and what
// it would connect is interrupted there; with an interval that is not finite it
// has none. An interval is drawn if Low < High, so that Point{X: x, Y: y} has none.
type Point struct {
	X, Y      float64
	Low, High float64
}

// Mark is a straight line across the frame, with a label: a threshold, or an
// event. It is vertical at x = At, or horizontal at y = At.
type Mark struct {
	Label      string
	At         float64
	Horizontal bool
}
