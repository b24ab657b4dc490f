package reconcile

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// initiator is the side that asks for a sync.
type initiator struct {
	party
	cells int  // sent so far
	later bool // the first cells wait until they are asked for
	// estimated: the estimator was sent.
	estimated bool
	// sends is about how many bytes of records this side has to send.
	sends int64
	// fetch are the offered indices that this side asks for.
	fetch []dbadapter.Index
	// stubs are the offers that this side answers with a newer version of the
	// same content.
	stubs map[dbadapter.Index]bool
	// sums are those of the responder's ranges, if the sync goes on in parts.
	sums []uint64
	// overfull counts the ranges that disagree and hold too much to be listed in any sync.
	overfull int
	// listed are the ranges that this side has listed; nil before that.
	listed map[dbadapter.Range]bool
}

// Initiate begins a sync from this side. The replica stays the caller's to
// close, once the session is over.
func Initiate(r Replica, o Options) *Session {
	return start(o, func(l *link) error {
		a := &initiator{party: newParty(l), stubs: map[dbadapter.Index]bool{}}
		a.theirs = a.holds
		a.read(r)
		a.aim(o.Direction != wire.Pull, o.Direction != wire.Push)
		a.pulls, a.take.prefix, a.take.span = o.Direction == wire.Pull, o.Prefix, o.Span
		return a.listable(a.whole(a.sync()))
	})
}

// sync is the initiator's straight line.
func (a *initiator) sync() error {
	if err := a.link.reserve(baseBytes); err != nil {
		return err
	}
	if err := a.hello(); err != nil { // sketch
		return err
	}
	if err := a.welcome(); err != nil {
		return err
	}
	if a.here == a.there {
		return a.same()
	}
	result, err := a.hear() // subtract and peel, at the responder
	if err != nil {
		return err
	}
	switch {
	case (result.Method == wire.MethodParts) != (len(a.sums) > 0):
		return violation("the sums of ranges came without the end of the sync, or it without them")
	case result.Method == wire.MethodParts:
		return a.split(result)
	case result.Method == wire.MethodAll:
		return a.all(result)
	}
	a.link.report.Method = wire.MethodSketch
	if err := a.prove(result); err != nil { // verify, before anything is applied
		return err
	}
	if a.opts.DryRun {
		err := a.listKeys()
		a.link.report.Verified = err == nil && a.link.report.Repair.Left == 0
		return err
	}
	if err := a.expects(true); err != nil { // also after a repair
		return err
	}
	if err := a.receiveFirst(); err != nil { // fetch and apply what the responder has
		return err
	}
	if err := a.decide(); err != nil { // upon what it offers
		return err
	}
	closing, err := a.answer()
	if err != nil || closing {
		return err
	}
	if err := a.giveBack(); err != nil { // fetch what the responder lacks
		return err
	}
	if err := a.receiveLast(); err != nil { // and apply what it still had
		return err
	}
	a.conclude() // verify
	return nil
}

// same ends the sync where both sides hold the same. Both decide it by the same
// numbers; the message only says so.
func (a *initiator) same() error {
	if _, err := due[*wire.Same](a.link); err != nil {
		return err
	}
	r := a.link.report
	r.Method, r.Rounds, r.Verified = wire.MethodSame, 1, true
	r.ForecastBytes = r.WireBytesSent + r.WireBytesReceived
	return nil
}
