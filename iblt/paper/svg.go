package main

import (
	"fmt"
	"math"
	"strings"
)

// plot is a picture of measured points, with their intervals, and of a curve
// that theory predicts.
type plot struct {
	title, xLabel, yLabel string
	points                []point
	curve                 []point
	mark                  float64 // a vertical line, where not zero: the threshold
	markLabel             string
}

// point is a value with its interval, low to high.
type point struct{ x, y, low, high float64 }

const (
	width, height            = 660, 400
	left, right, top, bottom = 70, 40, 40, 50
)

// svg draws the plot, in a picture that needs no font or style of its own.
func (p *plot) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(&b, width/2, 22, "middle", p.title)
	text(&b, (left+width-right)/2, height-10, "middle", p.xLabel)
	fmt.Fprintf(&b, `<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-bottom)/2, p.yLabel)

	xs, ys := p.axes()
	for _, x := range xs.ticks {
		at := xs.at(x, left, width-right)
		line(&b, at, top, at, height-bottom, "#ddd")
		text(&b, at, height-bottom+18, "middle", thousands(x))
	}
	for _, y := range ys.ticks {
		at := ys.at(y, height-bottom, top)
		line(&b, left, at, width-right, at, "#ddd")
		text(&b, left-8, at+4, "end", fmt.Sprintf("%g", y))
	}
	if p.mark != 0 {
		at := xs.at(p.mark, left, width-right)
		line(&b, at, top, at, height-bottom, "#888")
		text(&b, at+5, top+12, "start", p.markLabel)
	}
	b.WriteString(`<polyline fill="none" stroke="#c55" stroke-dasharray="5 3" points="`)
	for _, q := range p.curve {
		fmt.Fprintf(&b, "%.1f,%.1f ", xs.at(q.x, left, width-right), ys.at(q.y, height-bottom, top))
	}
	b.WriteString("\"/>\n")
	for _, q := range p.points {
		x := xs.at(q.x, left, width-right)
		low, high := max(q.low, ys.low), min(q.high, ys.high)
		line(&b, x, ys.at(low, height-bottom, top), x, ys.at(high, height-bottom, top), "#247")
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="#247"/>`+"\n", x, ys.at(q.y, height-bottom, top))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}

// axis is a range of numbers and the round ones within it.
type axis struct {
	low, high float64
	ticks     []float64
}

// at is where x stands between the pixels from and to.
func (a *axis) at(x, from, to float64) float64 {
	return from + (x-a.low)/(a.high-a.low)*(to-from)
}

// axes covers all points, with steps of 1, 2 or 5 times a power of ten.
func (p *plot) axes() (x, y axis) {
	x = axis{low: math.Inf(1), high: math.Inf(-1)}
	y = x
	for _, q := range append(append([]point(nil), p.points...), p.curve...) {
		x.low, x.high = min(x.low, q.x), max(x.high, q.x)
		y.low, y.high = min(y.low, q.y), max(y.high, q.y)
	}
	for _, a := range []*axis{&x, &y} {
		step := stepOf((a.high - a.low) / 5)
		a.low = math.Floor(a.low/step+1e-9) * step
		a.high = math.Ceil(a.high/step-1e-9) * step
		for i := 0; a.low+float64(i)*step <= a.high+step/2; i++ {
			a.ticks = append(a.ticks, math.Round((a.low+float64(i)*step)/step)*step)
		}
	}
	return x, y
}

// stepOf is the round number next to rough.
func stepOf(rough float64) float64 {
	if !(rough > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, f := range []float64{1, 2, 5} {
		if rough <= f*power {
			return f * power
		}
	}
	return 10 * power
}

// thousands writes a number with commas.
func thousands(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
