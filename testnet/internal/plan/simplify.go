package plan

import (
	"slices"
	"time"
)

// The shrinker's steps for a plan of few events: each number becomes as small as
// the failure allows, and times become round.

// settings gives the network, the clocks and other settings their defaults.
func (s *shrinker) settings() {
	for _, plainer := range []func(*Plan){
		func(p *Plan) { p.Prose = nil }, // it may no longer be true
		func(p *Plan) { p.Net = Net{} },
		func(p *Plan) { p.Net.Reorder = 0 },
		func(p *Plan) { p.Net.Duplicate = 0 },
		func(p *Plan) { p.Net.Loss = 0 },
		func(p *Plan) { p.Net.Jitter = 0 },
		func(p *Plan) { p.Net.Delay = min(p.Net.Delay, 10*time.Millisecond) },
		func(p *Plan) { p.Every = 0 },
		func(p *Plan) { p.Every = p.Every.Round(time.Second) },
		func(p *Plan) {
			p.Signed = p.Signed && slices.ContainsFunc(p.Events, func(e Event) bool { return e.Key == "read" })
		},
		func(p *Plan) { p.Push = false },
		func(p *Plan) { p.Prefixes = nil },
		func(p *Plan) {
			if len(p.Prefixes) == 0 { // else one may go to a shard that is there no longer
				p.Shards = min(p.Shards, 2)
			}
		},
		func(p *Plan) { p.Replicas = min(p.Replicas, 2) },
		func(p *Plan) { p.Checksums = 0 },
		func(p *Plan) { p.Indices = 0 },
		func(p *Plan) { p.Log = 0 },
		func(p *Plan) { p.Ground = "" },
		func(p *Plan) { p.Skew = DefaultSkew },
		// In fewer rounds than a drawn plan has, what is right would fail as well.
		func(p *Plan) { p.Settle = min(p.Settle, max(DefaultSettle, 40*p.Every)) },
	} {
		p := s.best
		plainer(&p)
		s.try(p)
	}
}

// details makes each event as small as possible: sizes, durations, jumps of
// clocks.
func (s *shrinker) details() {
	s.each(func(e *Event) {
		switch {
		case e.Verb == Batch && s.best.Shards > 0:
			e.Verb, e.Amount = Put, 0
		case e.Verb == Batch:
			e.Verb, e.Key, e.Amount = Put, e.KeyAt(0), 0
		case e.Verb == Import:
			e.Verb, e.Key, e.Amount = Dated, e.KeyAt(0), 0
		}
	})
	s.each(func(e *Event) {
		switch e.Verb {
		case Expiring:
			e.Verb, e.For = Put, 0
		case PutIf:
			e.Verb = Put
		case Term:
			e.Verb, e.For = SetRole, 0
		}
	})
	s.each(func(e *Event) {
		switch {
		case e.Verb == Partition || e.Verb == WaitKey || e.Verb.Writes() || e.Amount == 0:
		case e.Verb == Loss:
			e.Amount = 1000 // all is a plainer fault than some
		case e.Verb == Skew && e.Amount/minute != 0:
			e.Amount -= e.Amount % minute
		case e.Verb == Flip, e.Verb == FlipCell, e.Verb == FlipSum, e.Verb == Phantom:
			e.Amount = 0
		}
	})
	s.each(func(e *Event) {
		if len(e.Value) > 1 {
			e.Value = "a"
		}
	})
	s.each(func(e *Event) { e.Ack, e.Read, e.AtLeast = "", "", false })
	s.each(func(e *Event) { e.Finding = "" })
	s.each(func(e *Event) { e.Watching.Pace = 0 })
	s.each(func(e *Event) { e.Watching.Prefix = "" })
	s.each(func(e *Event) { e.For = min(e.For, time.Second) })
	s.each(func(e *Event) { e.For = max(e.For.Round(time.Second), min(e.For, time.Second)) })
	for i := range s.best.Events {
		lower(s, i, func(e *Event) *int { return &e.Size })
		if v := s.best.Events[i].Verb; v == Batch || v == Import || v == WaitKey {
			lower(s, i, func(e *Event) *int64 { return &e.Amount })
		}
	}
}

const minute = int64(time.Minute / time.Millisecond)

// each applies a change to all events at once, and if the plan then passes, to one
// after the other.
func (s *shrinker) each(change func(*Event)) {
	apply := func(indices []int) bool {
		if s.spent() {
			return false
		}
		p := s.best
		p.Events = slices.Clone(p.Events)
		for _, i := range indices {
			change(&p.Events[i])
		}
		return !slices.Equal(p.Events, s.best.Events) && s.try(p)
	}
	var all []int
	for i, e := range s.best.Events {
		if change(&e); e != s.best.Events[i] {
			all = append(all, i)
		}
	}
	if len(all) == 0 || apply(all) {
		return
	}
	for _, i := range all {
		apply([]int{i})
	}
}

// lower brings a number of an event down: to 0, to 1, or by halves. A negative
// one is left alone.
func lower[T int | int64](s *shrinker, i int, number func(*Event) *T) {
	set := func(v T) bool {
		if s.spent() {
			return false
		}
		p := s.best
		p.Events = slices.Clone(p.Events)
		*number(&p.Events[i]) = v
		return s.try(p)
	}
	value := func() T { return *number(&s.best.Events[i]) }
	if value() <= 0 || set(0) || value() == 1 || set(1) {
		return
	}
	for step := value() / 2; step > 0; {
		if v := value(); v > step && set(v-step) {
			step = min(step, value()/2)
		} else {
			step /= 2
		}
	}
}

// times puts the events a second apart, or makes their times round.
func (s *shrinker) times() {
	// retime reports whether the events stand at these times now.
	retime := func(at func(i int, e *Event) time.Duration) bool {
		if s.spent() {
			return false
		}
		p := s.best
		p.Events = slices.Clone(p.Events)
		for i := range p.Events {
			p.Events[i].At = at(i, &p.Events[i])
		}
		return slices.Equal(p.Events, s.best.Events) || s.try(p)
	}
	if retime(func(i int, _ *Event) time.Duration { return time.Duration(i+1) * time.Second }) {
		return
	}
	for _, unit := range []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
		if retime(func(_ int, e *Event) time.Duration { return e.At.Truncate(unit) }) {
			break
		}
	}
}
