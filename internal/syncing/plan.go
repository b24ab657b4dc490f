package syncing

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Plan decides the conversations of one sync, in their order. The list of members
// is first where the two sides do not have the same. A large sync goes in parts,
// some of them at once. Run holds them.
type Plan struct {
	config PlanConfig
	ask    Ask // what the caller wants

	mu   sync.Mutex // guards what follows
	todo []Ask      // the next first
	tally
	// rounds counts the conversations that found that the lists differ.
	rounds int
	// introduced: this node has shown the peer its list already.
	introduced bool
	// again: what was declined for the floor was looked at once more already.
	again bool
}

// PlanConfig is what a plan asks about its namespace.
type PlanConfig struct {
	// PartSize is how many differences a part of a large sync has, about.
	PartSize int64
	// News: the control namespace has changed since it was last found equal to the peer's.
	News bool
	// Removed takes the statements by which a peer says that this node is no member.
	Removed func(statements [][]byte) error
	// Denied says what a peer's denial means, and what to do about it.
	Denied func(error) error
}

// NewPlan begins a sync. The greeting tells where the lists differ, at no cost where
// they do not. The greeting covers the list of members alone, and not the addresses
// and pledges. So a sync of everything takes the control namespace first where that
// has news.
func NewPlan(a Ask, c PlanConfig) *Plan {
	// A dry run changes nothing, so that it cannot make the lists equal first.
	a.ListsMayDiffer = a.DryRun
	p := &Plan{config: c, ask: a, todo: []Ask{a}} // not shared yet
	if c.News && !a.Control && !a.DryRun && a.Direction == wire.Both && len(a.Prefix) == 0 {
		p.before(Ask{Control: true})
	}
	return p
}

// before puts conversations before those that are still to come.
func (p *Plan) before(asks ...Ask) {
	if p.failed == nil {
		p.todo = append(slices.Clone(asks), p.todo...)
	}
}

// next is a conversation to be held now, beside those that are held already.
func (p *Plan) next() (Ask, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.todo) == 0 || p.ask.Keys.full() {
		return Ask{}, false
	}
	a := p.todo[0]
	if most := partsAtOnce; len(p.running) >= most || len(p.running) > 0 && (!a.Part() || p.whole()) {
		return Ask{}, false // all but parts are held alone
	}
	p.todo = p.todo[1:]
	p.begun(a)
	return a, true
}

// ended takes how a conversation went, and plans what follows from it.
func (p *Plan) ended(a Ask, r reconcile.Report, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over(a, r, err)
	removed, shown := errors.AsType[*reconcile.RemovedError](err)
	switch {
	case err == nil && r.Split != nil:
		p.divide(a, r.Split)
	case err == nil:
	case a.Part() && (errors.Is(err, ErrRejected) || errors.Is(err, reconcile.ErrNotVerified)):
		// The others go on; the sync of everything that follows them judges.
	case !p.again && errors.Is(err, ErrRejected) && r.DeclinedHere[wire.ReasonFloor]+r.Collected+r.SetAside > 0:
		// What one side declined for its floor has left the other, unless the floor is
		// not proven there yet.
		p.again = true
		p.before(a)
	case p.ask.DryRun && errors.Is(err, reconcile.ErrDenied):
		p.fail(p.config.Denied(err))
	case p.ask.DryRun:
		p.fail(err)
	case shown:
		if err = p.config.Removed(removed.Statements); err != nil {
			p.fail(err)
			return
		}
		p.introduce(a, reconcile.ErrDenied)
	case errors.Is(err, reconcile.ErrDenied):
		p.introduce(a, err)
	case a.Control && (errors.Is(err, ErrRejected) || errors.Is(err, reconcile.ErrNotVerified)):
		// What could be synced of the list is; the data go on under what there is.
	case errors.Is(err, reconcile.ErrListsDiffer) && !a.ListsMayDiffer && !a.Control:
		p.rounds++
		a.ListsMayDiffer = p.rounds >= maxRounds-1
		p.before(Ask{Control: true}, a)
	default:
		p.fail(err)
	}
}

// introduce answers a peer that does not know this node: it may not have heard yet
// that this node is a member. This node shows it the list, once.
func (p *Plan) introduce(a Ask, err error) {
	if p.introduced {
		p.fail(p.config.Denied(err))
		return
	}
	p.introduced = true
	p.before(Ask{Control: true, Direction: wire.Push}, a)
}

func (p *Plan) fail(err error) { p.todo, p.failed = nil, cmp.Or(p.failed, err) }

