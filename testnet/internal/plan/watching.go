package plan

import (
	"strconv"
	"time"
)

// Watching is how a program watches.
type Watching struct {
	// FromStart: it begins with what is held. Else it goes on where it was.
	FromStart bool
	// Prefix, if not empty, is that of the keys that it watches.
	Prefix string
	// Pace is how long it rests after some events; 0: not at all.
	Pace time.Duration
}

// eventsPerWatch is the most events of one watch: it begins, breaks off and goes on.
const eventsPerWatch = 3

// watches draws how many programs watch in a plan, and how much change logs keep.
func (p *Plan) watches() (programs, log int) {
	d := p.draw("watches", 0, 0)
	programs = 1 + d.IntN(6)
	if d.IntN(2) == 0 {
		log = 3 + int(d.scale(200))
	}
	return programs, log
}

// watching draws watch n of a line.
func (p *Plan) watching(e *Event, n int) (made []Event) {
	d := p.draw("watch", e.At, n)
	w := Event{At: e.At + d.within(e.For/2), Verb: Watch, Node: d.IntN(p.Nodes), Key: "w" + strconv.Itoa(n)}
	w.Watching.FromStart = d.IntN(2) == 0
	if d.IntN(3) == 0 {
		w.Watching.Prefix = "k" + strconv.Itoa(d.IntN(10))
	}
	if d.IntN(2) == 0 {
		w.Watching.Pace = time.Duration(d.scale(e.For.Milliseconds()/8)) * time.Millisecond
	}
	made = append(made, w)
	if d.IntN(2) == 0 {
		again := w
		end := Event{At: w.At + d.within(e.For/4), Verb: Unwatch, Node: w.Node, Key: w.Key}
		again.At, again.Watching.FromStart = end.At+d.within(e.For/4), d.IntN(8) == 0
		made = append(made, end, again)
	}
	return made
}
