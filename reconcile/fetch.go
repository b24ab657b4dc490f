package reconcile

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step fetch: the records that differ travel, first from the responder to
// the initiator, then the other way, then what the second leg showed to be
// missing still. Only one side sends at a time, so that two blocked writers
// cannot wait for one another.

// give sends the responder's records, and nothing where the initiator only
// pushes.
func (b *responder) give() error {
	b.opts.enter(StepFetch)
	if b.gives {
		for _, role := range []wire.Role{wire.Lacking, wire.Newer} {
			for _, i := range b.account.lists[role] {
				if err := b.sendBucket(i, nil); err != nil {
					return err
				}
			}
		}
	}
	return b.end()
}

// take receives the responder's records, and decides upon its offers.
func (a *initiator) take() error {
	a.opts.enter(StepFetch)
	if a.gets {
		for _, role := range []wire.Role{wire.Lacking, wire.Newer} {
			for _, i := range a.account.lists[role] {
				a.due[i] = true
			}
		}
	}
	err := a.receive(func(role wire.Role) bool { return role == wire.Lacking || role == wire.Newer }, false)
	if err != nil {
		return err
	}
	stayed := a.account.size() - len(a.account.lists[wire.Wanted]) // of these the responder holds none
	if a.gets {
		stayed -= len(a.account.lists[wire.Lacking]) + len(a.account.lists[wire.Newer])
	}
	if err := a.addsUp(a.there.Digest, stayed); err != nil {
		return err
	}
	return a.decide()
}

// addsUp fails if what came is not what the peer's digest stands for. It can
// tell where all that the peer holds under the indices told has come: under
// none did records stay there, for being older, offered first, kept back by
// the direction, or refused before.
func (e *exchange) addsUp(announced dbadapter.Digest, stayed int) error {
	if stayed > 0 || len(e.due) > 0 || announced.Sub(e.residual) == e.arrived {
		return nil
	}
	return fmt.Errorf("%w: the records that came do not add up to the digest that was announced", ErrNotVerified)
}

// decide settles the offers: a newer version of equal content is adopted, a
// newer content is asked for, and what is newer here is owed.
func (a *initiator) decide() error {
	var adopted []dbadapter.Record
	for n := range a.account.offers {
		o := &a.account.offers[n]
		i := a.opts.Keys.Hasher.Index(o.Record.Key)
		own, err := a.own.bucket(i)
		if err != nil {
			return err
		}
		a.owing[i] = slices.Clone(own)
		at := slices.IndexFunc(own, func(r dbadapter.Record) bool { return string(r.Key) == string(o.Record.Key) })
		alike := at >= 0 && o.Hashed && own[at].Deleted == o.Record.Deleted && own[at].ContentHash() == o.Hash
		if at >= 0 {
			order := compareOffer(o, &own[at])
			if order < 0 {
				a.stubs[i] = alike && !o.Record.Deleted && len(own) == 1
				continue // ours is newer, and owed
			}
			if order > 0 {
				a.owing[i] = slices.Delete(a.owing[i], at, at+1)
			}
			// One version of two contents: both travel, and the admissions decide.
		}
		if !a.gets {
			continue
		}
		if alike {
			r := o.Record
			r.Value = own[at].Value
			adopted = append(adopted, r)
			if len(adopted) == wire.BatchRecords {
				if err := a.adopt(adopted); err != nil {
					return err
				}
				adopted = nil
			}
			continue
		}
		a.fetch = append(a.fetch, i)
		a.account.role[i] = roleFetched
	}
	slices.Sort(a.fetch)
	return a.adopt(adopted)
}

// adopt applies records that were not sent: End does not account for them.
func (a *initiator) adopt(records []dbadapter.Record) error {
	applied := a.applied
	err := a.apply(records)
	a.applied = applied
	return err
}

