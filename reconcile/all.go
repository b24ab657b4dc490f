package reconcile

import (
	"bytes"
	"fmt"
	"math"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The method all: both sides send everything. It is the cheapest where one
// side is empty, and the last resort where the differences are too many for
// cells. The proof is simpler than that of a sketch: the digests of what
// arrived must add up to the digest that was announced.

// wantsAll reports whether cells would be a waste, or are not wanted.
func (b *responder) wantsAll() bool {
	if b.there.Records == 0 || b.replica.Records() == 0 {
		return true
	}
	return b.there.Method == wire.All && !b.there.Dry
}

// all is the responder's line from here on.
func (b *responder) all() error {
	b.replica.Decoded()
	b.link.report.Method = "all"
	b.unseen = unseen(b.pulls, b.there.Records, b.replica.Records())
	b.link.report.MissingThere = reported(b.replica.Records())
	b.link.report.MissingHere = reported(b.there.Records)
	var bytes int64
	if b.there.Dry && b.gives {
		var err error
		if bytes, err = b.sizeOfAll(); err != nil {
			return err
		}
	}
	if err := b.link.send(&wire.Result{Method: wire.All, Bytes: uint64(bytes)}); err != nil || b.there.Dry {
		return err
	}
	b.opts.enter(StepFetch)
	if b.gives {
		if err := b.sendAll(); err != nil {
			return err
		}
	}
	if err := b.end(); err != nil {
		return err
	}
	m, err := b.link.receive()
	if err != nil {
		return err
	}
	answer, ok := m.(*wire.Answer)
	if !ok {
		return unexpected(m)
	}
	if answer.Closing {
		if b.gets && b.there.Records > 0 {
			return violation("%d records were announced, and none were sent", b.there.Records)
		}
		return b.conclude()
	}
	if err := b.receiveAll(b.there.Digest, b.there.Records); err != nil {
		return err
	}
	if err := b.end(); err != nil {
		return err
	}
	return b.conclude()
}

// all is the initiator's line from here on.
func (a *initiator) all(m *wire.Result) error {
	r := a.link.report
	r.Method = "all"
	a.unseen = unseen(a.pulls, a.replica.Records(), a.there.Records)
	if a.account.size() > 0 {
		return violation("differences were told before everything was to be sent")
	}
	r.MissingHere, r.MissingThere = reported(a.there.Records), reported(a.replica.Records())
	if a.opts.Dry {
		if a.gives {
			var err error
			if a.sends, err = a.sizeOfAll(); err != nil {
				return err
			}
		}
		a.forecast(m)
		return nil // all is not compared, so that nothing is verified
	}
	a.opts.enter(StepFetch)
	if err := a.receiveAll(a.there.Digest, a.there.Records); err != nil {
		return err
	}
	gives := a.gives && a.replica.Records() > 0
	closing := !gives && len(a.refusals) == 0
	if err := a.link.send(&wire.Answer{Closing: closing}); err != nil {
		return err
	}
	if closing {
		return a.conclude()
	}
	if gives {
		if err := a.sendAll(); err != nil {
			return err
		}
	}
	if err := a.end(); err != nil {
		return err
	}
	end, err := a.link.receive()
	if err != nil {
		return err
	}
	e, ok := end.(*wire.End)
	if !ok {
		return unexpected(end)
	}
	if err := a.ended(e); err != nil {
		return err
	}
	return a.conclude()
}

// reported is a number of records as the report has it. What a peer announces
// may be anything, and must not make the sum of the differences wrap.
func reported(records uint64) int { return int(min(records, math.MaxInt/4)) }

// unseen is how many records stay uncompared if everything travels one way.
func unseen(pulls bool, ofInitiator, ofResponder uint64) uint64 {
	if pulls {
		return ofInitiator
	}
	return ofResponder
}

// sendAll sends every record of the snapshot.
func (e *exchange) sendAll() error {
	for r, err := range e.replica.All() {
		if err != nil {
			return fmt.Errorf("reading all records: %w", err)
		}
		if err := e.sendRecord(&r, false); err != nil {
			return err
		}
	}
	return e.flush()
}

func (e *exchange) sizeOfAll() (bytes int64, err error) {
	for r, err := range e.replica.All() {
		if err != nil {
			return 0, fmt.Errorf("reading all records: %w", err)
		}
		bytes += recordSize(&r)
	}
	return bytes, nil
}

// receiveAll takes everything that the peer holds, and checks that it was
// everything: its digests add up to what was announced.
func (e *exchange) receiveAll(digest dbadapter.Digest, records uint64) error {
	var sum dbadapter.Digest
	var came uint64
	hasher := e.opts.Keys.Hasher
	for {
		m, err := e.link.receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Records:
			batch := make([]dbadapter.Record, len(m.Records))
			for n := range m.Records {
				r := m.Records[n].Record
				switch came++; {
				case !e.gets || came > records:
					return violation("more records were sent than were announced and asked for")
				case m.Records[n].Stub:
					return violation("a record came without its value")
				case !bytes.HasPrefix(r.Key, e.prefix):
					return violation("a record of key %q was sent in a sync of the prefix %q", r.Key, e.prefix)
				}
				sum = sum.Add(hasher.Digest(&r))
				batch[n] = r
			}
			if err := e.apply(batch); err != nil {
				return err
			}
		case *wire.End:
			e.opts.enter(StepVerify)
			if e.gets && (sum != digest || came != records) {
				return fmt.Errorf("%w: the records that came do not add up to the digest that was announced", ErrNotVerified)
			}
			return e.ended(m)
		default:
			return unexpected(m)
		}
	}
}
