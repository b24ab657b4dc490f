package testnet

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// The picture is XML, the same for the same run, and shows the faults.
func TestSVG(t *testing.T) {
	const text = `name <tiny>
nodes 3
net delay=1ms
every 2s
at 1s batch 0 k 20 10B
at 2s partition 0|1,2
at 4s crash 1
at 5s flip 2 1
at 6s skew 0 5s
at 8s start 1
at 9s healall
`
	var last []byte
	for range 2 {
		res, err := Run(t.Context(), Config{Scenario: strings.Replace(text, "<tiny>", "tiny", 1)})
		if err != nil {
			t.Fatal(err)
		}
		res.Scenario = "<tiny>" // callers may set it
		picture, err := res.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && !bytes.Equal(last, picture) {
			t.Error("the same run gives another picture")
		}
		last = picture
	}
	for d := xml.NewDecoder(bytes.NewReader(last)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, last)
		}
	}
	for want, times := range map[string]int{
		"&lt;tiny&gt;: 3 nodes": 2, "process": 1, "links": 1, "disk": 1, "clock": 1, "mended": 1, // the title twice
		"<path": 1 + 1 + 1 + 1, // one flip and one jump, and their kinds in the legend
	} {
		if got := bytes.Count(last, []byte(want)); got != times {
			t.Errorf("%q stands %d times, want %d:\n%s", want, got, times, last)
		}
	}
}

// The timeline leaves out one long wait, and nothing else.
func TestTimeline(t *testing.T) {
	r := &Result{plan: nil, Series: []Point{{VirtualMS: 10_000}, {VirtualMS: 20_000}, {VirtualMS: 320_000}, {VirtualMS: 330_000}}}
	line := r.timeline()
	for at, want := range map[int64]float64{0: 0, 20_000: 20, 320_000: 20, 330_000: 30} {
		if got := line.point(at, 0).X; got != want {
			t.Errorf("%d ms are drawn at %v s, want %v", at, got, want)
		}
	}
	if len(line.marks) != 1 || !strings.Contains(line.marks[0].Label, "5m0s") {
		t.Errorf("%+v", line.marks)
	}
}
