package shards

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/peer/status"
)

// overdue is after what time the next host is asked at level one, however many are late.
const overdue = time.Second

// GetOptions say how a key is read.
type GetOptions struct {
	Level quorum.Level // One, Quorum or All
	// AtLeast, if not zero, asks further hosts until one has this version or a later one, or has
	// collected up to it.
	AtLeast dbadapter.Version
	// Bare gives the record as its hosts hold it: with the pointer to its body, if that has its value.
	Bare bool
}

// Answer is what one host has come to.
type Answer struct {
	Peer node.ID
	// Old and New: it is a host of that set.
	Old, New bool
	// Answer is nil if it has not answered, and Err then why.
	Answer *HostAnswer
	Err    error
	Took   time.Duration
}

// Found is what a read has found.
type Found struct {
	Shard placement.Shard
	// Record is the one with the greatest version, a tombstone too; nil: the key holds nothing.
	Record *dbadapter.Record
	// Old and New count the answers.
	Old, New Side
	// Hosts are those that were asked, in the order of the row.
	Hosts []Answer
	// Requests is how many other nodes were asked.
	Requests int
	// Nowhere: the locator says that there is nothing under the key.
	Nowhere bool
}

// Get reads a key. ErrTooFew: fewer hosts have answered than the level takes; what was found is
// given all the same. bodies.ErrLost: no host has the value. A tombstone, and a record that has expired, are
// found records.
func (s *Shards) Get(ctx context.Context, key []byte, o GetOptions) (Found, error) {
	if err := s.CheckKey(key); err != nil {
		return Found{}, err
	}
	ctx, cut, over := s.begin(ctx)
	defer cut()
	if o.Bare || !s.NS.Bodied() {
		return s.get(ctx, key, o, over)
	}
	return s.getValue(ctx, key, o, over)
}

// get reads a record as its hosts hold it.
func (s *Shards) get(ctx context.Context, key []byte, o GetOptions, over time.Duration) (Found, error) {
	shard := s.NS.Home(key)
	if o.Level == quorum.One && o.AtLeast.IsZero() {
		if where, _ := s.Locate(key); where == locator.Nowhere {
			return Found{Shard: shard, Nowhere: true}, nil
		}
	}
	return anew(ctx, s, shard, over, func(a *Asker) (Found, error) {
		r := &read{Shards: s, asker: a, row: a.Row(), key: key, GetOptions: o, over: over, look: over, box: s.Net.Mailbox(), of: map[node.ID]*asked{}}
		return r.run(ctx)
	})
}

// read is one read under one row.
type read struct {
	*Shards
	GetOptions
	asker *Asker
	row   *quorum.Row
	key   []byte
	over  time.Duration
	box   Mailbox
	of    map[node.ID]*asked
	open  int           // requests
	look  time.Duration // when the host that was asked for the record is late
	count int           // of other nodes
}

// asked is what a host has come to.
type asked struct {
	began  time.Duration
	late   time.Duration // from when on another host is asked for the record
	took   time.Duration
	open   bool
	full   bool        // it was asked for the record, not for the head
	answer *HostAnswer // nil: none yet
	err    error
}

func (r *read) run(ctx context.Context) (Found, error) {
	asking, cut := context.WithCancel(ctx)
	defer cut() // the requests whose answers are awaited no longer
	hosts := r.nearest(r.row.Old)
	if r.Level != quorum.One || !r.AtLeast.IsZero() {
		for _, id := range r.nearest(r.row.New) {
			if !r.row.IsOld(id) {
				hosts = append(hosts, id)
			}
		}
	}
	next, hedge := 0, r.over
	for {
		if !r.asker.Current() {
			return Found{}, errRow
		}
		done, best := r.done()
		switch fetched, fetching := r.fetch(asking, best); {
		case done && (fetched || !fetching):
			return r.result(best, fetched)
		case r.open == 0 && next == len(hosts):
			return r.result(best, false)
		}
		// At level one the next host is asked where none is being asked, or the last one is late.
		for next < len(hosts) && (r.Level != quorum.One || r.open == 0 || r.Net.Now() >= hedge) {
			id := hosts[next]
			r.ask(asking, id, next > 0 && r.Level != quorum.One)
			next++
			hedge = r.hedge(id)
			if r.Level == quorum.One && r.open == 0 { // this node has answered
				break
			}
		}
		if r.open == 0 { // this node has answered by itself
			continue
		}
		until := min(r.over, r.look)
		if next < len(hosts) { // another one is asked then
			until = min(until, hedge)
		}
		if note := r.box.Take(ctx, until); note != nil {
			note()
		} else if ctx.Err() != nil {
			return r.found(r.best()), context.Cause(ctx)
		} else if r.Net.Now() >= r.over {
			return r.result(r.best(), false)
		}
	}
}

