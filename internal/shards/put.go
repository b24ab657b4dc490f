package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// PutOptions say how records are written.
type PutOptions struct {
	Level quorum.Level
	// Made, if not nil, is called with the versions of each attempt, before a host hears of them.
	Made func(versions []dbadapter.Version)
	// made is called with the records of each attempt.
	made func(records []dbadapter.Record)
}

// Written is how a write has ended.
type Written struct {
	// Versions are those of the records that were made last; none: none was made.
	Versions []dbadapter.Version
	// Hosts hold them durably.
	Hosts []node.ID
}

// Longest pauses before a record is made anew: the first one, which doubles up to the last.
const (
	remakePause     = 20 * time.Millisecond
	remakePauseMost = time.Second
)

// Put writes drafts, whose keys are of one shard: one record, or a batch, which each host commits
// in one transaction. Drafts that have conditions are compared and committed by one host first.
//
// Errors, beside those of a write here: ErrConflict, where a condition does not hold;
// ErrUnconfirmed, beside which the version is that of what hosts hold, or may; ErrTooFew and
// reconcile.ErrUnreachable, where nothing is written; node.ErrDeclined.
func (s *Shards) Put(ctx context.Context, drafts []node.Draft, o PutOptions) (Written, error) {
	if s.NS.Bodied() {
		return s.putValues(ctx, drafts, o)
	}
	return s.put(ctx, drafts, o, nil)
}

// put writes records as hosts hold them. before, if not nil, is called once the conditions hold, and may
// still change the drafts.
func (s *Shards) put(ctx context.Context, drafts []node.Draft, o PutOptions, before func() error) (Written, error) {
	ctx, cut, over := s.begin(ctx)
	defer cut()
	w := &write{Shards: s, drafts: drafts, PutOptions: o, over: over, shard: s.NS.Home(drafts[0].Record.Key), seen: make([][]*dbadapter.Record, len(drafts))}
	for i := range drafts {
		if s.NS.Home(drafts[i].Record.Key) != w.shard {
			return Written{}, fmt.Errorf("%w: %q and %q are of different shards, and a batch is of one: write them one by one, or place keys by prefix", node.ErrInvalid, drafts[0].Record.Key, drafts[i].Record.Key)
		}
		w.conditional = w.conditional || drafts[i].If != nil
	}
	if w.conditional {
		if err := w.find(ctx); err != nil {
			return Written{}, err
		}
	}
	if before != nil {
		if err := before(); err != nil {
			return Written{}, err
		}
	}
	for pause := remakePause; ; pause = min(2*pause, remakePauseMost) {
		written, err := anew(ctx, s, w.shard, w.over, func(a *Asker) (Written, error) { return w.under(ctx, a) })
		switch {
		case errors.Is(err, errAgain) && s.Net.Now() < w.over && s.Net.Sleep(ctx, time.Duration(s.Random(int64(pause)))) == nil:
			w.records = nil // (6)
		case errors.Is(err, errAgain):
			return written, fmt.Errorf("%w: other writes of the key overtook it at each attempt", overtaken(w.sent))
		case err != nil && w.sent && !errors.Is(err, ErrUnconfirmed) && !errors.Is(err, dbadapter.ErrConflict):
			return written, fmt.Errorf("%w: hosts hold the record, or may: read the key to see what stands: %w", ErrUnconfirmed, err)
		default:
			return written, err
		}
	}
}

// overtaken is why records that were refused again and again are not written, or may be.
func overtaken(sent bool) error {
	if sent {
		return ErrUnconfirmed
	}
	return reconcile.ErrBusy
}

// errAgain: a host has refused the records; they are made anew. (6)
var errAgain = errors.New("a host holds what the record has not seen")

// write is one write, over all rows and all its attempts.
type write struct {
	*Shards
	PutOptions
	drafts      []node.Draft
	over        time.Duration
	shard       placement.Shard
	seen        [][]*dbadapter.Record // what each record is to be later than, and replaces
	conditional bool
	passed      bool // hosts have the records, which stay as they are; something later is as good
	accepted    bool // of a conditional write: a host has compared, and has committed
	on          []*dbadapter.Version
	records     []dbadapter.Record // nil: to be made
	sent        bool               // a record of this write may be at a host
}

// under carries the write out under one row.
func (w *write) under(ctx context.Context, a *Asker) (Written, error) {
	if err := mayReach(w.Level, a.Row()); err != nil {
		return Written{}, err
	}
	if w.records == nil {
		records, err := a.Make(w.drafts, w.seen)
		if err != nil {
			return Written{}, err
		}
		w.records = records
		if w.Made != nil {
			w.Made(w.written(nil).Versions)
		}
		if w.made != nil {
			w.made(w.records)
		}
	}
	if w.conditional && !w.accepted {
		if err := w.compare(ctx, a); err != nil {
			return w.written(nil), err
		}
	}
	return w.offer(ctx, a)
}

// mayReach says why a level cannot be reached by the hosts of a row.
func mayReach(level quorum.Level, row *quorum.Row) error {
	if n := int(level); n > len(row.New) {
		return fmt.Errorf("%w: %d hosts are to hold the record, and its shard has %d: ask for fewer, or invite more members", node.ErrInvalid, n, len(row.New))
	}
	return nil
}

func (w *write) written(hosts []node.ID) Written {
	out := Written{Hosts: hosts}
	for i := range w.records {
		out.Versions = append(out.Versions, w.records[i].Version)
	}
	return out
}

