package reconcile

import "github.com/syncd-io/syncd/reconcile/wire"

// responder is the side that is asked for a sync.
type responder struct {
	exchange
	there *wire.Hello
	// doubtful is how many bytes of records travel on suspicion.
	doubtful int64
}

// Respond answers a sync; the session first waits for the Hello. The replica
// stays the caller's to close, once the session is over.
func Respond(r Replica, o Options) *Session {
	return start(func(l *link) error {
		b := &responder{exchange: newExchange(l, r, o)}
		b.fetches = true
		return b.sync()
	})
}

// sync is the responder's straight line.
func (b *responder) sync() error {
	if err := b.greet(); err != nil { // sketch
		return err
	}
	if b.there.Digest == b.replica.Digest() && b.there.Records == b.replica.Records() {
		b.link.report.Method, b.link.report.Verified = "same", true
		return b.link.send(&wire.Same{})
	}
	if b.wantsAll() {
		return b.all()
	}
	found, ok, err := b.differ() // subtract and peel
	if err != nil {
		return err
	}
	if !ok {
		return b.all()
	}
	b.link.report.Method = "sketch"
	if err := b.draw(found); err != nil {
		return err
	}
	if err := b.tell(); err != nil {
		return err
	}
	if err := b.result(); err != nil { // the residual, for both to verify
		return err
	}
	if b.there.Dry {
		return nil
	}
	if err := b.give(); err != nil { // fetch for the initiator
		return err
	}
	return b.take() // verify, fetch and apply what it gives
}