// tally counts the conversations of a plan, and adds up what they did. It is for
// a sync that goes in parts.
type tally struct {
	// running are those that are held, by their ranges, with their reports so far.
	running map[wire.Span]reconcile.Report
	// report is that of the last conversation about the data. Of a sync in several
	// conversations it is their sum. The last of them ended with err.
	report reconcile.Report
	err    error
	// failed ended the plan; part is how the first part ended that was not proved.
	failed, part error
	unproved     bool // a part, in this round
	// several: the report is a sum.
	several bool
	// parts are those known so far, done those that are over. Up to now the sync of
	// everything has led to parts splits times. At the last of these, moved records
	// had travelled.
	parts, done, splits int
	moved               int
}

// begun notes a conversation.
func (t *tally) begun(a Ask) {
	if t.running == nil {
		t.running = map[wire.Span]reconcile.Report{}
	}
	t.running[a.Span] = reconcile.Report{}
}

// whole reports whether a conversation is held that is not a part.
func (t *tally) whole() bool {
	_, whole := t.running[wire.Span{}]
	return whole
}

// over adds a conversation that has ended.
func (p *Plan) over(a Ask, r reconcile.Report, err error) {
	delete(p.running, a.Span)
	if a.Control && !p.ask.Control {
		return
	}
	if a.Part() {
		p.done++
		if r.Split == nil {
			p.part, p.unproved = cmp.Or(p.part, err), p.unproved || !r.Verified
		}
	} else {
		p.err = err
	}
	switch {
	case !p.several:
		p.report = r
		if r.Split != nil {
			p.report.ForecastBytes = r.WireBytesSent + r.WireBytesReceived
		}
	default:
		p.report = Sum(p.report, r)
		p.report.Verified = r.Verified
		if !a.Part() && r.Split == nil { // it has met again what was declined
			p.report.Rejected, p.report.DeclinedHere, p.report.DeclinedThere = r.Rejected, r.DeclinedHere, r.DeclinedThere
			p.report.DeclinedCollectable = r.DeclinedCollectable
		}
	}
	p.several = p.several || r.Split != nil
}

// divide plans the parts of a sync, or of a part of it. What follows them is a sync
// of everything, which proves both sides equal. A dry run would prove nothing more,
// and one direction leaves differences that lead to parts again.
func (p *Plan) divide(a Ask, split *reconcile.Split) {
	moved := p.report.Applied + p.report.Sent
	var asks []Ask
	for _, span := range split.Spans(p.config.PartSize) {
		part := a
		part.Span = span
		asks = append(asks, part)
	}
	p.parts += len(asks)
	if !a.Part() {
		// Once all that can travel has, what is declined may be enough to lead to parts.
		declined := split.Estimate <= int64(p.report.Rejected)*5/4
		if p.splits++; p.splits > maxSplits {
			p.err = reconcile.ErrBusy // more is written than can be synced
			return
		} else if p.splits > 1 && (declined || moved == p.moved) {
			p.report.Verified, p.report.Split = false, nil
			p.err = Proved(a, &p.report)
			return
		}
		p.moved, p.part, p.unproved = moved, nil, false
		p.report.Rejected, p.report.DeclinedHere, p.report.DeclinedThere, p.report.DeclinedCollectable = 0, reconcile.Reasons{}, reconcile.Reasons{}, 0
		if a.Direction == wire.Both && !a.DryRun {
			asks = append(asks, a)
		}
	}
	p.before(asks...)
}

// result is the report so far, and how the sync has ended.
func (p *Plan) result() (reconcile.Report, error) {
	r := p.report
	if !p.several {
		return r, cmp.Or(p.failed, p.err)
	}
	if p.splits > 0 {
		r.Method = wire.MethodParts
		if p.ask.DryRun || p.ask.Direction != wire.Both {
			r.Verified = !p.unproved && p.failed == nil && len(p.todo) == 0
		}
	}
	err := cmp.Or(p.failed, p.err)
	if err == nil && (p.ask.DryRun || p.ask.Direction != wire.Both) {
		err = p.part
	}
	return p.counted(r), err
}

// progress notes how far a conversation is that is held, and returns the report of the
// whole sync so far.
func (p *Plan) progress(a Ask, r reconcile.Report) reconcile.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.several {
		return r
	}
	p.running[a.Span] = r
	total := p.report
	for _, span := range slices.SortedFunc(maps.Keys(p.running), func(a, b wire.Span) int { return cmp.Compare(a.From, b.From) }) {
		total = Sum(total, p.running[span])
	}
	if p.splits > 0 {
		total.Method = wire.MethodParts
	}
	return p.counted(total)
}

// counted says how many parts are over, and what the whole is expected to cost. A
// part ahead counts as much as one that is over.
func (p *Plan) counted(r reconcile.Report) reconcile.Report {
	r.Parts, r.PartsDone, r.Split = p.parts, p.done, nil
	if p.splits > 0 && len(p.todo) > 0 {
		forecast(&r)
	}
	return r
}
