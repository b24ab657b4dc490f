package main

import (
	"fmt"
	"io"
	"math"

	"github.com/syncd-io/syncd/internal/plot"
)

// report is what a run measured.
type report struct {
	Points []measured
	Space  []space `json:",omitempty"`
}

type measured struct {
	Point point
	Rows  []row
}

// fault is an error if a structure lost a key or was not as it was planned.
func (r *report) fault() error {
	for _, m := range r.Points {
		for _, row := range m.Rows {
			if row.Wrong > 0 {
				return fmt.Errorf("%s at %v: %d of %d held keys are answered wrongly", row.Structure, m.Point, row.Wrong, row.Held)
			}
			if low, high := row.interval(); !row.asPlanned() {
				return fmt.Errorf("%s at %v: a rate of false positives of %.3g, planned were %.3g to %.3g", row.Structure, m.Point, row.rate(), low, high)
			}
		}
	}
	return nil
}

func (m *measured) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d keys, %d values, α = 2^-%d\n\n", m.Point.Keys, m.Point.Values, m.Point.Bits)
	fmt.Fprintln(out, "| | bits a key | build ns | hit | miss | hit, batch | miss, batch | false positives | planned | wrong of held | several |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|---|")
	var base row
	for _, r := range m.Rows {
		if r.Structure == goMap {
			base = r
		}
	}
	for _, r := range m.Rows {
		if r.Cannot != "" {
			fmt.Fprintf(out, "| %s | – %s | – | – | – | – | – | – | – | – | – |\n", r.Structure, r.Cannot)
			continue
		}
		fmt.Fprintf(out, "| %s | %.2f | %s | %s | %s | %s | %s | %s | %s | %d of %d | %d |\n", r.Structure, r.BitsAKey,
			beside(r.Build, base.Build), beside(r.Hit, base.Hit), beside(r.Miss, base.Miss),
			beside(r.HitBatch, base.Hit), beside(r.MissBatch, base.Miss),
			r.told(), power(r.Planned), r.Wrong, r.Held, r.Several)
	}
}

// beside is a time, and its median ratio to the Go map's in the same turn.
func beside(times, base []float64) string {
	ratios := make([]float64, min(len(times), len(base)))
	for i := range ratios {
		ratios[i] = times[i] / base[i]
	}
	return fmt.Sprintf("%.0f (%.2f)", median(times), median(ratios))
}

// told is the measured rate, and whether it is in the interval.
func (r *row) told() string {
	if r.asPlanned() {
		return power(r.rate())
	}
	return power(r.rate()) + " **not as planned**"
}

func power(rate float64) string {
	if rate == 0 {
		return "0"
	}
	return fmt.Sprintf("2^%.2f", math.Log2(rate))
}

// charts draws space over the time of a hit, and over α, by file name.
func (r *report) charts() (map[string][]byte, error) {
	time := plot.Chart{
		Title: "Space and time of a hit, at each point",
		X:     plot.Axis{Label: "hit, one at a time", Unit: "ns", Log: true},
		Y:     plot.Axis{Label: "space", Unit: "bits a key", Log: true},
	}
	rate := plot.Chart{
		Title: "Space for a rate of false positives, 256 values",
		X:     plot.Axis{Label: "−log2 α"},
		Y:     plot.Axis{Label: "space", Unit: "bits a key", Log: true},
	}
	for _, k := range kinds {
		s := plot.Series{Name: k.name, Draw: plot.Markers}
		for _, m := range r.Points {
			for _, row := range m.Rows {
				if x := median(row.Hit); row.Structure == k.name && x > 0 {
					s.Points = append(s.Points, plot.Point{X: x, Y: row.BitsAKey})
				}
			}
		}
		time.Series = append(time.Series, s)
		over := plot.Series{Name: k.name, Draw: plot.Line | plot.Markers}
		for _, one := range r.Space {
			if one.Structure == k.name {
				over.Points = append(over.Points, plot.Point{X: float64(one.Bits), Y: one.BitsAKey})
			}
		}
		rate.Series = append(rate.Series, over)
	}
	pictures := map[string][]byte{}
	for name, c := range map[string]*plot.Chart{"structures-time.svg": &time, "structures-rate.svg": &rate} {
		picture, err := c.SVG()
		if err != nil {
			return nil, err
		}
		pictures[name] = picture
	}
	return pictures, nil
}
