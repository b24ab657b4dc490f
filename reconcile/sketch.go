package reconcile

import (
	"crypto/subtle"

	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step sketch: the initiator says what it holds, in as many cells as
// usually suffice, and the responder says what it holds.

// hello opens the sync.
func (a *initiator) hello() error {
	a.opts.enter(StepSketch)
	first := a.opts.FirstCells
	if first == 0 {
		first = FirstCells
	}
	first = min(max(first, MinFirstCells), MaxFirstCells)
	m := &wire.Hello{
		Version:   wire.Version,
		Mapping:   rateless.MappingVersion,
		Namespace: a.opts.Keys.ID,
		Nonce:     a.opts.Nonce,
		Proof:     a.opts.proof("initiator", a.opts.Self, a.opts.Remote, a.opts.Nonce),
		Direction: a.opts.Direction,
		Method:    a.opts.Method,
		Dry:       a.opts.Dry,
		Prefix:    a.opts.Prefix,
		Records:   a.replica.Records(),
		Digest:    a.replica.Digest(),
	}
	// An empty side is sent everything, and needs no cells for that.
	if m.Records > 0 && (m.Method != wire.All || m.Dry) {
		m.Estimator = a.replica.Estimator()
		cells, err := a.replica.Cells(0, first)
		if err != nil {
			return err
		}
		m.Cells = cells
		a.cells = first
	}
	return a.link.send(m)
}

// welcome checks that a member answers.
func (a *initiator) welcome() error {
	a.opts.enter(StepPeel) // which the responder does now
	m, err := a.link.receive()
	if err != nil {
		return err
	}
	w, ok := m.(*wire.Welcome)
	if !ok {
		return unexpected(m)
	}
	want := a.opts.proof("responder", a.opts.Self, a.opts.Remote, a.opts.Nonce, w.Nonce)
	if subtle.ConstantTimeCompare(want[:], w.Proof[:]) != 1 {
		return ErrDenied
	}
	a.there = w
	return conceivable(w.Records, w.Digest)
}

// cellsAsked answers requests for further cells.
func (a *initiator) cellsAsked(m *wire.More) error {
	if a.link.report.Rounds > maxRounds {
		return violation("cells asked for %d times", a.link.report.Rounds)
	}
	if m.Cells == 0 || m.Cells > burst || a.cells == 0 || uint64(a.cells)+m.Cells > MaxCells {
		return violation("%d more cells asked for after %d", m.Cells, a.cells)
	}
	a.link.report.Rounds++
	a.opts.enter(StepSketch)
	for end := a.cells + int(m.Cells); a.cells < end; {
		to := min(end, a.cells+wire.MaxCells)
		cells, err := a.replica.Cells(a.cells, to)
		if err != nil {
			return err
		}
		if err := a.link.send(&wire.Cells{Cells: cells}); err != nil {
			return err
		}
		a.cells = to
	}
	a.opts.enter(StepPeel)
	return nil
}

// greet reads the Hello and answers it.
func (b *responder) greet() error {
	b.opts.enter(StepSketch)
	m, err := b.link.receive()
	if err != nil {
		return err
	}
	h, ok := m.(*wire.Hello)
	if !ok {
		return unexpected(m)
	}
	if err := CheckVersion(h); err != nil {
		return err
	}
	want := b.opts.proof("initiator", b.opts.Remote, b.opts.Self, h.Nonce)
	if h.Namespace != b.opts.Keys.ID || subtle.ConstantTimeCompare(want[:], h.Proof[:]) != 1 {
		return ErrDenied
	}
	if len(h.Cells) > MaxFirstCells {
		return violation("a Hello with %d cells; at most %d are allowed", len(h.Cells), MaxFirstCells)
	}
	if err := conceivable(h.Records, h.Digest); err != nil {
		return err
	}
	b.there = h
	b.prefix = h.Prefix
	b.gives, b.gets, b.pulls = h.Direction != wire.Push, h.Direction != wire.Pull, h.Direction == wire.Pull
	return b.link.send(&wire.Welcome{
		Nonce:   b.opts.Nonce,
		Proof:   b.opts.proof("responder", b.opts.Remote, b.opts.Self, h.Nonce, b.opts.Nonce),
		Records: b.replica.Records(),
		Digest:  b.replica.Digest(),
	})
}

// CheckVersion is ErrVersion where a Hello speaks a version of the
// protocol or of the mapping that this program does not. A responder can call it before
// it knows which namespace is meant.
func CheckVersion(h *wire.Hello) error {
	if h.Version != wire.Version || h.Mapping != rateless.MappingVersion {
		return ErrVersion
	}
	return nil
}

// Refusal is the message that tells an initiator why no session is begun.
func Refusal(err error) wire.Message { return refusal(err) }
