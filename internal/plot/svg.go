package plot

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"unicode/utf8"
)

// Sizes in pixels. The margins leave room for the labels of ticks.
const (
	width, height       = 660, 400
	left, right         = 70, 40
	top, bottom         = 36, 52
	legendLine          = 18
	swatch              = 26 // the sample of a series in the legend
	letter              = 7  // of the legend, as wide as in common fonts at 12 pixels
	marker              = 3.5
	grid, frame, marked = "#ddd", "#888", "#666"
)

// colors are those of Okabe and Ito (2008) that show on white.
var colors = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// drawing is a picture in the making: the frame's edges, and the axes.
type drawing struct {
	bytes.Buffer
	x, y                     scale
	left, right, top, bottom float64
}

// SVG draws the chart. It fails if an axis cannot show the data.
func (c *Chart) SVG() ([]byte, error) {
	xs, ys := c.values()
	x, err := c.X.scaleOf(xs)
	if err != nil {
		return nil, fmt.Errorf("draw %q: %w", c.Title, err)
	}
	y, err := c.Y.scaleOf(ys)
	if err != nil {
		return nil, fmt.Errorf("draw %q: %w", c.Title, err)
	}
	h := c.height()
	legend, lines := c.legend()
	d := &drawing{
		x: x, y: y,
		left: left, right: width - right, top: float64(top + lines*legendLine), bottom: float64(h - bottom),
	}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, h, width, h)
	fmt.Fprintf(d, "<title>%s</title>\n", escape(c.Title))
	fmt.Fprintf(d, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, h)
	middle := (d.left + d.right) / 2
	d.text(middle, 22, `text-anchor="middle" font-size="14"`, c.Title)
	d.text(middle, float64(h-12), `text-anchor="middle"`, c.X.Label)
	d.text(0, 0, fmt.Sprintf(`text-anchor="middle" transform="translate(18 %s) rotate(-90)"`, px((d.top+d.bottom)/2)), c.Y.Label)
	d.Write(legend)
	d.axes()
	if len(xs) == 0 {
		d.text(middle, (d.top+d.bottom)/2, `text-anchor="middle" fill="`+marked+`"`, "no data")
	}
	d.data(c)
	d.WriteString("</svg>\n")
	return d.Bytes(), nil
}

// height is that of the whole picture.
func (c *Chart) height() int {
	_, lines := c.legend()
	return cmp.Or(c.Height, height) + lines*legendLine
}

// values are all numbers that the axes must show.
func (c *Chart) values() (xs, ys []float64) {
	for _, s := range c.Series {
		for _, p := range s.Points {
			value, interval := s.shows(p)
			if value {
				xs, ys = append(xs, p.X), append(ys, p.Y)
			}
			if interval {
				ys = append(ys, p.Low, p.High)
			}
		}
	}
	for _, m := range c.Marks {
		if finite(m.At) {
			xs = append(xs, m.At)
		}
	}
	return xs, ys
}

// legend draws the names of the series, and tells how many lines they take.
func (c *Chart) legend() ([]byte, int) {
	var d drawing
	x, y, lines := float64(left), float64(top+8), 0
	for i, s := range c.Series {
		if s.Name == "" {
			continue
		}
		long := float64(swatch + 8 + letter*utf8.RuneCountInString(s.Name) + 16)
		if lines == 0 {
			lines = 1
		} else if x+long > width-right/2 {
			x, y, lines = left, y+legendLine, lines+1
		}
		if s.Line {
			d.line(x, y, x+swatch, y, colors[i%len(colors)], s.stroke())
		} else {
			d.marker(i, &c.Series[i], x+swatch/2, y)
		}
		d.text(x+swatch+8, y+4, `text-anchor="start"`, s.Name)
		x += long
	}
	return d.Bytes(), lines
}

// axes draws the grid, its labels and the frame.
func (d *drawing) axes() {
	for _, t := range d.x.ticks {
		at := d.x.at(t.at, d.left, d.right)
		d.line(at, d.top, at, d.bottom, grid, "")
		d.text(at, d.bottom+18, `text-anchor="middle"`, t.label)
	}
	for _, t := range d.y.ticks {
		at := d.y.at(t.at, d.bottom, d.top)
		d.line(d.left, at, d.right, at, grid, "")
		d.text(d.left-8, at+4, `text-anchor="end"`, t.label)
	}
	fmt.Fprintf(d, `<rect x="%s" y="%s" width="%s" height="%s" fill="none" stroke="%s"/>`+"\n",
		px(d.left), px(d.top), px(d.right-d.left), px(d.bottom-d.top), frame)
}

func (d *drawing) line(x1, y1, x2, y2 float64, color, more string) {
	fmt.Fprintf(d, `<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"%s/>`+"\n", px(x1), px(y1), px(x2), px(y2), color, more)
}

// text writes s, if there is any; more are the attributes.
func (d *drawing) text(x, y float64, more, s string) {
	if s != "" {
		fmt.Fprintf(d, `<text x="%s" y="%s" %s>%s</text>`+"\n", px(x), px(y), more, escape(s))
	}
}

// escape makes s safe in an element; what is no character becomes U+FFFD.
func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer takes everything
	return b.String()
}

// px writes a length to a tenth of a pixel, which no rounding on one processor or
// another changes.
func px(v float64) string {
	v = math.Round(v*10) / 10
	if v == 0 {
		v = 0 // not −0
	}
	return fmt.Sprintf("%g", v)
}
