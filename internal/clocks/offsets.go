package clocks

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
)

// Offset is by how much one clock is ahead of another. The greeting of a sync that
// this node began has shown it.
type Offset struct {
	Peer roster.ID
	// By is how far the peer's clock is ahead of this node's; less than 0 if it
	// is behind. The truth lies within Error of it.
	By    time.Duration
	Error time.Duration
	// At is when it was measured.
	At time.Time
}

// Off reports whether the two clocks are further apart than clocks that are set by
// time servers, whatever the network has added.
func (o *Offset) Off() bool { return o.By.Abs()-o.Error > ClockOff }

// Offsets are those of the peers' clocks, the latest of each.
type Offsets struct {
	mu sync.Mutex
	of map[roster.ID]Offset
}

// Measure measures a peer's clock. theirs is the time in its greeting, in
// milliseconds. The peer read it after sent, when this node's Hello left, and
// before received, when the Welcome arrived. A peer that says no time is not
// measured. Nor is one that began the sync, where sent is zero: one way alone says
// nothing.
func (o *Offsets) Measure(peer roster.ID, theirs uint64, sent, received time.Time) {
	trip := received.Sub(sent) // by the monotonic clock, where there is one
	if theirs == 0 || sent.IsZero() || trip < 0 {
		return
	}
	// A millisecond that a clock shows has lasted for half of one, on average.
	by := time.UnixMilli(int64(min(theirs, math.MaxInt64))).Sub(received.Add(-trip / 2).Round(0))
	m := Offset{peer, min(max(by, -farthest), farthest) + time.Millisecond/2, min(trip/2, farthest) + time.Millisecond/2, received}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[roster.ID]Offset{}
	}
	if _, known := o.of[peer]; !known && len(o.of) >= roster.MaxMembers {
		delete(o.of, longestSilent(o.of, func(o Offset) time.Time { return o.At }))
	}
	o.of[peer] = m
}

// farthest is as far as two clocks are told apart: what a peer says may be any
// number.
const farthest = 100 * 365 * 24 * time.Hour

// List is what was measured within the last OffsetLife, by id.
func (o *Offsets) List(now time.Time) (list []Offset) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, m := range o.of {
		if age := now.Sub(m.At); age.Abs() > OffsetLife {
			delete(o.of, id) // or this node's clock was set back since
			continue
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Offset) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return list
}

// Own is by how much this node's clock is ahead of that of its peers, and how many
// of these were measured; with none it says nothing. The median of theirs counts,
// which a minority of wrong clocks does not move far.
//
// Each offset lies between two bounds, so that the median of all lies between the
// medians of the bounds.
func (o *Offsets) Own(now time.Time) (own Offset, peers int) {
	list := o.List(now)
	if len(list) == 0 {
		return Offset{}, 0
	}
	low, high := make([]time.Duration, len(list)), make([]time.Duration, len(list))
	for i, o := range list {
		low[i], high[i] = o.By-o.Error, o.By+o.Error
		own.At = later(own.At, o.At)
	}
	least, most := median(low), median(high)
	own.By, own.Error = -(least+most)/2, (most-least+1)/2
	return own, len(list)
}

// median is the middle one, or the mean of the middle two.
func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	a, b := of[(len(of)-1)/2], of[len(of)/2]
	return a + (b-a)/2
}
