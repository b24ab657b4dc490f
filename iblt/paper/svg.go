package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plot is a picture of measured percentages with their intervals, of a curve
// that theory predicts, and of what the paper states.
type plot struct {
	title, xLabel, yLabel string
	points                []point
	curve, paper          []point
	measured, theory      string  // what the legend calls points and curve
	mark                  float64 // a vertical line, where not zero: the threshold
	markLabel             string
}

// point is a percentage at x with its interval, low to high.
type point struct{ x, y, low, high float64 }

const (
	width, height            = 660, 420
	left, right, top, bottom = 75, 25, 70, 55
)

// Colors that differ in brightness too.
const ink, grid, dots, theoryLine, paperMark = "#333", "#ddd", "#1f3f77", "#c0504d", "#e08a00"

// svg draws the plot, in a picture that needs no font or style of its own.
func (p *plot) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="%s">`+"\n", width, height, ink)
	fmt.Fprintf(&b, "<title>%s</title>\n", p.title)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="24" text-anchor="middle" font-size="15">%s</text>`+"\n", width/2, p.title)
	p.legend(&b)

	x, y := p.axis(), axis{low: -3, high: 103, step: 20}
	atX := func(v float64) float64 { return x.at(v, left, width-right) }
	atY := func(v float64) float64 { return y.at(v, height-bottom, top) }
	for _, v := range x.ticks() {
		line(&b, atX(v), top, atX(v), height-bottom, grid)
		text(&b, atX(v), height-bottom+18, "middle", thousands(v))
	}
	for _, v := range y.ticks() {
		line(&b, left, atY(v), width-right, atY(v), grid)
		text(&b, left-8, atY(v)+4, "end", fmt.Sprintf("%g", v))
	}
	text(&b, (left+width-right)/2, height-12, "middle", p.xLabel)
	fmt.Fprintf(&b, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (top+height-bottom)/2, p.yLabel)
	fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="%s"/>`+"\n", left, top, width-left-right, height-top-bottom, ink)

	if p.mark != 0 {
		line(&b, atX(p.mark), top, atX(p.mark), height-bottom, "#888")
		text(&b, atX(p.mark)+6, height-bottom-10, "start", p.markLabel)
	}
	fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="6 3" points="`, theoryLine)
	for _, q := range p.curve {
		fmt.Fprintf(&b, "%.1f,%.1f ", atX(q.x), atY(q.y))
	}
	b.WriteString("\"/>\n")
	for _, q := range p.points {
		low, high := atY(max(q.low, y.low)), atY(min(q.high, y.high))
		line(&b, atX(q.x), low, atX(q.x), high, dots)
		line(&b, atX(q.x)-4, low, atX(q.x)+4, low, dots)
		line(&b, atX(q.x)-4, high, atX(q.x)+4, high, dots)
		dot(&b, atX(q.x), atY(q.y))
	}
	for _, q := range p.paper {
		diamond(&b, atX(q.x), atY(q.y))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend is a line above the frame, where no point can be.
func (p *plot) legend(b *strings.Builder) {
	const y = top - 20
	dot(b, left+6, y)
	text(b, left+16, y+4, "start", p.measured)
	const second = left + 230
	fmt.Fprintf(b, `<path d="M%d %dh30" stroke="%s" stroke-width="1.5" stroke-dasharray="6 3"/>`+"\n", second, y, theoryLine)
	text(b, second+38, y+4, "start", p.theory)
	if len(p.paper) > 0 {
		const third = left + 440
		diamond(b, third, y)
		text(b, third+12, y+4, "start", "the paper's text")
	}
}

func dot(b *strings.Builder, x, y float64) {
	fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, dots)
}

// diamond is open, so that a dot is seen behind it.
func diamond(b *strings.Builder, x, y float64) {
	fmt.Fprintf(b, `<path d="M%.1f %.1fl7 7 -7 7 -7 -7z" fill="none" stroke="%s" stroke-width="2"/>`+"\n", x, y-7, paperMark)
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, s)
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, color string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}

// axis is a range of numbers, marked at the multiples of step.
type axis struct{ low, high, step float64 }

// at is where x stands between the pixels from and to.
func (a *axis) at(x, from, to float64) float64 {
	return from + (x-a.low)/(a.high-a.low)*(to-from)
}

// ticks are the multiples of step in the range.
func (a *axis) ticks() (all []float64) {
	for i := math.Ceil(a.low / a.step); i*a.step <= a.high; i++ {
		all = append(all, i*a.step+0) // no −0
	}
	return all
}

// axis is the horizontal one: all points and the curve, with some room at the
// ends, and steps of 1, 2 or 5 times a power of ten.
func (p *plot) axis() axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, q := range slices.Concat(p.points, p.curve) {
		low, high = min(low, q.x), max(high, q.x)
	}
	room := max((high-low)/30, 1)
	return axis{low: low - room, high: high + room, step: stepOf((high - low) / 5)}
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
