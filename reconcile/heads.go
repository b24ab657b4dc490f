package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A dry run can go on where it has proved the plan. The responder tells the heads of its
// records under the indices told, and the initiator compares them with its own. So both
// directions are listed by the side that asks. Only as many heads travel at once as the
// initiator has asked for, so that it may take its time with them, and stop.

// KeyDifference is a key whose records differ.
type KeyDifference struct {
	Key  []byte
	Kind KeyKind
	// Here and There are the records, without their values; zero where one is missing.
	Here, There Head
	// HereWins says, of two records, that this side's stands after a sync.
	HereWins bool
}

// Head is a record without its key and value.
type Head struct {
	Version dbadapter.Version
	Deleted bool
	Expires dbadapter.Timestamp
}

// KeyKind says how the records of a key differ.
type KeyKind byte

// The kinds.
const (
	MissingHere  KeyKind = iota + 1 // only the peer holds the key
	MissingThere                    // only this side does
	NewerHere                       // this side's record replaces the peer's
	NewerThere                      // the peer's replaces this side's
	// Conflict: the writer of the greater version did not know of the other one, or one
	// version has two contents. See dbadapter.Record.Supersedes for when that is a
	// false alarm.
	Conflict
)

var keyKinds = [...]string{MissingHere: "missing here", MissingThere: "missing there", NewerHere: "newer here", NewerThere: "newer there", Conflict: "conflict"}

// String is the kind in words.
func (k KeyKind) String() string { return keyKinds[k] }

// errListed ends a listing before all was listed.
var errListed = errors.New("reconcile: enough keys are listed")

// listKeys lists, at the initiator, the keys under the indices of the plan.
func (a *initiator) listKeys() error {
	return a.listing(a.plan.size() > a.plan.count(wire.Wanted), func(h *heads) error {
		indices := slices.Sorted(maps.Keys(a.plan.role))
		return a.own.each(a.link, indices, func(n int, own []dbadapter.Hashed) error {
			i := indices[n]
			var theirs []wire.Offer
			if a.plan.role[i] != wire.Wanted {
				var err error
				if theirs, err = h.bucket(i); err != nil {
					return err
				}
			}
			a.own.done(i)
			return h.compare(theirs, own)
		})
	})
}

