package syncing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
)

// Driver is the network and the clock of one sync.
type Driver interface {
	// Converse holds a conversation with the peer. heard takes its report after each message.
	Converse(ctx context.Context, a Ask, heard func(reconcile.Report)) (reconcile.Report, error)
	// Backoff is that of a conversation, and Elapsed the time since a fixed moment.
	Backoff() Backoff
	Elapsed() time.Duration
	// Sleep waits. Its error says that ctx is over.
	Sleep(ctx context.Context, d time.Duration) error
	// Go runs f at the same time, and Wait waits for all that Go has run.
	Go(ctx context.Context, f func(ctx context.Context))
	Wait(ctx context.Context)
}

// Run holds the conversations of the plan, as many at once as there are. It returns the
// report about the data, of the last conversation or of all parts, and how the sync ended.
// The report is meaningful beside an error.
//
// progress, if not nil, takes the report of the whole sync so far, after each message about
// the data, one call at a time.
func (p *Plan) Run(ctx context.Context, d Driver, progress func(reconcile.Report)) (reconcile.Report, error) {
	var telling sync.Mutex
	p.run(ctx, d, func(a Ask, r reconcile.Report) {
		if progress != nil && !a.Control {
			telling.Lock()
			defer telling.Unlock()
			progress(p.progress(a, r))
		}
	})
	d.Wait(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result()
}

// run begins the conversations that are to be held now.
func (p *Plan) run(ctx context.Context, d Driver, tell func(Ask, reconcile.Report)) {
	for a, more := p.next(); more; a, more = p.next() {
		d.Go(ctx, func(ctx context.Context) {
			report, err := hold(ctx, d, a, func(r reconcile.Report) { tell(a, r) })
			p.ended(a, report, err)
			p.run(ctx, d, tell)
		})
	}
}

// hold holds a conversation with a peer, which may be busy first.
func hold(ctx context.Context, d Driver, a Ask, heard func(reconcile.Report)) (reconcile.Report, error) {
	begun, backoff := d.Elapsed(), d.Backoff()
	var busy error // what it has waited for
	for {
		report, err := d.Converse(ctx, a, heard)
		switch {
		case err == nil:
			return report, Proved(a, &report)
		case report.Keys > 0:
			return report, err // a second try would list them again
		}
		if wait, again := backoff.Again(d.Elapsed()-begun, err); again {
			if busy = err; d.Sleep(ctx, wait) == nil {
				continue
			}
		}
		if ctx.Err() != nil && busy != nil {
			err = busy
		}
		return report, err
	}
}

// All syncs several parts with one peer, one after the other. sum is the report of those that
// were synced. A part that the peer denies is left out: the peer does not hold it, or is no
// member. What would fail for each part ends it. sync passes progress on to Run, which may be
// nil.
func All[P any](ctx context.Context, parts []P, progress func(reconcile.Report), sync func(p P, progress func(reconcile.Report)) (reconcile.Report, error)) (sum reconcile.Report, synced, denied int, failed error) {
	for _, p := range parts {
		before, of := sum, progress
		if progress != nil && synced > 0 {
			of = func(r reconcile.Report) { progress(added(before, r)) }
		}
		report, err := sync(p, of)
		if errors.Is(err, reconcile.ErrDenied) {
			denied++
			continue
		}
		if synced++; synced > 1 {
			report = added(before, report)
		}
		sum, failed = report, errors.Join(failed, err)
		if errors.Is(err, reconcile.ErrUnreachable) || errors.Is(err, reconcile.ErrPaused) || ctx.Err() != nil {
			break
		}
	}
	return sum, synced, denied, failed
}

// added is the report of some parts with that of a further one.
func added(of, further reconcile.Report) reconcile.Report {
	sum := Sum(of, further)
	sum.Verified = of.Verified && further.Verified
	sum.Parts, sum.PartsDone = of.Parts+further.Parts, of.PartsDone+further.PartsDone
	sum.Estimate = of.Estimate + further.Estimate
	return sum
}
