package plan

import (
	"context"
	"crypto/sha256"
	"slices"
)

// Shrink searches for a small plan that fails as p does. It tries fewer nodes, then
// fewer faults, then fewer operations, then fewer bytes, and again until it can remove
// nothing more. It calls fails at most budget times, and ends early with the context.
// It returns the smallest plan for which fails was true, or else p itself with its
// random lines expanded. The same plan and the same answers give the same result.
//
// It removes events by delta debugging (Zeller and Hildebrandt, "Simplifying and
// Isolating Failure-Inducing Input", 2002). It tries halves first, then ever smaller
// parts, until it can remove no single event.
func Shrink(ctx context.Context, p Plan, fails func(Plan) bool, budget int) Plan {
	s := &shrinker{ctx: ctx, fails: fails, budget: budget, tried: map[[32]byte]bool{}, best: p.Expand()}
	if !s.try(s.best) {
		return s.best
	}
	for changed := true; changed; {
		before := s.calls
		was := s.best.String()
		s.nodes()
		s.events(fault, mending)
		s.events(operation)
		s.events(fault, mending, operation)
		s.merge()
		s.settings()
		s.details()
		s.times()
		changed = s.best.String() != was && s.calls > before
	}
	return s.best
}

// shrinker is the state of a search: best fails, and is the smallest so far.
type shrinker struct {
	ctx           context.Context
	fails         func(Plan) bool
	calls, budget int
	tried         map[[32]byte]bool
	best          Plan
}

// try makes a candidate the best if it fails. It runs each candidate once, and
// invalid ones never.
func (s *shrinker) try(p Plan) bool {
	if s.spent() {
		return false
	}
	text := p.String()
	sum := sha256.Sum256([]byte(text))
	if s.tried[sum] {
		return false
	}
	s.tried[sum] = true
	if _, err := Parse(text); err != nil {
		return false
	}
	s.calls++
	if !s.fails(p) {
		return false
	}
	s.best = p
	return true
}

// spent reports whether the search is at its end. Callers then make no further
// candidates.
func (s *shrinker) spent() bool { return s.calls >= s.budget || s.ctx.Err() != nil }

// reduce removes the parts of a list without which the plan still fails: delta
// debugging by complements. It returns the parts that must stay.
func reduce[T any](list []T, try func(rest []T) bool) []T {
	if len(list) > 0 && try(nil) {
		return nil
	}
	for size := (len(list) + 1) / 2; size > 0; {
		took := false
		for at := 0; at < len(list); {
			end := min(at+size, len(list))
			rest := slices.Concat(list[:at], list[end:])
			if len(rest) > 0 && try(rest) {
				list, took = rest, true // the next part now stands at the same place
			} else {
				at = end
			}
		}
		// If no part could go, smaller ones may. After single ones have gone, others
		// may have become removable.
		switch {
		case size == 1 && !took:
			size = 0
		case size > 1:
			size = min((size+1)/2, max(1, (len(list)+1)/2))
		}
	}
	return list
}

// events takes away events of some classes; the others stay.
func (s *shrinker) events(classes ...class) {
	all := s.best.Events
	var free []int
	for i := range all {
		if slices.Contains(classes, verbTable[all[i].Verb].class) {
			free = append(free, i)
		}
	}
	reduce(free, func(rest []int) bool {
		if s.spent() {
			return false
		}
		p := s.best
		p.Events = nil
		for i := range all {
			if slices.Contains(classes, verbTable[all[i].Verb].class) {
				if _, keep := slices.BinarySearch(rest, i); !keep {
					continue
				}
			}
			p.Events = append(p.Events, all[i])
		}
		return s.try(p)
	})
}

// nodes takes away nodes, with the events that name them.
func (s *shrinker) nodes() {
	whole := s.best
	all := make([]int, whole.Nodes)
	for i := range all {
		all[i] = i
	}
	reduce(all, func(rest []int) bool {
		number := map[int]int{}
		for to, from := range rest {
			number[from] = to
		}
		return len(rest) > 0 && !s.spent() && s.try(whole.renumbered(number, len(rest)))
	})
}

// merge gives the events of two nodes to one.
func (s *shrinker) merge() {
	for gone := s.best.Nodes - 1; gone >= 0; gone-- {
		for into := 0; into < s.best.Nodes && gone < s.best.Nodes; into++ {
			if into == gone || s.spent() {
				continue
			}
			number := map[int]int{}
			for n := range s.best.Nodes {
				number[n] = n
				if n > gone {
					number[n]--
				}
			}
			number[gone] = number[into]
			s.try(s.best.renumbered(number, s.best.Nodes-1))
		}
	}
}

// renumbered is the plan with other numbers for its nodes; it leaves out events of
// a node without a number.
func (p Plan) renumbered(number map[int]int, nodes int) Plan {
	out := p
	out.Nodes, out.Events, out.Expect.Corrupt = nodes, nil, nil
	for _, n := range p.Expect.Corrupt {
		if to, ok := number[n]; ok {
			out.Expect.Corrupt = with(out.Expect.Corrupt, to)
		}
	}
	for _, e := range p.Events {
		if e.renumber(number) {
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// renumber gives the nodes of an event their new numbers; it reports false if a
// node of the event has no new number.
func (e *Event) renumber(number map[int]int) bool {
	if e.takes(theGroups) {
		var left [][]int
		for _, g := range e.Groups() {
			var nodes []int
			for _, n := range g {
				if to, ok := number[n]; ok {
					nodes = append(nodes, to)
				}
			}
			if len(nodes) > 0 {
				left = append(left, nodes)
			}
		}
		e.Key = groupText(left)
		return len(left) > 0
	}
	ok := true
	node, peer := e.names()
	if node {
		e.Node, ok = number[e.Node]
	}
	if peer && ok {
		e.Peer, ok = number[e.Peer]
	}
	return ok && (!e.takes(theLink) || e.Node != e.Peer)
}
