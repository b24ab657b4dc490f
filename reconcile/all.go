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
	if b.there.Records == 0 || b.here.Records == 0 {
		return true
	}
	return b.hello.Method == wire.MethodAll && !b.hello.DryRun
}

// all is the responder's line from here on.
func (b *responder) all() error {
	b.replica.Decoded()
	b.comparesAll()
	if !b.hello.DryRun {
		if err := b.await(reported(b.there.Records), true); err != nil {
			return err
		}
	}
	var size int64
	if b.hello.DryRun && b.gives {
		var err error
		if size, err = b.sizeOfAll(); err != nil {
			return err
		}
	}
	if err := b.link.send(&wire.Result{Method: wire.MethodAll, Bytes: uint64(size)}); err != nil {
		return err
	}
	if !b.hello.DryRun {
		if err := b.giveAll(b.gives); err != nil {
			return err
		}
	}
	answer, err := due[*wire.Answer](b.link)
	switch {
	case err != nil:
		return err
	case b.hello.DryRun && answer.Closing:
		return nil
	case b.hello.DryRun:
		return b.tellHeads(b.eachHeld)
	}
	if answer.Closing {
		if b.gets && b.there.Records > 0 {
			return violation("%d records were announced and not sent", b.there.Records)
		}
		b.conclude()
		return nil
	}
	if err := b.takeAll(); err != nil {
		return err
	}
	if err := b.end(); err != nil {
		return err
	}
	b.conclude()
	return nil
}

// all is the initiator's line from here on.
func (a *initiator) all(m *wire.Result) error {
	a.comparesAll()
	if a.plan.size() > 0 {
		return violation("differences were told before everything was to be sent")
	}
	if a.opts.DryRun {
		if a.gives {
			var err error
			if a.sends, err = a.sizeOfAll(); err != nil {
				return err
			}
		}
		a.forecast(m)
		return a.listAll() // all is not compared, so that nothing is verified
	}
	if err := a.await(reported(a.there.Records), true); err != nil {
		return err
	}
	if err := a.takeAll(); err != nil {
		return err
	}
	gives := a.gives && a.here.Records > 0
	closing := !gives && len(a.take.refusals) == 0
	if err := a.link.send(&wire.Answer{Closing: closing}); err != nil {
		return err
	}
	if !closing {
		if err := a.giveAll(gives); err != nil {
			return err
		}
		end, err := due[*wire.End](a.link)
		if err != nil {
			return err
		}
		if err := a.ended(end); err != nil {
			return err
		}
	}
	a.conclude()
	return nil
}

// comparesAll notes what the method all means for the report and the proof.
func (s *party) comparesAll() {
	s.give.all = true
	r := s.link.report
	r.Method = wire.MethodAll
	r.MissingHere, r.MissingThere = reported(s.there.Records), reported(s.here.Records)
	switch {
	case s.gives && s.gets:
	case s.gives:
		s.unseen = s.there.Records
	default:
		s.unseen = s.here.Records
	}
}

// giveAll sends every record of the snapshot, if records may travel, and End.
func (s *party) giveAll(gives bool) error {
	defer s.link.in(StepFetch)()
	if gives {
		for r, err := range s.replica.All() {
			if err == nil {
				err = s.link.tick()
			}
			if err != nil {
				return fmt.Errorf("reading all records: %w", err)
			}
			if err := s.give.record(&r, false); err != nil {
				return err
			}
		}
	}
	return s.end()
}

func (s *party) sizeOfAll() (size int64, err error) {
	for r, err := range s.replica.All() {
		if err == nil {
			err = s.link.tick()
		}
		if err != nil {
			return 0, fmt.Errorf("reading all records: %w", err)
		}
		size += recordSize(&r.Record)
	}
	return size, nil
}

// takeAll takes everything that the peer holds, and checks that it was
// everything: its digests add up to what was announced.
func (s *party) takeAll() error {
	defer s.link.in(StepFetch)()
	var sum dbadapter.Digest
	var came uint64
	for {
		m, err := s.link.receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Records:
			batch := make([]arrival, len(m.Records))
			for n := range m.Records {
				if came++; !s.gets || came > s.there.Records {
					return violation("more records were sent than were announced and asked for")
				}
				if batch[n], err = s.take.any(&m.Records[n]); err != nil {
					return err
				}
				sum = sum.Add(batch[n].Digest)
				if n%hashedAtOnce == 0 {
					if err := s.link.tick(); err != nil {
						return err
					}
				}
			}
			if s.here.Records > 0 {
				if err := s.take.compare(batch); err != nil {
					return err
				}
			}
			if err := s.take.apply(batch); err != nil {
				return err
			}
		case *wire.End:
			if s.gets && (sum != s.there.Digest || came != s.there.Records) {
				return fmt.Errorf("%w: the records that came do not add up to the digest that was announced", ErrNotVerified)
			}
			return s.ended(m)
		default:
			return unexpected(m)
		}
	}
}

// any takes a record that no index was told for.
func (t *receiver) any(s *wire.Sent) (arrival, error) {
	switch {
	case s.Stub:
		return arrival{}, violation("a record came without its value")
	case !bytes.HasPrefix(s.Record.Key, t.prefix):
		return arrival{}, violation("a record of key %q was sent in a sync of the prefix %q", s.Record.Key, t.prefix)
	}
	r, err := t.hash(s)
	if err == nil && !t.span.Holds(r.Index) {
		err = violation("a record of key %q was sent, outside the ranges of the sync", s.Record.Key)
	}
	return r, err
}

// compare notes how much this side holds that the records have to be compared with.
func (t *receiver) compare(batch []arrival) error {
	indices := make([]dbadapter.Index, len(batch))
	for n := range batch {
		indices[n] = batch[n].Index
	}
	return t.own.each(t.link, indices, func(n int, held []dbadapter.Hashed) error {
		batch[n].beside = bytesOf(held)
		t.own.done(indices[n])
		return nil
	})
}

// reported is a number of records as the report has it. What a peer announces
// may be anything, and must not make the sum of the differences wrap.
func reported(records uint64) int { return int(min(records, math.MaxInt/4)) }
