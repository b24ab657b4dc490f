package shards

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	// Old and New count the hosts that hold them durably, Hosts names them.
	Old, New Side
	Hosts    []node.ID
	// Requests is how many questions went to other nodes.
	Requests int
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
			return written, fmt.Errorf("%w: other writes of the key overtook it at each attempt", cmpErr(w.sent, ErrUnconfirmed, reconcile.ErrBusy))
		case err != nil && w.sent && !errors.Is(err, ErrUnconfirmed) && !errors.Is(err, dbadapter.ErrConflict):
			return written, fmt.Errorf("%w: hosts hold the record, or may: read the key to see what stands: %w", ErrUnconfirmed, err)
		default:
			return written, err
		}
	}
}

func cmpErr(first bool, a, b error) error {
	if first {
		return a
	}
	return b
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
	requests    int
}

// under carries the write out under one row.
func (w *write) under(ctx context.Context, a *Asker) (Written, error) {
	if err := w.mayReach(a.Row()); err != nil {
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
func (w *write) mayReach(row *quorum.Row) error {
	if n := int(w.Level); n > len(row.New) {
		return fmt.Errorf("%w: %d hosts are to hold the record, and its shard has %d: ask for fewer, or invite more members", node.ErrInvalid, n, len(row.New))
	}
	return nil
}

func (w *write) written(hosts []node.ID) Written {
	out := Written{Hosts: hosts, Requests: w.requests}
	for i := range w.records {
		out.Versions = append(out.Versions, w.records[i].Version)
	}
	return out
}

// offered is what the hosts have come to.
type offered struct {
	held, whole map[node.ID]bool
	ended       map[node.ID]bool // the host has declined the records, or denies this node
	why         map[node.ID]error
	// open are the questions whose end is not noted yet: by them a host may hold the records later.
	open atomic.Int32
	over atomic.Bool // no host is asked again
}

// offer sends the records to all hosts of the row, until enough hold them or one refuses.
func (w *write) offer(ctx context.Context, a *Asker) (Written, error) {
	row, box := a.Row(), w.Net.Mailbox()
	o := offered{held: map[node.ID]bool{}, whole: map[node.ID]bool{}, ended: map[node.ID]bool{}, why: map[node.ID]error{}}
	q := a.holds(&wire.AskHold{Records: w.records, Batch: len(w.records) > 1, Passed: w.passed})
	defer o.over.Store(true)
	for _, id := range w.nearest(row.Hosts()) {
		if id != w.NS.Self() {
			w.requests++
		}
		w.Net.Outlive(func(ctx context.Context) { w.offerTo(ctx, a, id, q, box, &o) }) // a host that takes the record later holds it
	}
	var refused error
	for {
		switch {
		case w.enough(row, &o):
			for i := range w.records {
				if !w.passed {
					w.wrote(&w.records[i])
				}
			}
			return w.end(row, &o), nil
		case refused != nil:
			return w.end(row, &o), refused
		case !w.possible(row, &o):
			return w.end(row, &o), w.short(row, &o, node.ErrDeclined)
		case !a.Current():
			return w.end(row, &o), errRow
		}
		note := box.Take(ctx, w.over)
		if note == nil || w.Net.Now() >= w.over { // this process may have been stopped for long: then it counts no more (11)
			o.over.Store(true)
			if w.sent = w.sent || o.open.Load() > 0; ctx.Err() != nil && !w.sent {
				return w.end(row, &o), context.Cause(ctx)
			}
			return w.end(row, &o), w.short(row, &o, ErrUnconfirmed)
		}
		note()
		refused = w.refused(&o)
	}
}

// offerTo asks one host until it has said what it does with the records.
func (w *write) offerTo(ctx context.Context, a *Asker, id node.ID, q question[HostHeld], box Mailbox, o *offered) {
	for pause := 2 * pauseFirst; ; pause = min(2*pause, pauseMost) {
		o.open.Add(1)
		if o.over.Load() {
			o.open.Add(-1)
			return
		}
		h, sent, err := askHost(ctx, w.Shards, a, id, w.over, q)
		final := errors.Is(err, errApart) || errors.Is(err, node.ErrDenied)
		box.Put(func() {
			o.open.Add(-1)
			w.sent = w.sent || sent
			o.why[id] = err
			if err == nil {
				w.note(id, &h, o)
			}
			o.ended[id] = o.ended[id] || final
		})
		if err == nil || errors.Is(err, errRow) || final || o.over.Load() || w.Net.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// note takes up what a host has done with the records.
func (w *write) note(id node.ID, h *HostHeld, o *offered) {
	held := true
	for i := range h.Outcomes {
		one := &h.Outcomes[i]
		if w.passed && one.Other != nil && one.Other.Version.Compare(w.records[i].Version) >= 0 {
			continue
		} else if one.Other != nil {
			w.seen[i] = append(w.seen[i], one.Other)
			o.why[id] = errAgain
		} else if one.Declined != nil && o.why[id] == nil {
			o.why[id] = one.Declined
		}
		held = held && one.Held
	}
	if o.held[id], o.whole[id] = held, h.Whole; held {
		delete(o.why, id)
		return
	}
	o.ended[id] = true
}

// refused is why the records are to be made anew: a host holds something later or unseen, or has
// promised past their date. A conditional record is never made anew, nor is one that is passed on. (6)
func (w *write) refused(o *offered) error {
	for _, why := range o.why {
		switch {
		case !errors.Is(why, errAgain) && !errors.Is(why, node.ErrLate):
		case w.passed:
		case !w.conditional:
			return errAgain
		case errors.Is(why, errAgain):
			for i := range w.seen {
				for _, other := range w.seen[i] {
					if other.Version.Compare(w.records[i].Version) > 0 {
						return fmt.Errorf("%w: %w: the first host has taken the record, and another one holds a later one, %s: what lost is listed as a conflict", dbadapter.ErrConflict, ErrUnconfirmed, other.Version)
					}
				}
			}
		}
	}
	return nil
}

// enough reports whether the write is acknowledged. (5)
func (w *write) enough(row *quorum.Row, o *offered) bool {
	return w.reaches(row, func(id node.ID) bool { return o.held[id] }, func(id node.ID) bool { return o.whole[id] })
}

// possible reports whether the hosts that have not declined are enough.
func (w *write) possible(row *quorum.Row, o *offered) bool {
	may := func(id node.ID) bool { return !o.ended[id] }
	return w.reaches(row, may, func(id node.ID) bool { return !o.held[id] || o.whole[id] })
}

func (w *write) reaches(row *quorum.Row, held, whole func(node.ID) bool) bool {
	switch {
	case w.Level == quorum.Quorum:
		return row.Enough(held, whole)
	case w.Level == quorum.All:
		return w.all(row, held) && row.Enough(held, whole)
	case w.Level == quorum.One:
		return sideOf(row.Hosts(), held).Had >= 1
	}
	return sideOf(row.New, held).Had >= int(w.Level)
}

func (w *write) end(row *quorum.Row, o *offered) Written {
	var hosts []node.ID
	for _, id := range row.Hosts() {
		if o.held[id] {
			hosts = append(hosts, id)
		}
	}
	out := w.written(hosts)
	held := func(id node.ID) bool { return o.held[id] }
	out.Old, out.New = sideOf(row.Old, func(id node.ID) bool { return o.held[id] && o.whole[id] }), sideOf(row.New, held)
	return out
}

// short is the error of a write that too few hosts have confirmed.
func (w *write) short(row *quorum.Row, o *offered, err error) error {
	for _, id := range row.Hosts() {
		if why, known := o.why[id]; !o.held[id] && (!known || why == nil) {
			o.why[id] = errSilent
		}
	}
	text := w.count(row, o)
	if why := words(o.why); why != "" {
		text += " (" + why + ")"
	}
	for _, id := range row.Hosts() {
		if why := o.why[id]; errors.Is(why, node.ErrDeclined) && errors.Is(err, node.ErrDeclined) {
			return fmt.Errorf("%w: %s", why, text)
		}
	}
	if !w.sent {
		return fmt.Errorf("%w: nothing is written: %s", ErrTooFew, text)
	}
	return fmt.Errorf("%w: %s; it may still win; read the key, or write it again", ErrUnconfirmed, text)
}

// count says at how many hosts the records are written, for a person.
func (w *write) count(row *quorum.Row, o *offered) string {
	end, all := w.end(row, o), len(row.Hosts())
	switch need := int(w.Level); {
	case w.Level == quorum.All:
		return fmt.Sprintf("written at %d of %d hosts; all are needed", len(end.Hosts), all)
	case need > 0:
		return fmt.Sprintf("written at %d of %d hosts; %d are needed", len(end.Hosts), all, need)
	}
	if row.AtRest() {
		return fmt.Sprintf("written at %d of %d hosts; %d are needed", end.Old.Had, end.Old.Hosts, end.Old.Need)
	}
	return count(row, "have written it", end.Old, end.New)
}
