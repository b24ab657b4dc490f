package plot

import "fmt"

// shows tells what is drawn of a point.
func (s *Series) shows(p Point) (value, interval bool) {
	value = finite(p.X) && finite(p.Y)
	return value, value && !s.Line && finite(p.Low) && finite(p.High) && p.Low < p.High
}

// stroke is how the line of a series is drawn.
func (s *Series) stroke() string {
	if s.Dashed {
		return ` stroke-width="1.8" stroke-dasharray="6 4"`
	}
	return ` stroke-width="1.8"`
}

// data draws all series and marks. The inner picture cuts off what lies
// outside the bounds of an axis, without a clip path, which would need an id.
// An axis that chose its bounds around the data cuts nothing off: a marker may
// stand on the frame.
func (d *drawing) data(c *Chart) {
	x, y, w, h := 0.0, 0.0, d.right+right, d.bottom+bottom
	if c.X.From != c.X.To {
		x, w = d.left, d.right-d.left
	}
	if c.Y.From != c.Y.To {
		y, h = d.top, d.bottom-d.top
	}
	fmt.Fprintf(d, `<svg x="%s" y="%s" width="%[3]s" height="%[4]s" viewBox="%[1]s %[2]s %[3]s %[4]s">`+"\n", px(x), px(y), px(w), px(h))
	for _, m := range c.Marks {
		d.mark(m)
	}
	for i := range c.Series {
		if s := &c.Series[i]; s.Line {
			d.curve(i, s)
		} else {
			d.markers(i, s)
		}
	}
	d.WriteString("</svg>\n")
}

// far is how many pixels beyond the frame a place may lie. What is cut off needs no
// exact place, and numbers must not grow without bound.
const far = 10_000

func (d *drawing) px(v float64) float64 { return clamp(d.x.at(v, d.left, d.right)) }
func (d *drawing) py(v float64) float64 { return clamp(d.y.at(v, d.bottom, d.top)) }

func clamp(at float64) float64 { return min(max(at, -far), far) }

// curve draws a line for each run of points.
func (d *drawing) curve(i int, s *Series) {
	for _, run := range s.runs() {
		fmt.Fprintf(d, `<polyline fill="none" stroke="%s"%s points="`, colors[i%len(colors)], s.stroke())
		for _, p := range run {
			fmt.Fprintf(d, "%s,%s ", px(d.px(p.X)), px(d.py(p.Y)))
		}
		d.WriteString("\"/>\n")
	}
}

// runs are the longest parts of the series in which all points are shown.
func (s *Series) runs() (runs [][]Point) {
	start := 0
	for i, p := range s.Points {
		if value, _ := s.shows(p); !value {
			if i > start {
				runs = append(runs, s.Points[start:i])
			}
			start = i + 1
		}
	}
	if start < len(s.Points) {
		runs = append(runs, s.Points[start:])
	}
	return runs
}

// markers draws each point with its interval.
func (d *drawing) markers(i int, s *Series) {
	for _, p := range s.Points {
		value, interval := s.shows(p)
		if !value {
			continue
		}
		x := d.px(p.X)
		if interval {
			d.bar(x, d.py(p.Low), d.py(p.High), colors[i%len(colors)])
		}
		d.marker(i, s, x, d.py(p.Y))
	}
}

// bar draws an interval; with caps, if a marker does not hide it.
func (d *drawing) bar(x, low, high float64, color string) {
	d.line(x, low, x, high, color, "")
	if low-high > 2*marker { // downwards is more
		d.line(x-marker, low, x+marker, low, color, "")
		d.line(x-marker, high, x+marker, high, color, "")
	}
}

// marker draws the marker of series i: a circle, square, diamond or triangle.
func (d *drawing) marker(i int, s *Series, x, y float64) {
	r, color := marker, colors[i%len(colors)]
	look := fmt.Sprintf(`fill="%s"`, color)
	if s.Open {
		r, look = marker+3, fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.8"`, color)
	}
	switch i % 4 {
	case 0:
		fmt.Fprintf(d, `<circle cx="%s" cy="%s" r="%s" %s/>`+"\n", px(x), px(y), px(r), look)
	case 1:
		fmt.Fprintf(d, `<rect x="%s" y="%s" width="%s" height="%[3]s" %s/>`+"\n", px(x-r), px(y-r), px(2*r), look)
	case 2:
		fmt.Fprintf(d, `<path d="M%s %sL%s %sL%s %sL%s %sZ" %s/>`+"\n",
			px(x), px(y-r-1), px(x+r+1), px(y), px(x), px(y+r+1), px(x-r-1), px(y), look)
	case 3:
		fmt.Fprintf(d, `<path d="M%s %sL%s %sL%s %sZ" %s/>`+"\n", px(x), px(y-r-1), px(x+r+1), px(y+r), px(x-r-1), px(y+r), look)
	}
}

// mark draws a line across the frame with its label.
func (d *drawing) mark(m Mark) {
	if !finite(m.At) {
		return
	}
	at := d.px(m.At)
	d.line(at, d.top, at, d.bottom, marked, ` stroke-dasharray="2 3"`)
	if at < d.left+0.7*(d.right-d.left) {
		d.text(at+5, d.top+14, `text-anchor="start" fill="`+marked+`"`, m.Label)
	} else { // to the right of it there is no room
		d.text(at-5, d.top+14, `text-anchor="end" fill="`+marked+`"`, m.Label)
	}
}