// hedge is when another host is asked beside one that does not answer.
func (r *read) hedge(id node.ID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times.Asked()
	if !r.times.Hedge() {
		return r.Net.Now() + overdue
	}
	return r.Net.Now() + r.times.Late(id)
}

// late is after what time a host's answer is late.
func (r *read) late(id node.ID) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times.Late(id)
}

// ask asks a host, this node itself at once.
func (r *read) ask(ctx context.Context, id node.ID, head bool) {
	h := &asked{began: r.Net.Now(), full: !head}
	if before := r.of[id]; before != nil {
		h.answer = before.answer
	}
	r.of[id] = h
	if id == r.NS.Self() {
		h.full = true
		answer, _, err := askHost(ctx, r.Shards, r.asker, id, r.over, r.asker.record(r.key, false))
		if h.err = err; err == nil {
			h.answer = &answer
		}
		return
	}
	h.open = true
	h.late = h.began + r.late(id)
	r.open++
	r.count++
	r.Net.Go(ctx, func(ctx context.Context) {
		answer, _, err := askHost(ctx, r.Shards, r.asker, id, r.over, r.asker.record(r.key, head))
		r.box.Put(func() {
			h.open, h.took = false, r.Net.Now()-h.began
			r.open--
			if h.answer, h.err = &answer, err; err != nil {
				h.answer = nil // a head without its record is no answer
			}
		})
	})
}

// has and whole report what a host has answered. A head is none while its record is late.
func (r *read) has(id node.ID) bool {
	h := r.of[id]
	return h != nil && h.answer != nil && (!h.open || r.Net.Now() < h.late)
}

func (r *read) whole(id node.ID) bool { return r.has(id) && r.of[id].answer.Whole }

// done reports whether the answers are enough, and which is the greatest version of them. (7)
func (r *read) done() (done bool, best dbadapter.Version) {
	best = r.best()
	if !r.AtLeast.IsZero() && best.Compare(r.AtLeast) < 0 && !r.collectedTo(r.AtLeast.Clock) {
		if best = r.greatest(r.has); best.Compare(r.AtLeast) < 0 {
			return false, best
		}
	}
	switch r.Level {
	case quorum.One:
		for _, id := range r.row.Old {
			if r.whole(id) {
				return true, best
			}
		}
		return !r.AtLeast.IsZero() && best.Compare(r.AtLeast) >= 0, best
	case quorum.All:
		if !r.all(r.row, r.has) {
			return false, best
		}
	}
	return r.row.Enough(r.has, r.whole), best
}

// best is the greatest version that whole hosts have answered. One that is not whole may hold what was
// deleted, while the others have collected the deletion: what it has counts where no whole one answers, or
// where it is asked for by its version.
func (r *read) best() dbadapter.Version {
	if slices.ContainsFunc(r.row.Hosts(), r.whole) {
		return r.greatest(r.whole)
	}
	return r.greatest(r.has)
}

func (r *read) greatest(of func(node.ID) bool) (best dbadapter.Version) {
	for _, id := range r.row.Hosts() {
		if of(id) && r.of[id].answer.Version.Compare(best) > 0 {
			best = r.of[id].answer.Version
		}
	}
	return best
}

// collectedTo reports whether a whole host has collected deletions up to a time.
func (r *read) collectedTo(clock dbadapter.Timestamp) bool {
	for _, id := range r.row.Hosts() {
		if r.whole(id) && r.of[id].answer.Floor >= clock {
			return true
		}
	}
	return false
}

