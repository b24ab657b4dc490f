package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
)

const (
	// audits is how often an audit begins anew because too much was written meanwhile.
	audits = 3
	// auditPause bounds what a peer that spoils its cells makes this node compute.
	// After an audit that a sync led to and that found nothing, no further one is
	// due for auditPause times its duration. So such a peer makes this node audit
	// for a fifth of the time.
	auditPause = 4
)

// suspicion says that a sync has met what an audit should look at.
type suspicion struct {
	mu    sync.Mutex // guards what follows
	found bool
	// not before this time is the next audit due.
	rest time.Duration
}

// AuditDue reports whether a sync has found that what the namespace keeps of its
// records may be wrong: its driver calls Audit soon.
func (ns *Namespace) AuditDue() bool {
	s := &ns.suspected
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found && ns.node.elapsed() >= s.rest
}

// suspect notes what a sync of the part has repaired, or left for later, if what is
// kept may be the cause. That is the cells of the live sketch, or sums of ranges.
// Only the records tell which of the two sketches was wrong, so that both sides
// look. They do so, too, if one of them said what cannot be. No sync makes anything
// of a number of records that is kept far too large.
func (c *Conversation) suspect(r *reconcile.Repair, err error) {
	cells := r.Sketch && c.ask.Whole() // other cells are made for the one sync
	sums := r.Digests+r.Left > 0 && len(c.ask.Prefix) == 0
	if !cells && !sums && !errors.Is(err, reconcile.ErrNotVerified) && !errors.Is(err, reconcile.ErrProtocol) {
		return
	}
	s := &c.part.ns.suspected
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = true
}

// Audit computes by a scan what the namespace keeps up to date with each commit,
// and puts right what has drifted. It does so in the data, and in the control
// namespace. Writes go on meanwhile; ErrBusy says that there were too many. tick,
// if not nil, is called every 64 records, and ends the audit with its error.
func (ns *Namespace) Audit(ctx context.Context, tick func() error) (data, control replica.Drift, err error) {
	s := &ns.suspected
	s.mu.Lock()
	asked, began := s.found, ns.node.elapsed()
	s.found = false // what a sync finds from here on may be what this audit does not see
	s.mu.Unlock()
	for _, set := range ns.Sets() {
		var drift replica.Drift
		if drift, err = set.audit(ctx, tick); err != nil {
			break
		}
		data = data.Plus(drift)
	}
	if err == nil {
		control, err = ns.Control.audit(ctx, tick)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = s.found || asked && err != nil
	if now := ns.node.elapsed(); asked && !data.Any() && !control.Any() {
		s.rest = now + auditPause*(now-began)
	}
	return data, control, err
}

func (p *Part) audit(ctx context.Context, tick func() error) (d replica.Drift, err error) {
	for range audits {
		if d, err = p.Live.Audit(ctx, p.Store, tick); !errors.Is(err, reconcile.ErrBusy) {
			break
		}
	}
	return d, err
}

// elapsed is the time since a fixed moment; 0 for ever where the driver does not tell.
func (n *Node) elapsed() time.Duration {
	if n.Elapsed == nil {
		return 0
	}
	return n.Elapsed()
}
