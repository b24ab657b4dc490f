package reconcile

import "github.com/syncd-io/syncd/reconcile/wire"

// initiator is the side that asks for a sync.
type initiator struct {
	exchange
	there *wire.Welcome
	cells int // sent so far
}

// Initiate begins a sync from this side. The replica stays the caller's to
// close, once the session is over.
func Initiate(r Replica, o Options) *Session {
	return start(func(l *link) error {
		a := &initiator{exchange: newExchange(l, r, o)}
		a.gives, a.gets, a.pulls = o.Direction != wire.Pull, o.Direction != wire.Push, o.Direction == wire.Pull
		return a.sync()
	})
}

// sync is the initiator's straight line.
func (a *initiator) sync() error {
	if err := a.hello(); err != nil { // sketch
		return err
	}
	if err := a.welcome(); err != nil {
		return err
	}
	if same, err := a.same(); same || err != nil {
		return err
	}
	result, err := a.hear() // subtract and peel, at the responder
	if err != nil {
		return err
	}
	if result.Method == wire.All {
		return a.all(result)
	}
	a.link.report.Method = "sketch"
	if err := a.prove(result); err != nil { // verify, before anything is applied
		return err
	}
	if a.opts.Dry {
		a.link.report.Verified = true
		return nil
	}
	if err := a.take(); err != nil { // fetch and apply what the responder has
		return err
	}
	if err := a.give(); err != nil { // and give what it lacks
		return err
	}
	return a.conclude() // verify
}

// same ends the sync where both digests are equal. Both sides decide it by
// the same numbers; the message only says so.
func (a *initiator) same() (bool, error) {
	if a.there.Digest != a.replica.Digest() || a.there.Records != a.replica.Records() {
		return false, nil
	}
	m, err := a.link.receive()
	if err != nil {
		return false, err
	}
	if _, ok := m.(*wire.Same); !ok {
		return false, unexpected(m)
	}
	r := a.link.report
	r.Method, r.Rounds, r.Verified = "same", 1, true
	r.ForecastBytes = r.WireBytesSent + r.WireBytesReceived
	return true, nil
}
