package plot

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/internal/golden"
)

// sample has everything that a chart can have.
func sample() *Chart {
	nan := math.NaN()
	return &Chart{
		Title: "Cells a difference",
		X:     Axis{Label: "differences"},
		Y:     Axis{Label: "cells, a difference", From: 1, To: 3},
		Series: []Series{
			{Name: "joined", Points: []Point{
				{1, 1, 1, 1}, {10, 1.7, 2.4, 3.2}, {100, 1.4, 1.6, 1.7}, {1000, 1.15, nan, nan}, {10000, 1.11, 1.12, 1.14},
			}},
			{Name: "regular", Line: true, Dashed: true, Points: []Point{{X: 1, Y: 1}, {X: 10, Y: 1.71}, {X: 100, Y: nan}, {X: 1000, Y: 1.38}, {X: 10000, Y: 1.36}}},
			{Name: "measured", Points: []Point{{40, 1.52, 1.5, 1.54}}},
			{Points: []Point{{X: 500, Y: 2}}},
		},
		Marks: []Mark{{Label: "join", At: 64}},
	}
}

func TestGolden(t *testing.T) {
	got, err := sample().SVG()
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/sample.svg", string(got))
	again, err := sample().SVG()
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("the same chart gives another picture (%v)", err)
	}
}

// count parses the picture strictly and counts its elements; it fails on text
// that no number or no picture should hold.
func count(t testing.TB, picture []byte) map[string]int {
	t.Helper()
	for _, bad := range []string{"NaN", "Inf", "href", "id="} {
		if bytes.Contains(picture, []byte(bad)) {
			t.Errorf("the picture holds %q: %s", bad, picture)
		}
	}
	elements := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return elements
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, picture)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
}

func draw(t testing.TB, c *Chart) (picture []byte, elements map[string]int) {
	t.Helper()
	picture, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	return picture, count(t, picture)
}

func TestTextIsEscaped(t *testing.T) {
	const evil = `</text><script>alert("1 & 2")</script>` + "\x00\xff"
	picture, elements := draw(t, &Chart{
		Title: evil, X: Axis{Label: evil}, Y: Axis{Label: evil},
		Series: []Series{{Name: evil, Points: []Point{{X: 1, Y: 1}}}},
		Marks:  []Mark{{Label: evil, At: 1}},
	})
	if elements["script"] != 0 {
		t.Errorf("text became an element: %s", picture)
	}
	if n := bytes.Count(picture, []byte("&lt;script&gt;")); n != 6 { // the title twice
		t.Errorf("the text stands %d times, want 6", n)
	}
}

func TestWhatIsNoNumberIsLeftOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	points := []Point{
		{X: 1, Y: 1, Low: 0, High: 2},
		{X: 2, Y: nan, Low: 0, High: 2},
		{X: nan, Y: 1, Low: 0, High: 2},
		{X: 3, Y: 1, Low: nan, High: 2},
		{X: 4, Y: 1, Low: 0, High: inf},
		{X: inf, Y: 1},
		{X: 5, Y: 1, Low: 0, High: 2},
		{X: 6, Y: 1, Low: 0, High: 2},
	}
	for line, want := range map[bool]map[string]int{false: {"circle": 5}, true: {"polyline": 3}} {
		_, got := draw(t, &Chart{Series: []Series{{Line: line, Points: points}}, Marks: []Mark{{At: nan}}})
		for _, name := range []string{"circle", "polyline"} {
			if got[name] != want[name] {
				t.Errorf("line %v: %d of %s, want %d", line, got[name], name, want[name])
			}
		}
	}
}

func TestFewData(t *testing.T) {
	for name, c := range map[string]*Chart{
		"nothing":    {},
		"only NaN":   {Series: []Series{{Name: "a", Line: true, Points: []Point{{X: math.NaN(), Y: 1}, {X: 1, Y: math.NaN(), Low: math.NaN()}}}}},
		"empty, low": {Height: 10},
	} {
		if picture, _ := draw(t, c); !bytes.Contains(picture, []byte("no data")) {
			t.Errorf("%s: the picture does not say so: %s", name, picture)
		}
	}
	for _, at := range []float64{0, 3, -3, 1e-300, 1e300, 1 << 53} {
		picture, elements := draw(t, &Chart{Series: []Series{{Points: []Point{{X: at, Y: at}}}}})
		if elements["circle"] != 1 || elements["text"] < 4 || bytes.Contains(picture, []byte("no data")) {
			t.Errorf("one point at %v: %v %s", at, elements, picture)
		}
	}
}