// listAll lists all keys, at the initiator, where one side holds no records.
func (a *initiator) listAll() error {
	return a.listing(a.there.Records > 0, func(h *heads) error {
		for came := uint64(0); a.there.Records > 0; came++ {
			o, err := h.next()
			switch {
			case err != nil:
				return err
			case o == nil && came < a.there.Records:
				return violation("the heads of %d records, of %d announced", came, a.there.Records)
			case o == nil:
				return nil
			case came == a.there.Records:
				return violation("more heads than the %d records announced", came)
			case !bytes.HasPrefix(o.Record.Key, a.opts.Prefix) || !a.opts.Span.Holds(a.opts.Keys.Hasher.Index(o.Record.Key)):
				return violation("the head of key %q, outside of what is compared", o.Record.Key)
			}
			if err := h.compare([]wire.Offer{*o}, nil); err != nil {
				return err
			}
		}
		for r, err := range a.replica.All() {
			if err == nil {
				err = h.compare(nil, []dbadapter.Hashed{r})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// listing answers the plan, and lists keys if they are wanted. comes says that the
// responder has heads to tell.
func (a *initiator) listing(comes bool, keys func(*heads) error) error {
	wanted := a.opts.Differs != nil
	if err := a.link.send(&wire.Answer{Residual: a.residual, Closing: !wanted || !comes}); err != nil || !wanted {
		return err
	}
	defer a.link.in(StepFetch)()
	h := &heads{a: a, over: !comes}
	err := keys(h)
	if err == nil {
		err = h.none()
	}
	if err != nil && !errors.Is(err, errListed) {
		return fmt.Errorf("listing keys: %w", err)
	}
	if h.over {
		return nil
	}
	return a.link.send(&wire.Answer{Residual: a.residual, Closing: true})
}

// heads are those of the responder, as the initiator reads them.
type heads struct {
	a    *initiator
	came []wire.Offer // and not looked at yet
	over bool         // the responder has no more
}

// next takes the next head; nil at their end.
func (h *heads) next() (*wire.Offer, error) {
	o, err := h.peek()
	if o != nil {
		h.came = h.came[1:]
	}
	return o, err
}

// peek is the next head.
func (h *heads) peek() (*wire.Offer, error) {
	if len(h.came) == 0 && !h.over {
		if err := h.ask(); err != nil {
			return nil, err
		}
	}
	if len(h.came) == 0 {
		return nil, nil
	}
	return &h.came[0], nil
}

// ask takes the answer whole, before anything of it is listed: its sender does not wait
// while it writes. A dry run takes no records, whose memory is reserved and holds the
// heads.
func (h *heads) ask() error {
	l := h.a.link
	if err := l.send(&wire.Heads{Count: wire.MaxHeads}); err != nil {
		return err
	}
	l.report.Rounds++
	h.came = nil
	for len(h.came) < wire.MaxHeads {
		m, err := l.receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Offers:
			if m.Wanting || len(m.Offers) > wire.MaxHeads-len(h.came) {
				return violation("%d heads after %d; %d were asked for", len(m.Offers), len(h.came), wire.MaxHeads)
			}
			h.came = append(h.came, m.Offers...)
			l.headway(len(m.Offers), 0)
		case *wire.End:
			if m.Applied+m.Held+m.Collectable > 0 || len(m.Refusals) > 0 {
				return violation("the end of the heads tells of records")
			}
			h.over = true
			return nil
		default:
			return unexpected(m)
		}
	}
	return nil
}

// bucket takes the heads under an index told.
func (h *heads) bucket(i dbadapter.Index) (bucket []wire.Offer, err error) {
	for {
		o, err := h.peek()
		if err != nil {
			return nil, err
		}
		if o == nil || h.a.opts.Keys.Hasher.Index(o.Record.Key) != i {
			break
		}
		n := len(bucket)
		if n == maxBucket || n > 0 && bytes.Compare(o.Record.Key, bucket[n-1].Record.Key) <= 0 || !bytes.HasPrefix(o.Record.Key, h.a.opts.Prefix) {
			return nil, violation("the head of key %q is out of order under index %d, or not of what is compared", o.Record.Key, i)
		}
		bucket = append(bucket, *o)
		h.came = h.came[1:]
	}
	if len(bucket) == 0 {
		return nil, violation("no head came under index %d, which was told", i)
	}
	return bucket, nil
}

// none fails if there are more heads.
func (h *heads) none() error {
	o, err := h.peek()
	if o != nil {
		err = violation("the head of key %q, of which nothing was told", o.Record.Key)
	}
	return err
}

// compare lists what differs between two buckets, each by key.
func (h *heads) compare(theirs []wire.Offer, own []dbadapter.Hashed) error {
	for len(theirs) > 0 || len(own) > 0 {
		var d KeyDifference
		var c int // of the keys
		switch {
		case len(own) == 0:
			c = -1
		case len(theirs) == 0:
			c = 1
		default:
			c = bytes.Compare(theirs[0].Record.Key, own[0].Key)
		}
		switch {
		case c < 0:
			d.Kind, d.There = MissingHere, headOf(&theirs[0].Record)
			d.Key = theirs[0].Record.Key
			theirs = theirs[1:]
		case c > 0:
			d.Kind, d.Here, d.HereWins = MissingThere, headOf(&own[0].Record), true
			d.Key = own[0].Key
			own = own[1:]
		default:
			if !theirs[0].Hashed {
				return violation("the head of key %q came without its hash, and both sides hold the key", own[0].Key)
			}
			d = differenceOf(&theirs[0], &own[0].Record)
			theirs, own = theirs[1:], own[1:]
		}
		if err := h.differs(d); err != nil {
			return err
		}
	}
	return h.a.link.tick()
}

// differenceOf compares two records of a key; Kind is 0 where they are the same.
func differenceOf(theirs *wire.Offer, own *dbadapter.Record) KeyDifference {
	d := KeyDifference{Key: own.Key, Here: headOf(own), There: headOf(&theirs.Record)}
	c := compareOffer(theirs, own)
	d.HereWins = c < 0
	switch {
	case c == 0:
	case c < 0 && own.Supersedes(theirs.Record.Version):
		d.Kind = NewerHere
	case c > 0 && theirs.Record.Supersedes(own.Version):
		d.Kind = NewerThere
	default:
		d.Kind = Conflict
	}
	return d
}

func headOf(r *dbadapter.Record) Head {
	return Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires}
}

// differs hands out a key, unless its records are the same: others under its index are
// not.
func (h *heads) differs(d KeyDifference) error {
	if d.Kind == 0 {
		return nil
	}
	d.Key = bytes.Clone(d.Key)
	takes, err := h.a.opts.Differs(d)
	switch {
	case err != nil:
		return err
	case !takes:
		h.a.link.report.MoreKeys = true
		return errListed
	}
	h.a.link.report.Keys++
	return nil
}
