package reconcile

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// responder is the side that is asked for a sync.
type responder struct {
	party
	open  Open
	hello *wire.Hello
	// doubtful is how many bytes of records travel on suspicion.
	doubtful int64
	// unsure counts the mismatches of which the cells do not tell the later side: the
	// initiator's records may come, too.
	unsure int
	// estimated: the initiator's estimator has come. fresh: since it has, or it
	// became known that it has not, no cells were asked for.
	estimated, fresh bool
	// fetched are the offered indices that the initiator asks for.
	fetched []dbadapter.Index
	// found is what the cells tell, and tells what of that stands for the initiator's
	// records. stuck says that the cells have no end.
	found []coded.Difference
	tells map[dbadapter.Index]uint64
	stuck bool
}

// Open opens the replica that a Hello asks for: of its prefix. A session calls
// it once the peer has proved that it knows the namespace's secret, and not
// before. A scan calls Session.Tick.
type Open func(h *wire.Hello) (Replica, error)

// Respond answers a sync; the session first waits for the Hello. The replica
// that open returns is the caller's to close, once the session is over.
func Respond(open Open, o Options) *Session {
	return start(o, func(l *link) error {
		b := &responder{party: newParty(l), open: open, tells: map[dbadapter.Index]uint64{}}
		b.theirs = func(i dbadapter.Index, _ []dbadapter.Hashed) uint64 { return b.tells[i] }
		return b.whole(b.sync())
	})
}

// sync is the responder's straight line.
func (b *responder) sync() error {
	if err := b.greet(); err != nil { // after the proof: sketch
		return err
	}
	if b.here == b.there {
		b.link.report.Method, b.link.report.Verified = wire.MethodSame, true
		return b.link.send(&wire.Same{})
	}
	if b.wantsAll() {
		return b.all()
	}
	found, ok, err := b.differ() // subtract and peel
	switch {
	case err != nil:
		return err
	case !ok && (b.many() || b.splits()):
		return b.split()
	case !ok && b.hello.DryRun:
		b.stuck = true // what it moved would prove more; a listing of the ranges proves as much
	case !ok:
		return b.all()
	}
	b.link.report.Method = wire.MethodSketch
	b.found, b.take.told = found, announce(b.opts.Keys.Hasher, found)
	for _, d := range found {
		b.tells[d.Index] = uint64(d.Theirs)
	}
	if err := b.draw(found); err != nil {
		return err
	}
	if !b.hello.DryRun {
		if err := b.await(b.plan.count(wire.Wanted, wire.Older, roleBid)+b.unsure, true); err != nil {
			return err
		}
	}
	if err := b.tell(); err != nil {
		return err
	}
	method := wire.MethodSketch
	if b.stuck {
		method = wire.MethodRanges
	}
	if err := b.result(method); err != nil { // the residual, for both to verify
		return err
	}
	if !b.stuck {
		if err := b.giveFirst(); err != nil { // fetch for the initiator
			return err
		}
	}
	closing, err := b.answered() // verify
	if err != nil || closing {
		return err
	}
	if err := b.receiveBack(); err != nil { // fetch and apply what it gives
		return err
	}
	if err := b.giveLast(); err != nil { // fetch what it asked for
		return err
	}
	b.conclude() // verify
	return nil
}