func TestWhatAnAxisCannotShow(t *testing.T) {
	point := []Series{{Points: []Point{{X: 1, Y: 1}}}}
	for name, c := range map[string]*Chart{
		"bounds swapped": {X: Axis{Label: "time", From: 2, To: 1}, Series: point},
		"bound is NaN":   {X: Axis{Label: "time", From: math.NaN(), To: 1}, Series: point},
		"too wide":       {X: Axis{Label: "time"}, Series: []Series{{Points: []Point{{X: -1e308, Y: 1}, {X: 1e308, Y: 1}}}}},
	} {
		c.Title = "T1"
		if _, err := c.SVG(); err == nil || !strings.Contains(err.Error(), `"T1"`) || !strings.Contains(err.Error(), `"time"`) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis   Axis
		values []float64
		want   string
	}{
		{Axis{}, []float64{0, 1}, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{Axis{}, []float64{14_000, 14_700}, "14,000 14,200 14,400 14,600 14,800"},
		{Axis{}, []float64{-7, 12}, "−10 −5 0 5 10 15"},
		{Axis{}, []float64{3}, "2.6 2.8 3.0 3.2 3.4"},
		{Axis{From: 1, To: 4}, []float64{9}, "1 2 3 4"},
		{Axis{From: 0.95, To: 2.05}, nil, "1.0 1.5 2.0"},
		{Axis{}, []float64{0, 5e12}, "0 1e+12 2e+12 3e+12 4e+12 5e+12"},
	} {
		s, err := c.axis.scaleOf(c.values)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, k := range s.ticks {
			got = append(got, k.label)
			if k.at < s.low-1e-6*math.Abs(s.low) || k.at > s.high+1e-6*math.Abs(s.high) {
				t.Errorf("%+v of %v: a tick at %v outside of %v … %v", c.axis, c.values, k.at, s.low, s.high)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v of %v: ticks %q, want %q", c.axis, c.values, strings.Join(got, " "), c.want)
		}
	}
}

func TestLegendTakesAsManyLinesAsItNeeds(t *testing.T) {
	c := &Chart{}
	plain, _ := draw(t, c)
	for range 9 {
		c.Series = append(c.Series, Series{Name: "twenty letters long.", Points: []Point{{X: 1, Y: 1}}})
	}
	picture, _ := draw(t, c)
	// 190 pixels each: three fit beside one another.
	if !bytes.Contains(plain, []byte(`height="400"`)) || !bytes.Contains(picture, []byte(`height="454"`)) {
		t.Errorf("the legend does not take three lines: %s", picture)
	}
}

// An open marker lets one behind it be seen, and the caps of an interval show
// where it ends.
func TestOpenMarkersAndCaps(t *testing.T) {
	at := []Point{{1, 1, 0, 2}, {2, 1, 0.999, 1.001}}
	for i, name := range []string{"circle", "rect", "path", "path"} {
		c := &Chart{Series: make([]Series, 4)}
		c.Series[i] = Series{Points: at}
		_, filled := draw(t, c)
		c.Series[i].Open = true
		picture, open := draw(t, c)
		if open[name] != filled[name] || bytes.Count(picture, []byte(`fill="none" stroke="`+colors[i])) != 2 {
			t.Errorf("marker %d is not drawn open: %s", i, picture)
		}
		c.Series[i].Points = []Point{{X: 1, Y: 1}, {X: 2, Y: 1}, {X: 1, Y: 0}, {X: 1, Y: 2}} // the same axes
		_, bare := draw(t, c)
		if got := open["line"] - bare["line"]; got != 3+1 {
			t.Errorf("a long interval and one behind its marker are %d lines, want 3 and 1", got)
		}
	}
}

func TestLabelOfAMarkStaysInThePicture(t *testing.T) {
	for at, anchor := range map[float64]string{1: "start", 9: "end"} {
		picture, _ := draw(t, &Chart{X: Axis{From: 0, To: 10}, Marks: []Mark{{Label: "healed", At: at}}})
		if !bytes.Contains(picture, []byte(`text-anchor="`+anchor+`" fill="#666">healed<`)) {
			t.Errorf("the mark at %v of 10 is not written to its %s: %s", at, anchor, picture)
		}
	}
}

func FuzzChart(f *testing.F) {
	bits := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	f.Add(bits(1, 2, 1, 3, 5, 4, 3, 5), true, 0.0, 0.0)
	f.Add(bits(1, math.NaN(), 1, 3, 1e-320, 4e-320, 3, 5), true, 1.0, 1e300)
	f.Add(bits(1e16, 1e16+2, 1, 3), false, 1.0, 1+1e-16)
	f.Add(bits(1e300, 1, 1, 1), false, 1e300, math.Nextafter(1e300, 2e300))
	f.Fuzz(func(t *testing.T, data []byte, line bool, from, to float64) {
		s := Series{Name: string(data[:min(len(data), 20)]), Line: line}
		for chunk := range slices.Chunk(data[:min(len(data), 1<<12)/32*32], 32) {
			var v [4]float64
			for i := range v {
				v[i] = math.Float64frombits(binary.LittleEndian.Uint64(chunk[8*i:]))
			}
			s.Points = append(s.Points, Point{v[0], v[1], v[2], v[3]})
		}
		c := &Chart{X: Axis{From: from, To: to}, Series: []Series{s}, Marks: []Mark{{At: from}}}
		picture, err := c.SVG()
		if err != nil {
			return
		}
		var whole struct{}
		if err := xml.Unmarshal(picture, &whole); err != nil {
			t.Fatalf("not XML: %v\n%s", err, picture)
		}
		for _, line := range strings.Split(string(picture), "\n") {
			if !strings.HasPrefix(line, "<text") && (strings.Contains(line, "NaN") || strings.Contains(line, "Inf")) {
				t.Fatalf("no number: %s", line)
			}
		}
		if len(picture) > 20_000+400*len(s.Points)*4 {
			t.Fatalf("%d bytes for %d points", len(picture), len(s.Points))
		}
	})
}