// fetch sees that the record of a version is here: where the host that was asked for it is late,
// or has another version, the next host that has the version is asked. fetching: one is being asked.
func (r *read) fetch(ctx context.Context, best dbadapter.Version) (fetched, fetching bool) {
	r.look = r.over
	if best.IsZero() {
		return true, false
	}
	next, open := node.ID(""), false
	for _, id := range r.nearest(r.row.Hosts()) {
		h := r.of[id]
		switch {
		case h == nil:
		case h.answer != nil && h.answer.Record != nil && h.answer.Version == best:
			return true, false
		case h.open && h.full:
			open = true
			if r.Net.Now() < h.late {
				fetching, r.look = true, min(r.look, h.late)
			}
		case h.answer != nil && h.answer.Version == best && !h.full && next == "":
			next = id
		}
	}
	if !fetching && next != "" {
		r.ask(ctx, next, false)
		r.look = min(r.look, r.of[next].late)
		return false, true
	}
	return false, fetching || open
}

// found is what is known of a version.
func (r *read) found(best dbadapter.Version) Found {
	f := Found{Shard: r.asker.Shard(), Requests: r.count, Old: sideOf(r.row.Old, r.whole), New: sideOf(r.row.New, r.has)}
	for _, id := range r.row.Hosts() {
		h := r.of[id]
		if h == nil {
			continue
		}
		a := Answer{Peer: id, Old: r.row.IsOld(id), New: r.row.IsNew(id), Answer: h.answer, Err: h.err, Took: h.took}
		if h.answer == nil && h.err == nil {
			a.Err = errSilent
		}
		if h.answer != nil && h.answer.Record != nil && h.answer.Version == best && !best.IsZero() {
			f.Record = h.answer.Record
		}
		f.Hosts = append(f.Hosts, a)
	}
	return f
}

// result ends the read, and hands what was found to the hosts that had less.
func (r *read) result(best dbadapter.Version, enough bool) (Found, error) {
	f := r.found(best)
	if enough {
		if r.Level != quorum.One && f.Record != nil {
			r.repair(f.Record)
		}
		return f, nil
	}
	why := map[node.ID]error{}
	for _, h := range f.Hosts {
		switch {
		case h.Answer == nil:
			why[h.Peer] = h.Err
		case h.Old && !h.Answer.Whole:
			why[h.Peer] = errNotWhole
		}
	}
	return f, r.tooFew(&f, why)
}

func (r *read) tooFew(f *Found, why map[node.ID]error) error {
	text := count(r.row, "answered", f.Old, f.New)
	switch done, _ := r.done(); {
	case !r.AtLeast.IsZero() && !done && r.row.Enough(r.has, r.whole):
		text = fmt.Sprintf("no host that answered has version %s yet", r.AtLeast)
	case r.Level == quorum.One:
		text = fmt.Sprintf("no whole host of %d answered", len(r.row.Old))
	case r.Level == quorum.All:
		text = fmt.Sprintf("%d of %d hosts answered; all are needed", f.Old.Had, f.Old.Hosts)
	}
	return tooFewOf(f.Old.Had, f.Old.Hosts, text, why)
}

// tooFewOf says that of so many hosts these have answered, and why the others have not.
func tooFewOf(had, of int, text string, why map[node.ID]error) error {
	if len(why) > 0 {
		text = fmt.Sprintf("%s (%s)", text, words(why))
	}
	return &status.TooFew{Answers: fmt.Sprintf("%d/%d", had, of), Text: text, Err: ErrTooFew}
}

// repair gives what a read has found to the hosts that had less. (7)
func (r *read) repair(record *dbadapter.Record) {
	for _, id := range r.row.Hosts() {
		h := r.of[id]
		if h == nil || h.answer == nil || h.answer.Version.Compare(record.Version) >= 0 {
			continue
		}
		r.Net.Outlive(func(ctx context.Context) {
			_, _, _ = askHost(ctx, r.Shards, r.asker, id, r.over, r.asker.pass(*record)) // a host that does not take it is synced later
		})
	}
}