// offer sends the records to all hosts of the row, until enough hold them or one refuses.
func (w *write) offer(ctx context.Context, a *Asker) (Written, error) {
	p := w.spread(a, w.over, wire.AskHold{Records: w.records, Batch: len(w.records) > 1, Passed: w.passed})
	defer p.ended.Store(true)
	for _, id := range w.nearest(a.Row().Hosts()) {
		p.ask(id, func() {})
	}
	for {
		refused := w.refused(p)
		possible, current := w.possible(p), a.Current()
		if refused != nil || !possible || !current { // what is in flight may be held later, whatever is said now
			w.sent = w.sent || len(p.sent) > 0 || p.flying.Load() > 0
		}
		switch {
		case w.reaches(w.Level, a.Row(), func(id node.ID) bool { return w.why(p, id) == nil }, p.whole): // it is acknowledged (5)
			for i := range w.records {
				if !w.passed {
					w.wrote(&w.records[i])
				}
			}
			return w.end(p), nil
		case refused != nil:
			return w.end(p), refused
		case !possible:
			return w.end(p), w.short(p, node.ErrDeclined)
		case !current:
			return w.end(p), errRow
		}
		timely := p.next(ctx)
		if w.sent = w.sent || len(p.sent) > 0; timely {
			continue
		}
		if w.sent = w.sent || p.flying.Load() > 0; ctx.Err() != nil && !w.sent {
			return w.end(p), context.Cause(ctx)
		}
		return w.end(p), w.short(p, ErrUnconfirmed)
	}
}

// why is why a host does not hold the records; nil: it holds them, or of those that are passed on something later.
func (w *write) why(p *spread, id node.ID) (why error) {
	h := p.answers[id]
	if h == nil {
		return cmp.Or(p.why[id], errSilent)
	}
	for i := range h.Outcomes {
		switch one := &h.Outcomes[i]; {
		case one.Held, w.passed && one.Other != nil && one.Other.Version.Compare(w.records[i].Version) >= 0:
		case one.Other != nil:
			return errAgain
		default:
			why = cmp.Or(why, one.Declined)
		}
	}
	return why
}

// refused is why the records are to be made anew: a host holds something later or unseen, or has
// promised past their date. A conditional record is never made anew, nor is one that is passed on. (6)
func (w *write) refused(p *spread) error {
	again := false
	for _, id := range p.asker.Row().Hosts() {
		h, why := p.answers[id], w.why(p, id)
		if h == nil || w.passed {
			continue
		}
		again = again || errors.Is(why, errAgain) || errors.Is(why, node.ErrLate)
		for i := range h.Outcomes {
			other := h.Outcomes[i].Other
			switch {
			case other == nil:
			case !w.conditional:
				w.seen[i] = append(w.seen[i], other)
			case other.Version.Compare(w.records[i].Version) > 0:
				return fmt.Errorf("%w: %w: the first host has taken the record, and another one holds a later one, %s: what lost is listed as a conflict", dbadapter.ErrConflict, ErrUnconfirmed, other.Version)
			}
		}
	}
	if again && !w.conditional {
		return errAgain
	}
	return nil
}

// possible reports whether the hosts that have not declined are enough.
func (w *write) possible(p *spread) bool {
	may := func(id node.ID) bool {
		why := w.why(p, id)
		return why == nil || p.answers[id] == nil && !final(why)
	}
	return w.reaches(w.Level, p.asker.Row(), may, func(id node.ID) bool { return w.why(p, id) != nil || p.whole(id) })
}

// reaches reports whether hosts are as many as a level takes.
func (s *Shards) reaches(level quorum.Level, row *quorum.Row, held, whole func(node.ID) bool) bool {
	switch level {
	case quorum.Quorum:
		return row.Enough(held, whole)
	case quorum.All:
		return s.all(row, held) && row.Enough(held, whole)
	case quorum.One:
		return sideOf(row.Hosts(), held).Had >= 1
	}
	return sideOf(row.New, held).Had >= int(level)
}

func (w *write) end(p *spread) Written {
	return w.written(slices.DeleteFunc(p.asker.Row().Hosts(), func(id node.ID) bool { return w.why(p, id) != nil }))
}

// short is the error of a write that too few hosts have confirmed.
func (w *write) short(p *spread, err error) error {
	why := map[node.ID]error{}
	for _, id := range p.asker.Row().Hosts() {
		if reason := w.why(p, id); reason != nil {
			why[id] = reason
		}
	}
	text := w.count(p)
	if len(why) > 0 {
		text += " (" + words(why) + ")"
	}
	for _, id := range p.asker.Row().Hosts() {
		if errors.Is(why[id], node.ErrDeclined) && errors.Is(err, node.ErrDeclined) {
			return fmt.Errorf("%w: %s", why[id], text)
		}
	}
	if !w.sent {
		return fmt.Errorf("%w: nothing is written: %s", ErrTooFew, text)
	}
	return fmt.Errorf("%w: %s; it may still win; read the key, or write it again", ErrUnconfirmed, text)
}

// count says at how many hosts the records are written, for a person.
func (w *write) count(p *spread) string {
	row, held := p.asker.Row(), func(id node.ID) bool { return w.why(p, id) == nil }
	had, need := sideOf(row.Hosts(), held), fmt.Sprint(int(w.Level))
	switch {
	case w.Level == quorum.All:
		need = "all"
	case w.Level <= 0:
		old := sideOf(row.Old, func(id node.ID) bool { return held(id) && p.whole(id) })
		if !row.AtRest() {
			return count(row, "have written it", old, sideOf(row.New, held))
		}
		had, need = old, fmt.Sprint(old.Need)
	}
	return fmt.Sprintf("written at %d of %d hosts; %s are needed", had.Had, had.Hosts, need)
}
