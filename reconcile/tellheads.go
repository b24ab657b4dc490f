package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The responder's side of a listing.

// eachTold calls give with this side's records under the indices told, by index and key.
// compared says that the initiator holds something there, too.
func (b *responder) eachTold(give func(r *dbadapter.Hashed, compared bool) error) error {
	indices := slices.DeleteFunc(slices.Sorted(maps.Keys(b.plan.role)), func(i dbadapter.Index) bool { return b.plan.role[i] == wire.Wanted })
	return b.own.each(b.link, indices, func(n int, records []dbadapter.Hashed) error {
		for at := range records {
			if err := give(&records[at], b.plan.role[indices[n]] != wire.Lacking); err != nil {
				return err
			}
		}
		b.own.done(indices[n])
		return nil
	})
}

// eachHeld calls give with all of this side's records.
func (b *responder) eachHeld(give func(r *dbadapter.Hashed, compared bool) error) error {
	for r, err := range b.replica.All() {
		if err == nil {
			err = give(&r, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellHeads tells the initiator the heads of records, as many at a time as it asks for.
func (b *responder) tellHeads(each func(give func(r *dbadapter.Hashed, compared bool) error) error) error {
	defer b.link.in(StepFetch)()
	asked, batch := uint64(0), []wire.Offer(nil)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := b.link.send(&wire.Offers{Offers: batch})
		batch = batch[:0]
		return err
	}
	ask := func() (err error) {
		if asked == 0 {
			asked, err = b.headsAsked()
		}
		return err
	}
	err := each(func(r *dbadapter.Hashed, compared bool) error {
		if err := ask(); err != nil {
			return err
		}
		batch = append(batch, headOffer(&r.Record, compared))
		b.link.headway(1, 0)
		if asked--; asked == 0 || len(batch) == wire.MaxOffers {
			if err := flush(); err != nil {
				return err
			}
		}
		return b.link.tick()
	})
	if err == nil {
		err = ask() // for what follows the last one
	}
	if err == nil {
		err = flush()
	}
	switch {
	case errors.Is(err, errListed):
		return nil
	case err != nil:
		return fmt.Errorf("telling the heads of records: %w", err)
	}
	return b.link.send(&wire.End{})
}

// headsAsked waits until the initiator asks for heads, or, which is errListed, for no
// more.
func (b *responder) headsAsked() (uint64, error) {
	m, err := b.link.receive()
	if err != nil {
		return 0, err
	}
	switch m := m.(type) {
	case *wire.Heads:
		return m.Count, nil
	case *wire.Answer:
		if m.Closing {
			return 0, errListed
		}
		return 0, violation("a second answer that is not closing")
	}
	return 0, unexpected(m)
}

// headOffer is a record without its value and signature; with the hash of its content
// where that may have to be compared.
func headOffer(r *dbadapter.Record, hashed bool) wire.Offer {
	o := wire.Offer{Record: *r, Hashed: hashed}
	if hashed {
		o.Hash = r.ContentHash()
	}
	o.Record.Value, o.Record.Signature, o.Record.Signer = nil, nil, 0
	return o
}
