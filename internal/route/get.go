package route

import (
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Candidate is a node that a shard's record may be asked of.
type Candidate struct {
	ID ID
	// Former: it was a host of the shard, and may still hold it.
	Former bool
	// Connected: a request need not wait for a dial.
	Connected bool
}

// Do is what a driver does next.
type Do uint8

// The steps.
const (
	Ask  Do = iota + 1 // a request to Peer
	Wait               // until Until, or until a request ends
	Over
)

// Step is what a driver does next.
type Step struct {
	Do    Do
	Peer  ID
	Until time.Duration
}

// Bounds of a read.
const (
	// Overdue is after what time a request no longer holds back the next candidate, as long
	// as few are overdue ([Times]), and Abandoned after what time it does not, however many
	// are. An answer that comes later still counts.
	Overdue   = time.Second
	Abandoned = 4 * time.Second
	// busyPause is after what time a host that was too busy is asked again; twice as long
	// each further time.
	busyPause = 50 * time.Millisecond
)

// ErrUnavailable: no host of the shard has answered.
var ErrUnavailable = errors.New("no host of the key's shard has answered")

// Heard is what one candidate has come to.
type Heard struct {
	Peer   ID
	Answer *Answer // nil: no answer
	// Err is why there is no answer; nil while one may come.
	Err error
	// Took is how long the answer took.
	Took time.Duration
}

// Found is what a read has found.
type Found struct {
	// Record is the one with the greatest version of those heard; nil: none was.
	Record *dbadapter.Record
	// Sure: a host that is current has said so; that there is no record, two have, or one
	// where no other host can be reached. Or a settled one has, and all candidates have
	// answered, by the asker's list of members: so whatever any of them has acknowledged was
	// heard. One that is asked still may hold a record.
	Sure bool
	// Doubt, unless it is sure, says why, for a person.
	Doubt string
	// Heard are the candidates that were asked, in that order.
	Heard []Heard
	// Gone are former hosts that hold the shard no more. They have handed it over since the candidates were
	// chosen, maybe after other hosts had answered: these are to be asked once more, without those.
	Gone []ID
	// Passed: a settled host, or one of before, that holds nothing has collected deletions up to later than the record: a deletion
	// may have come to the one that gave it, and have been collected, between the two answers. All are to be asked once more.
	Passed bool
	// Requests is how many requests there were, Hedges how many of these were hedges.
	Requests, Hedges int
	// Moved, if its epoch is not 0, is the latest layout by which a node said that it is
	// no host, and MovedBy that node.
	Moved   Layout
	MovedBy ID
}

// Anew reports whether what was found is not sure since holders have changed between their answers, so that the read is
// to be made anew.
func (f *Found) Anew() bool { return !f.Sure && (f.Passed || len(f.Gone) > 0) }

// GetOptions say how a read goes.
type GetOptions struct {
	// Deadline is when it is over, whatever has come.
	Deadline time.Duration
	// Patience, if not 0, puts the deadline off to so long after a host has delivered a part
	// of its answer (Get.Delivers).
	Patience time.Duration
	// All: each candidate is asked, at once, and all answers are awaited.
	All bool
	// Unheard: a member that is no candidate may hold the record, so that the answers of all
	// candidates are not enough.
	Unheard bool
	// Here, if not nil, is the caller's own answer. That it holds nothing, as a host, another
	// host confirms, unless it is overdue.
	Here *Answer
}

// Get is one read of a key. It is for one goroutine at a time; its Times may be shared by
// several under one lock.
type Get struct {
	times    *Times
	options  GetOptions
	waiting  []Candidate // not asked yet, the next first
	requests []*request  // in the order in which they were asked first
	count    int         // of requests
	hedges   int
	heard    bool // a host has answered, this node as one too, or another node has given a record
	own      bool // the caller is a host that is current
	current  int  // so many hosts that are current have answered,
	found    bool // and one of them a record
}

// request is one candidate that was asked.
type request struct {
	peer   ID
	former bool
	first  time.Duration // when it was asked first,
	asked  time.Duration // and last
	due    time.Duration // until when the next candidate waits for it,
	lost   time.Duration // and until when it may, if many are overdue
	open   bool
	tries  int
	late   time.Duration // from when on a hedge may follow
	hedged bool          // one has followed
	again  time.Duration // when it is asked again, if it was busy; 0: never
	answer *Answer
	err    error
	took   time.Duration
}

// fresh reports whether the next candidate waits for the request.
func (r *request) fresh(now time.Duration) bool { return r.open && now < r.due }

// NewGet begins a read. The candidates are those that the caller knows; each is asked
// once at most, but for one that is too busy.
func NewGet(times *Times, candidates []Candidate, o GetOptions, now time.Duration) *Get {
	g := &Get{times: times, options: o, waiting: slices.Clone(candidates)}
	if h := o.Here; h.current() {
		g.own, g.current, g.found = true, 1, h.Record != nil
	}
	g.heard = o.Here != nil && o.Here.Host
	times.sort(g.waiting, now)
	return g
}

// Next is what to do now.
func (g *Get) Next(now time.Duration) Step {
	if g.over(now) {
		return Step{Do: Over}
	}
	if len(g.waiting) > 0 && (g.options.All || g.goesOn(now)) {
		r := &request{peer: g.waiting[0].ID, former: g.waiting[0].Former, first: now}
		g.waiting, g.requests = g.waiting[1:], append(g.requests, r)
		return g.ask(r, now)
	}
	for _, r := range g.requests {
		if !r.open && r.again > 0 && r.again <= now {
			return g.ask(r, now)
		}
	}
	return Step{Do: Wait, Until: g.wakes(now)}
}

func (g *Get) ask(r *request, now time.Duration) Step {
	r.open, r.asked, r.again, r.err = true, now, 0, nil
	r.late, r.hedged = now+g.times.Late(r.peer), false
	r.due, r.lost = now+Overdue, now+Abandoned
	r.tries++
	g.count++
	g.times.asked()
	return Step{Do: Ask, Peer: r.peer}
}

// awaited reports whether a host may still say what it holds.
func (r *request) awaited() bool { return !r.former && (r.open || r.again > 0) }

// over reports whether the read has its result. Where there is an answer that is not
// enough, others are awaited until they are overdue; hosts until the deadline, where one is
// sure that it holds nothing.
func (g *Get) over(now time.Duration) bool {
	if now >= g.options.Deadline || !g.options.All && (g.found || g.current > 1) {
		return true
	}
	return len(g.waiting) == 0 && !slices.ContainsFunc(g.requests, func(r *request) bool {
		if g.heard && !g.options.All && !(g.current == 1 && !g.own && r.awaited()) {
			return r.fresh(now) || r.again > 0 && now < r.first+Overdue
		}
		return r.open || r.again > 0
	})
}

// goesOn reports whether the next candidate is asked now: no request is open that it waits
// for; or one, which is late and may have a hedge beside it. A third host would be asked
// only because two are slow.
func (g *Get) goesOn(now time.Duration) bool {
	var one *request
	for _, r := range g.requests {
		if !r.fresh(now) {
			continue
		}
		if one != nil {
			return false
		}
		one = r
	}
	if one == nil {
		return !slices.ContainsFunc(g.requests, func(r *request) bool { return r.open && now < r.lost }) || g.times.overdue()
	}
	if one.hedged { // the hedge has ended
		return true
	}
	if now < one.late || !g.times.hedge() {
		return false
	}
	one.hedged = true
	g.hedges++
	return true
}

// wakes is when something is to be done, if no request ends before.
func (g *Get) wakes(now time.Duration) time.Duration {
	at := g.options.Deadline
	sooner := func(t time.Duration) {
		if t > now {
			at = min(at, t)
		}
	}
	for _, r := range g.requests {
		if r.open {
			sooner(r.due)
		}
		if r.open && len(g.waiting) > 0 {
			sooner(r.late)
			sooner(r.lost)
		}
		if r.again > 0 {
			sooner(r.again)
			sooner(r.first + Overdue)
		}
	}
	return at
}

// of is the open request to a peer, or nil.
func (g *Get) of(peer ID) *request {
	for _, r := range g.requests {
		if r.peer == peer && r.open {
			return r
		}
	}
	return nil
}

// Answered notes the answer of a peer. The caller has checked its record.
func (g *Get) Answered(peer ID, a Answer, now time.Duration) {
	r := g.of(peer)
	if r == nil {
		return
	}
	r.open, r.took, r.answer = false, now-r.asked, &a
	g.times.Took(peer, r.took, now)
	g.heard = g.heard || a.Host || a.Record != nil
	if a.current() {
		g.current++
		g.found = g.found || a.Record != nil
	}
}

// counts reports whether, once each candidate has given such an answer, all have answered that may hold the
// record: by another list there may be further ones, and what one held that has handed the shard over others
// had got only after they had answered.
func (r *request) counts() bool { return r.answer != nil && !r.answer.OtherList && !r.gone() }

// gone reports whether a former host has answered that it holds the shard no more.
func (r *request) gone() bool {
	a := r.answer
	return r.former && a != nil && !a.Host && !a.Holds && a.Record == nil
}

// absent reports whether enough is known of a record that no host has given.
func (g *Get) absent(complete bool) bool {
	return complete || g.current > 1 || g.own || !slices.ContainsFunc(g.requests, (*request).awaited) && !slices.ContainsFunc(g.waiting, func(c Candidate) bool { return !c.Former })
}

// Delivers notes that a part of a peer's answer has come. The next candidate is asked only
// once nothing has come for the time Abandoned: it would share the link, and begin anew.
func (g *Get) Delivers(peer ID, now time.Duration) {
	r := g.of(peer)
	if r == nil {
		return
	}
	r.due, r.lost, r.late = now+Abandoned, now+Abandoned, now+Abandoned
	if g.options.Patience > 0 {
		g.options.Deadline = max(g.options.Deadline, now+g.options.Patience)
	}
}

// Failed notes why a peer has given no answer. busy: it asks to be asked later.
func (g *Get) Failed(peer ID, why error, busy bool, now time.Duration) {
	r := g.of(peer)
	if r == nil {
		return
	}
	r.open, r.took, r.err = false, now-r.asked, why
	if busy {
		r.again = now + busyPause<<min(r.tries-1, 10)
	} else {
		g.times.Failed(peer, now)
	}
}

// Result is what was found. It is to be read once, when the read is over: requests that
// are still open are cut. The error is ErrUnavailable.
func (g *Get) Result(now time.Duration) (Found, error) {
	f := Found{Requests: g.count, Hedges: g.hedges}
	complete := !g.options.Unheard && len(g.waiting) == 0 && !slices.ContainsFunc(g.requests, func(r *request) bool { return !r.counts() })
	if g.options.Here != nil {
		f.Record = g.options.Here.Record
	}
	for _, r := range g.requests {
		if r.open {
			g.times.Cut(r.peer, now-r.asked, now)
		}
		f.Heard = append(f.Heard, Heard{Peer: r.peer, Answer: r.answer, Err: r.err, Took: r.took})
		if r.gone() {
			f.Gone = append(f.Gone, r.peer)
		}
		a := r.answer
		if a == nil {
			continue
		}
		if !a.Host && a.Layout.Epoch > f.Moved.Epoch {
			f.Moved, f.MovedBy = a.Layout, r.peer
		}
		if a.Record != nil && (f.Record == nil || a.Record.Compare(f.Record) > 0) {
			f.Record = a.Record
		}
	}
	f.Passed = passes(g.options.Here, f.Record) || slices.ContainsFunc(f.Heard, func(h Heard) bool { return passes(h.Answer, f.Record) })
	// A record beyond what the settled hosts hold is given, and not called sure: it may be
	// a write of just now, or what has been collected since.
	sure := func(a *Answer) bool {
		if !a.vouches(complete) || f.Passed && !a.current() {
			return false
		}
		if f.Record == nil {
			return g.absent(complete)
		}
		return a.Record != nil && a.Record.Compare(f.Record) == 0
	}
	f.Sure = sure(g.options.Here) || slices.ContainsFunc(f.Heard, func(h Heard) bool { return sure(h.Answer) })
	if !f.Sure {
		f.Doubt = g.doubt(f.Record, complete)
	}
	if !g.heard {
		return f, ErrUnavailable
	}
	return f, nil
}
