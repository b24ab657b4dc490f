package testnet

import (
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/plot"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// SVG draws the run over virtual time: the number of nodes up, of different sets
// and of records, and the faults at each node.
func (r *Result) SVG() ([]byte, error) {
	t := r.timeline()
	title := fmt.Sprintf("%d nodes, seed %d", r.Nodes, r.Seed)
	if r.Scenario != "" {
		title = r.Scenario + ": " + title
	}
	sets, up, records := t.point(0, 1), t.point(0, float64(r.Nodes)), t.point(0, 0)
	different, running, held := []plot.Point{sets}, []plot.Point{up}, []plot.Point{records}
	for _, p := range r.Series {
		different = append(different, t.point(p.VirtualMS, float64(p.Sets)))
		running = append(running, t.point(p.VirtualMS, float64(p.Up)))
		held = append(held, t.point(p.VirtualMS, float64(p.Records)))
	}
	charts := []*plot.Chart{{
		Title: title, X: t.axis, Y: plot.Axis{Label: "number", To: 1.15 * max(4, float64(r.Nodes))}, Height: 260, Marks: t.marks,
		Series: []plot.Series{
			{Name: "nodes that run", Line: true, Dashed: true, Points: running},
			{Name: "different sets among them (1: all are equal)", Line: true, Points: different},
		},
	}}
	if faults := r.faults(t); len(faults) > 0 {
		charts = append(charts, &plot.Chart{
			Title: "what was done to them", X: t.axis, Y: plot.Axis{Label: "node", From: -0.5, To: max(5, float64(r.Nodes)) - 0.5}, Height: 240, Marks: t.marks, Series: faults,
		})
	}
	charts = append(charts, &plot.Chart{
		Title: "records of the node that holds most", X: t.axis, Y: plot.Axis{Label: "records"}, Height: 200, Marks: t.marks,
		Series: []plot.Series{{Line: true, Points: held}},
	})
	picture, err := plot.Stack(charts...)
	if err != nil {
		return nil, fmt.Errorf("testnet: %w", err)
	}
	return picture, nil
}

// timeline places moments of a run on the axis. It leaves out a long wait without
// samples, as the one until refusals expire: drawn, it would compress all events
// into a corner.
type timeline struct {
	from, pause int64 // where the wait begins and how long it is, in ms
	unit        time.Duration
	axis        plot.Axis
	marks       []plot.Mark
}

func (r *Result) timeline() *timeline {
	t := &timeline{}
	last := int64(0)
	for _, p := range r.Series {
		if wait := p.VirtualMS - last; wait > t.pause {
			t.from, t.pause = last, wait
		}
		last = p.VirtualMS
	}
	if t.pause < last/4 {
		t.pause = 0
	}
	end := max(last-t.pause, 1)
	name := ""
	for _, u := range []struct {
		name string
		unit time.Duration
	}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"days", 24 * time.Hour}} {
		if name, t.unit = u.name, u.unit; time.Duration(end)*time.Millisecond < 3*60*u.unit {
			break
		}
	}
	whole := t.point(last, 0).X
	t.axis = plot.Axis{Label: "virtual time, " + name, From: -whole / 50, To: whole * 1.02}
	if t.pause > 0 {
		wait := (time.Duration(t.pause) * time.Millisecond).Round(time.Second)
		t.axis.Label += ", without a wait of " + wait.String()
		t.marks = append(t.marks, plot.Mark{Label: wait.String() + " left out", At: t.point(t.from, 0).X})
	} else if n := len(r.plan.Events); n > 0 {
		t.marks = append(t.marks, plot.Mark{Label: "all is healed", At: t.point(r.plan.Events[n-1].At.Milliseconds(), 0).X})
	}
	return t
}

// point is a number at a moment.
func (t *timeline) point(ms int64, y float64) plot.Point {
	if ms > t.from {
		ms = max(t.from, ms-t.pause)
	}
	return plot.Point{X: float64(ms) / float64(t.unit.Milliseconds()), Y: y}
}

// kinds groups the verbs of faults in a picture by their target. Verbs that end a
// fault have a mark of their own.
var kinds = []struct {
	name  string
	verbs []plan.Verb
}{
	{"process", []plan.Verb{plan.Crash, plan.CrashAt, plan.Freeze, plan.Old}},
	{"links", []plan.Verb{plan.Cut, plan.Partition, plan.Loss, plan.Replay}},
	{"disk", []plan.Verb{plan.Restore, plan.Flip, plan.Full}},
	{"clock", []plan.Verb{plan.Skew, plan.StopClock}},
	{"mended", []plan.Verb{plan.Start, plan.Heal, plan.HealAll, plan.New}},
	{"sketch", []plan.Verb{plan.FlipCell, plan.FlipSum, plan.Phantom, plan.FalsePeel, plan.ShortCheck}},
}

// faults are the events that begin or end a fault, each at the nodes that it
// names.
func (r *Result) faults(t *timeline) (all []plot.Series) {
	struck := false
	for _, k := range kinds {
		series := plot.Series{}
		for i := range r.plan.Events {
			e := &r.plan.Events[i]
			if !slices.Contains(k.verbs, e.Verb) {
				continue
			}
			nodes := e.Nodes()
			if e.Verb == plan.HealAll {
				for n := range r.Nodes {
					nodes = append(nodes, n)
				}
			}
			for _, n := range nodes {
				series.Points = append(series.Points, t.point(e.At.Milliseconds(), float64(n)))
			}
		}
		if len(series.Points) > 0 { // else its place stays, and with it the others' colours
			series.Name, struck = k.name, true
		}
		all = append(all, series)
	}
	if !struck {
		return nil
	}
	return all
}