// compareOffer orders an offered record and one held as Record.Compare would;
// 0 means that only the contents can tell.
func compareOffer(o *wire.Offer, own *dbadapter.Record) int {
	if c := o.Record.Version.Compare(own.Version); c != 0 || !o.Hashed {
		return c
	}
	hash := own.ContentHash()
	return bytes.Compare(o.Hash[:], hash[:])
}

// give sends the initiator's residual and its records, and takes what comes
// in return.
func (a *initiator) give() error {
	owes := len(a.fetch) > 0
	if a.gives {
		owes = owes || len(a.account.lists[wire.Wanted]) > 0 || len(a.account.lists[wire.Older]) > 0 || len(a.account.bids) > 0
		for _, records := range a.owing {
			owes = owes || len(records) > 0
		}
	}
	closing := !owes && len(a.refusals) == 0 && a.held() == 0
	if err := a.link.send(&wire.Answer{Residual: a.residual, Closing: closing}); err != nil || closing {
		return err
	}
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
	if err := a.end(); err != nil {
		return err
	}
	for _, i := range a.fetch {
		a.due[i] = true
	}
	before, got := a.link.report.Applied, a.received
	if err := a.receive(func(role wire.Role) bool { return role == wire.Older || role == roleBid || role == roleFetched }, true); err != nil {
		return err
	}
	if a.link.report.Applied > before {
		a.link.report.Rounds++
	}
	if a.received > got {
		return a.end() // the responder calls nothing verified before it knows
	}
	return nil
}

func (a *initiator) giveRecords() error {
	for _, role := range []wire.Role{wire.Wanted, wire.Older} {
		for _, i := range a.account.lists[role] {
			if err := a.sendBucket(i, nil); err != nil {
				return err
			}
		}
	}
	for n := range a.account.bids {
		bid := &a.account.bids[n]
		if err := a.sendBucket(a.opts.Keys.Hasher.Index(bid.Record.Key), bid); err != nil {
			return err
		}
	}
	return a.sendOwing()
}

// take receives the initiator's answer, its records, and the requests that
// its part of the account led to.
func (b *responder) take() error {
	m, err := b.link.receive()
	if err != nil {
		return err
	}
	answer, ok := m.(*wire.Answer)
	if !ok {
		return unexpected(m)
	}
	b.opts.enter(StepVerify)
	if answer.Residual != b.residual {
		return ErrNotVerified
	}
	if b.gets {
		for _, role := range []wire.Role{wire.Wanted, wire.Older} {
			for _, i := range b.account.lists[role] {
				b.due[i] = true
			}
		}
		for n := range b.account.bids {
			b.due[b.opts.Keys.Hasher.Index(b.account.bids[n].Record.Key)] = true
		}
	}
	stayed := b.account.size() - len(b.account.lists[wire.Lacking]) // of these the initiator holds none
	if b.gets {
		stayed -= len(b.account.lists[wire.Wanted]) + len(b.account.lists[wire.Older]) + len(b.account.bids)
	}
	if answer.Closing {
		if err := b.addsUp(b.there.Digest, stayed); err != nil {
			return err
		}
		return b.conclude()
	}
	b.opts.enter(StepFetch)
	err = b.receive(func(role wire.Role) bool { return role != wire.Lacking }, false)
	if err != nil {
		return err
	}
	if err := b.addsUp(b.there.Digest, stayed); err != nil {
		return err
	}
	before := b.link.report.Sent
	if b.gives {
		for _, i := range b.fetch {
			if err := b.sendBucket(i, nil); err != nil {
				return err
			}
		}
		for i := range b.owing {
			if role := b.account.role[i]; role != wire.Older && role != roleBid {
				delete(b.owing, i) // the initiator has seen these
			}
		}
		if err := b.sendOwing(); err != nil {
			return err
		}
	}
	if err := b.end(); err != nil {
		return err
	}
	if b.link.report.Sent > before {
		if err := b.receive(func(wire.Role) bool { return false }, true); err != nil {
			return err
		}
	}
	return b.conclude()
}
