package watermark

import (
	"slices"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
)

// Both is how far the collection of two sets is: what is true of both. The floor is the
// higher one.
func Both(c, of status.Collection) status.Collection {
	earlier := func(a, b time.Time) time.Time {
		if a.Before(b) {
			return a
		}
		return b
	}
	c.Waiting, c.Counted, c.Recovering = c.Waiting+of.Waiting, c.Counted && of.Counted, c.Recovering || of.Recovering
	switch {
	case c.Oldest.IsZero():
		c.Oldest = of.Oldest
	case !of.Oldest.IsZero():
		c.Oldest = earlier(c.Oldest, of.Oldest)
	}
	c.Mark = earlier(c.Mark, of.Mark)
	if c.Floor.Before(of.Floor) {
		c.Floor = of.Floor
	}
	c.Holding = slices.Clone(c.Holding)
	for _, h := range of.Holding {
		at, known := slices.BinarySearchFunc(c.Holding, h.Member, func(h status.Holding, id status.ID) int { return strings.Compare(string(h.Member), string(id)) })
		if !known {
			c.Holding = slices.Insert(c.Holding, at, h)
			continue
		}
		one := &c.Holding[at]
		if h.Since.Before(one.Since) {
			one.Reason, one.Since = h.Reason, h.Since
		}
		if one.Synced.Before(h.Synced) {
			one.Synced = h.Synced
		}
	}
	return c
}

// Collection says how far the collection is at a reading of the clock, and what holds
// it back. synced is when a sync with each member ended well.
func (w *Watermark) Collection(waiting *Waiting, tau dbadapter.Timestamp, synced map[roster.ID]time.Time) status.Collection {
	f, swept := waiting.Now()
	moment := func(t dbadapter.Timestamp) time.Time {
		if t == 0 {
			return time.Time{}
		}
		return t.Time()
	}
	c := status.Collection{
		Waiting: f.Count, Counted: swept, Recovering: w.state.Recovering, Mark: moment(w.At(tau)), Floor: moment(w.state.Floor),
	}
	if f.Count == 0 {
		return c
	}
	c.Oldest = moment(f.Least)
	for id, reason := range w.holding(f.Least, tau) {
		if id != w.self {
			c.Holding = append(c.Holding, status.Holding{Member: status.ID(id), Reason: reason, Since: moment(w.known[id]), Synced: synced[id]})
		}
	}
	slices.SortFunc(c.Holding, func(a, b status.Holding) int { return strings.Compare(string(a.Member), string(b.Member)) })
	return c
}

// holding are the members because of which the mark is below a goal, each with what
// is missing. A member that waits for another one is not named for that.
func (w *Watermark) holding(goal, tau dbadapter.Timestamp) map[roster.ID]string {
	why := map[roster.ID]string{}
	if goal > tau || w.At(tau) >= goal {
		return why
	}
	for _, id := range w.active {
		if id == w.self {
			continue
		}
		if w.known[id] < goal {
			why[id] = "this node has not synced with it since, and has not heard of a member that has"
		}
	}
	for _, id := range w.active {
		s := w.under(id)
		switch {
		case id == w.self || w.promised(id) >= goal || w.known[id] < goal: // what is silent says nothing of others
		case s == nil:
			why[id] = "it has not said what it holds under the list of members as it is now"
		case s.at.Clock < goal:
			why[id] = "it has not said what it holds since"
		default:
			waits := false
			for i, other := range w.active {
				if other != id && s.Vector[i] < goal {
					waits = true
					if other != w.self && why[other] == "" {
						why[other] = "another member has not synced with it since"
					}
				}
			}
			if !waits {
				why[id] = "it has not said that it holds what all members held then"
			}
		}
	}
	w.awaited(goal, why)
	return why
}

// awaited adds the members that this node's own holds wait for.
func (w *Watermark) awaited(goal dbadapter.Timestamp, why map[roster.ID]string) {
	for _, h := range w.state.Holds {
		if h.Clock > goal {
			continue
		}
		for _, id := range w.active {
			if id != w.self && why[id] == "" && !w.coveredBy(id, h) {
				why[id] = "it has not said that it holds what this node imported with a date, or restamped, while its clock said up to " +
					h.At.Time().UTC().Format(time.RFC3339)
			}
		}
	}
}
