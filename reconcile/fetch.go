package reconcile

import (
	"bytes"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step fetch: the records that differ travel. First those of the responder go to
// the initiator, then the other way; then comes what the second leg showed to be
// missing still. Only one side sends records at a time, so that two blocked writers
// cannot wait for one another.

// leg receives records until the peer's End. fetched, if not nil, takes the
// indices that the peer asks for.
func (s *party) leg(allowed func(wire.Role) bool, last bool, fetched func([]dbadapter.Index) error) error {
	for {
		m, err := s.link.receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Indices:
			if m.Role != wire.Fetch || fetched == nil {
				return violation("a list of role %d among the records", m.Role)
			}
			if err := fetched(m.Indices); err != nil {
				return err
			}
		case *wire.Records:
			if err := s.take.records(m, allowed, last); err != nil {
				return err
			}
		case *wire.End:
			if err := s.take.finish(); err != nil {
				return err
			}
			return s.ended(m)
		default:
			return unexpected(m)
		}
	}
}

// giveFirst sends the responder's records, unless the initiator only pushes. A dry
// run moves none.
func (b *responder) giveFirst() error {
	if b.hello.DryRun {
		return nil
	}
	defer b.link.in(StepFetch)()
	for _, i := range b.plan.lists[roleOffered] {
		b.give.under[i] = true // the initiator may adopt, and refuse, an offer
	}
	b.give.adoptable = b.plan.count(roleOffered)
	if b.gives {
		for _, role := range []wire.Role{wire.Lacking, wire.Newer} {
			if err := b.give.buckets(b.plan.lists[role]); err != nil {
				return err
			}
		}
	}
	return b.end()
}

// receiveFirst receives the responder's records.
func (a *initiator) receiveFirst() error {
	defer a.link.in(StepFetch)()
	a.take.expect(wire.Lacking, wire.Newer)
	err := a.leg(func(role wire.Role) bool { return role == wire.Lacking || role == wire.Newer }, false, nil)
	if err != nil {
		return err
	}
	stayed := a.plan.size() - a.plan.count(wire.Wanted) // the responder lacks these
	if a.gets {
		stayed -= a.plan.count(wire.Lacking, wire.Newer)
	}
	return a.addsUp(stayed)
}

