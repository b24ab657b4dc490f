package reconcile

import (
	"fmt"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step peel ends with the differences. What is to be done about each is
// the account: the responder draws it up, the initiator reads it.

// account lists all decoded indices by what happens to them.
type account struct {
	// role is what each index is for. Offered and bid indices stand in it
	// with roles of their own, which never travel.
	role map[dbadapter.Index]wire.Role
	// lists are the indices of each role that travels, ascending.
	lists [wire.Older + 1][]dbadapter.Index
	// offers are the responder's records that are newer, or as new, and
	// travel by hash first; bids its records that are older and whose
	// content may be that of the newer one.
	offers, bids []wire.Offer
}

const (
	roleOffered = wire.Fetch + 1 + iota
	roleBid
	roleFetched // offered, and asked for
)

func newAccount() *account { return &account{role: map[dbadapter.Index]wire.Role{}} }

func (a *account) add(i dbadapter.Index, r wire.Role) bool {
	if _, twice := a.role[i]; twice {
		return false
	}
	a.role[i] = r
	if r <= wire.Older {
		a.lists[r] = append(a.lists[r], i)
	}
	return true
}

// size is the number of indices in the account.
func (a *account) size() int { return len(a.role) }

// mismatched counts the indices that both sides hold.
func (a *account) mismatched() int {
	return a.size() - len(a.lists[wire.Lacking]) - len(a.lists[wire.Wanted])
}

// draw makes the account of the decoded differences.
func (b *responder) draw(found []coded.Difference) error {
	acc := b.account
	b.told = announce(b.opts.Keys.Hasher, found)
	suspicion := int64(ambiguousBytes)
	for _, d := range found {
		role := wire.Lacking
		switch d.Kind {
		case rateless.MissingHere:
			role = wire.Wanted
		case rateless.Mismatched:
			own, err := b.own.bucket(d.Index)
			if err != nil {
				return err
			}
			if len(own) == 0 {
				return fmt.Errorf("%w: the index lists a record under %d that is not there", dbadapter.ErrCorrupt, d.Index)
			}
			role = b.settle(dbadapter.Age(d.Ours, d.Theirs), own, &suspicion)
			switch role {
			case roleOffered:
				acc.offers = append(acc.offers, offerOf(&own[0]))
			case roleBid:
				acc.bids = append(acc.bids, offerOf(&own[0]))
			}
		}
		acc.add(d.Index, role)
	}
	for _, list := range acc.lists {
		slices.Sort(list)
	}
	r := b.link.report
	r.MissingThere = len(acc.lists[wire.Lacking])
	r.MissingHere = len(acc.lists[wire.Wanted])
	r.Mismatched = acc.mismatched()
	return nil
}

// settle says what happens to a mismatch, by the age of our records against
// theirs. A bucket of several records always travels whole.
func (b *responder) settle(age int, own []dbadapter.Record, suspicion *int64) wire.Role {
	single := len(own) == 1
	large := single && len(own[0].Value) > offerAbove
	switch {
	case !b.gives:
		// Theirs may hold further keys, whatever the age of the newest: our
		// admission decides.
		return wire.Older
	case !b.gets && single:
		return roleOffered // theirs will not come, but ours may be wanted
	case !b.gets, !single && age >= 0:
		return wire.Newer
	case age < 0 && large:
		return roleBid
	case age < 0:
		return wire.Older
	case age > 0 && !large:
		return wire.Newer
	case age > 0:
		return roleOffered
	}
	// As new as theirs to within 64 seconds: only the versions can tell.
	// While it is little, the record itself goes along and saves a round trip.
	if cost := recordSize(&own[0]); !large && cost <= *suspicion {
		*suspicion -= cost
		b.doubtful += cost
		return wire.Newer
	}
	return roleOffered
}

// offerOf is a record without its value. The hash goes along where the value
// is large enough for it to be worth the chance that both contents are equal.
func offerOf(r *dbadapter.Record) wire.Offer {
	o := wire.Offer{Record: *r}
	if o.Hashed = len(r.Value) > offerAbove; o.Hashed {
		o.Hash = r.ContentHash()
	} else {
		o.Record.Signature = nil // only needed to adopt a version
	}
	o.Record.Value = nil
	return o
}

// tell sends the account. The order of the lists carries no meaning.
func (b *responder) tell() error {
	for role, list := range b.account.lists {
		for part := range slices.Chunk(list, wire.MaxIndices) {
			if err := b.link.send(&wire.Indices{Role: wire.Role(role), Indices: part}); err != nil {
				return err
			}
		}
	}
	for _, offers := range []struct {
		wanting bool
		list    []wire.Offer
	}{{false, b.account.offers}, {true, b.account.bids}} {
		for part := range slices.Chunk(offers.list, wire.MaxOffers) {
			if err := b.link.send(&wire.Offers{Wanting: offers.wanting, Offers: part}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hear reads the responder's account, and answers its requests for cells on
// the way.
func (a *initiator) hear() (*wire.Result, error) {
	a.link.report.Rounds = 1
	for {
		m, err := a.link.receive()
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *wire.More:
			if a.account.size() > 0 {
				return nil, violation("cells asked for after the differences were told")
			}
			if err := a.cellsAsked(m); err != nil {
				return nil, err
			}
		case *wire.Indices:
			if err := a.noteIndices(m); err != nil {
				return nil, err
			}
		case *wire.Offers:
			if err := a.noteOffers(m); err != nil {
				return nil, err
			}
		case *wire.Result:
			a.replica.Decoded()
			r := a.link.report
			r.MissingHere = len(a.account.lists[wire.Lacking])
			r.MissingThere = len(a.account.lists[wire.Wanted])
			r.Mismatched = a.account.mismatched()
			r.Estimate = int64(min(m.Estimate, math.MaxInt64))
			return m, nil
		default:
			return nil, unexpected(m)
		}
	}
}

func (a *initiator) noteIndices(m *wire.Indices) error {
	if m.Role > wire.Older {
		return violation("a list of role %d in an account", m.Role)
	}
	for _, i := range m.Indices {
		if err := a.note(i, m.Role); err != nil {
			return err
		}
	}
	return nil
}

func (a *initiator) noteOffers(m *wire.Offers) error {
	role := roleOffered
	if m.Wanting {
		role = roleBid
	}
	for i := range m.Offers {
		if err := a.note(a.opts.Keys.Hasher.Index(m.Offers[i].Record.Key), role); err != nil {
			return err
		}
	}
	if m.Wanting {
		a.account.bids = append(a.account.bids, m.Offers...)
	} else {
		a.account.offers = append(a.account.offers, m.Offers...)
	}
	return nil
}

// note takes one index into the account. A cell yields at most one index, so
// that the cells sent bound what this side has to remember.
func (a *initiator) note(i dbadapter.Index, role wire.Role) error {
	if a.account.size() >= a.cells {
		return violation("more differences told than the %d cells sent can show", a.cells)
	}
	if !a.account.add(i, role) {
		return violation("index %d told twice", i)
	}
	return nil
}