// decide settles the offers: a newer version of equal content is adopted, a
// newer content is asked for, and what is newer here is owed.
func (a *initiator) decide() error {
	defer a.link.in(StepFetch)()
	var adopted []arrival
	var size int64
	indices := indicesOf(a.plan.offers, a.opts.Keys.Hasher)
	if err := a.own.each(a.link, indices, func(n int, own []dbadapter.Hashed) error {
		r, err := a.offered(&a.plan.offers[n], indices[n], own)
		if r == nil || err != nil {
			return err
		}
		adopted, size = append(adopted, *r), size+recordSize(&r.Record)
		if len(adopted) == wire.BatchRecords || size > wire.BatchBytes {
			if err := a.adopt(adopted); err != nil {
				return err
			}
			adopted, size = nil, 0
		}
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(a.fetch)
	return a.adopt(adopted)
}

// indicesOf are the places of the offers' keys.
func indicesOf(offers []wire.Offer, h dbadapter.Hasher) []dbadapter.Index {
	indices := make([]dbadapter.Index, len(offers))
	for n := range offers {
		indices[n] = h.Index(offers[n].Record.Key)
	}
	return indices
}

// offered settles one offer, given this side's records under its index, and returns the
// record to adopt, if it is one.
func (a *initiator) offered(o *wire.Offer, i dbadapter.Index, own []dbadapter.Hashed) (*arrival, error) {
	if err := a.link.tick(); err != nil {
		return nil, err
	}
	owed := make([]dbadapter.Digest, 0, len(own))
	var same *dbadapter.Hashed // of ours, the one under the key
	for n := range own {
		if bytes.Equal(own[n].Key, o.Record.Key) {
			same = &own[n]
			if compareOffer(o, &same.Record) > 0 {
				continue // theirs wins; of one version both travel, and the admissions decide
			}
		}
		owed = append(owed, own[n].Digest)
	}
	a.take.owed[i] = owed
	alike := same != nil && o.Hashed && same.Deleted == o.Record.Deleted && same.ContentHash() == o.Hash
	switch {
	case same != nil && compareOffer(o, &same.Record) < 0:
		a.stubs[i] = alike && !same.Deleted && len(own) == 1
	case !a.gets:
	case alike:
		r := o.Record
		r.Value = same.Value
		hashed, err := dbadapter.Hash(a.opts.Keys.Hasher, r)
		return &arrival{Hashed: hashed}, err
	default:
		a.fetch = append(a.fetch, i)
		a.plan.role[i] = roleFetched
	}
	return nil, nil
}

// adopt applies records that were not sent: End does not count them as applied.
func (a *initiator) adopt(records []arrival) error {
	applied := a.take.applied
	if err := a.take.apply(records); err != nil {
		return err
	}
	err := a.take.settle()
	a.take.applied = applied
	return err
}

// compareOffer orders an offered record and one held as Record.Compare would;
// 0 means that only the contents can tell.
func compareOffer(o *wire.Offer, own *dbadapter.Record) int {
	if c := o.Record.Version.Compare(own.Version); c != 0 || !o.Hashed {
		return c
	}
	hash := own.ContentHash()
	if c := bytes.Compare(o.Hash[:], hash[:]); c != 0 {
		return c
	}
	return o.Record.CompareOptional(own)
}

// answer sends the initiator's residual. The sync is over with it, and closing
// true, if nothing is to follow in either direction.
func (a *initiator) answer() (closing bool, err error) {
	gives := a.gives && a.plan.count(wire.Wanted, wire.Older, roleBid) > 0
	closing = !gives && len(a.fetch) == 0 && a.take.owes() == 0 && len(a.take.refusals) == 0
	if err := a.link.send(&wire.Answer{Residual: a.residual, Closing: closing}); err != nil {
		return closing, err
	}
	if closing {
		a.conclude()
	}
	return closing, nil
}

// giveBack asks for the offers that the initiator wants, and sends what the
// responder lacks or holds of old.
func (a *initiator) giveBack() error {
	defer a.link.in(StepFetch)()
	for part := range slices.Chunk(a.fetch, wire.MaxIndices) {
		if err := a.link.send(&wire.Indices{Role: wire.Fetch, Indices: part}); err != nil {
			return err
		}
	}
	if a.gives {
		if err := a.giveRecords(); err != nil {
			return err
		}
	}
	return a.end()
}

func (a *initiator) giveRecords() error {
	for _, role := range []wire.Role{wire.Wanted, wire.Older} {
		if err := a.give.buckets(a.plan.lists[role]); err != nil {
			return err
		}
	}
	bids := a.plan.bids
	if err := a.own.each(a.link, indicesOf(bids, a.opts.Keys.Hasher), func(n int, records []dbadapter.Hashed) error {
		return a.give.bucket(records, &bids[n])
	}); err != nil {
		return err
	}
	return a.take.sendOwed(&a.give, a.stubs)
}

// receiveLast receives what the initiator asked for and what came back.
func (a *initiator) receiveLast() error {
	defer a.link.in(StepFetch)()
	for _, i := range a.fetch {
		a.take.due[i] = true
	}
	applied, received := a.link.report.Applied, a.take.received
	allowed := func(role wire.Role) bool { return role == wire.Older || role == roleBid || role == roleFetched }
	if err := a.leg(allowed, true, nil); err != nil {
		return err
	}
	if a.link.report.Applied > applied {
		a.link.report.Rounds++
	}
	if a.take.received == received {
		return nil
	}
	return a.end() // the responder calls nothing verified before it knows
}

// answered reads the initiator's Answer and compares the residuals; first it repairs
// what the initiator could not prove. The sync is over with the Answer if closing is
// true.
func (b *responder) answered() (closing bool, err error) {
	m, err := b.link.receive()
	if err != nil {
		return false, err
	}
	if hashes, ok := m.(*wire.Hashes); ok {
		if err := b.repair(hashes); err != nil {
			return false, err
		}
		if err := b.giveFirst(); err != nil {
			return false, err
		}
		if m, err = b.link.receive(); err != nil {
			return false, err
		}
	} else if b.stuck {
		return false, unexpected(m)
	}
	answer, ok := m.(*wire.Answer)
	if !ok {
		return false, unexpected(m)
	}
	defer b.link.in(StepVerify)()
	if answer.Residual != b.residual {
		return false, ErrNotVerified
	}
	if b.hello.DryRun {
		if !answer.Closing {
			err = b.tellHeads(b.eachTold)
		}
		return true, err
	}
	b.take.expect(wire.Wanted, wire.Older, roleBid)
	if !answer.Closing {
		return false, nil
	}
	if err := b.take.finish(); err != nil {
		return true, err
	}
	if err := b.addsUp(b.stayed()); err != nil {
		return true, err
	}
	b.conclude()
	return true, nil
}

// stayed is how many of the indices told may have records that stay at the
// initiator.
func (b *responder) stayed() int {
	n := b.plan.size() - b.plan.count(wire.Lacking) // the initiator lacks these
	if b.gets {
		n -= b.plan.count(wire.Wanted, wire.Older, roleBid)
	}
	return n
}

// receiveBack receives the initiator's records and its requests.
func (b *responder) receiveBack() error {
	defer b.link.in(StepFetch)()
	if err := b.leg(func(role wire.Role) bool { return role != wire.Lacking }, false, b.asked); err != nil {
		return err
	}
	return b.addsUp(b.stayed())
}

// asked notes what the initiator asks for. It may ask for what it was offered, and once
// only, so that a few bytes do not fetch a large value over and over.
func (b *responder) asked(indices []dbadapter.Index) error {
	for _, i := range indices {
		if b.plan.role[i] != roleOffered {
			return violation("index %d was fetched twice, or without having been offered", i)
		}
		b.plan.role[i] = roleFetched
	}
	b.fetched = append(b.fetched, indices...)
	return nil
}

// giveLast sends what the initiator asked for, and what its records did not
// answer, and waits for what became of it.
func (b *responder) giveLast() error {
	defer b.link.in(StepFetch)()
	before := b.give.count
	if b.gives {
		if err := b.give.buckets(b.fetched); err != nil {
			return err
		}
		for i := range b.take.owed {
			if role := b.plan.role[i]; role != wire.Older && role != roleBid {
				delete(b.take.owed, i) // the initiator has seen these
			}
		}
		if err := b.take.sendOwed(&b.give, nil); err != nil {
			return err
		}
	}
	if err := b.end(); err != nil {
		return err
	}
	if b.give.count == before {
		return nil
	}
	return b.leg(func(wire.Role) bool { return false }, true, nil)
}
