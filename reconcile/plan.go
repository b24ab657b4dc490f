package reconcile

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// plan is the difference plan: what is to be done about each decoded index. The
// responder draws it up, the initiator reads it.
type plan struct {
	// role is what each index is for. Offered and bid indices stand in it
	// with roles of their own, which never travel.
	role map[dbadapter.Index]wire.Role
	// lists are the indices that were given each role, ascending at the
	// responder, as told at the initiator.
	lists [roles][]dbadapter.Index
	// offers and bids are the heads that the initiator was told. offers are the
	// responder's records that are newer, or as new, and travel by hash first. bids are
	// those that are older and whose content may be that of the newer one.
	offers, bids []wire.Offer
}

// The roles that do not travel.
const (
	roleOffered = wire.Fetch + 1 + iota
	roleBid
	roleFetched // offered, and asked for
	roles
)

func newPlan() *plan { return &plan{role: map[dbadapter.Index]wire.Role{}} }

// add gives an index its role, and reports whether it is the first.
func (p *plan) add(i dbadapter.Index, r wire.Role) bool {
	if _, twice := p.role[i]; twice {
		return false
	}
	p.role[i] = r
	p.lists[r] = append(p.lists[r], i)
	return true
}

// drop takes the indices in some ranges out of the plan, and returns them.
func (p *plan) drop(in map[dbadapter.Range]bool, h dbadapter.Hasher) map[dbadapter.Index]wire.Role {
	dropped := map[dbadapter.Index]wire.Role{}
	for role := range p.lists {
		p.lists[role] = slices.DeleteFunc(p.lists[role], func(i dbadapter.Index) bool {
			if !in[dbadapter.RangeOf(i)] {
				return false
			}
			dropped[i] = p.role[i]
			delete(p.role, i)
			return true
		})
	}
	offered := func(o wire.Offer) bool { return in[dbadapter.RangeOf(h.Index(o.Record.Key))] }
	p.offers, p.bids = slices.DeleteFunc(p.offers, offered), slices.DeleteFunc(p.bids, offered)
	return dropped
}

// absorb takes in a plan for other indices.
func (p *plan) absorb(q *plan) {
	maps.Copy(p.role, q.role)
	for role := range p.lists {
		p.lists[role] = append(p.lists[role], q.lists[role]...)
		slices.Sort(p.lists[role])
	}
}

// size is the number of indices in the plan.
func (p *plan) size() int { return len(p.role) }

// count is the number of indices that were given one of the roles.
func (p *plan) count(of ...wire.Role) (n int) {
	for _, r := range of {
		n += len(p.lists[r])
	}
	return n
}

// mismatched counts the indices that both sides hold.
func (p *plan) mismatched() int { return p.size() - p.count(wire.Lacking, wire.Wanted) }

// draw makes the plan of the decoded differences.
func (b *responder) draw(found []coded.Difference) error {
	defer b.link.in(StepPeel)()
	suspicion := int64(ambiguousBytes)
	var mismatched []coded.Difference
	var indices []dbadapter.Index // of these
	for _, d := range found {
		if err := b.link.tick(); err != nil {
			return err
		}
		if !b.hello.Span.Holds(d.Index) {
			return violation("the cells tell of index %d, outside the ranges of the sync", d.Index)
		}
		switch d.Kind {
		case rateless.MissingHere:
			b.plan.add(d.Index, wire.Wanted)
		case rateless.Mismatched:
			mismatched, indices = append(mismatched, d), append(indices, d.Index)
		default:
			b.plan.add(d.Index, wire.Lacking)
		}
	}
	if err := b.own.each(b.link, indices, func(n int, own []dbadapter.Hashed) error {
		d := &mismatched[n]
		if len(own) == 0 {
			return fmt.Errorf("%w: the index lists a record under %d that is not there", dbadapter.ErrCorrupt, d.Index)
		}
		b.plan.add(d.Index, b.settle(d.Ours.Age(d.Theirs), own, &suspicion))
		return b.link.tick()
	}); err != nil {
		return err
	}
	for _, list := range b.plan.lists {
		slices.Sort(list)
	}
	b.counted()
	return nil
}

// counted notes the differences in the report.
func (b *responder) counted() {
	r := b.link.report
	r.MissingThere, r.MissingHere, r.Mismatched = b.plan.count(wire.Lacking), b.plan.count(wire.Wanted), b.plan.mismatched()
}

// settle says what happens to a mismatch, by the age of our records against
// theirs. A bucket of several records always travels whole: an offer names one.
func (b *responder) settle(age int, own []dbadapter.Hashed, suspicion *int64) wire.Role {
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
	b.unsure++
	// A small record travels at once, which saves a round trip.
	if cost := recordSize(&own[0].Record); !large && cost <= *suspicion {
		*suspicion -= cost
		b.doubtful += cost
		return wire.Newer
	}
	return roleOffered
}

// offerOf is a record without its value. A large value's hash is in it: the
// content may be the same on both sides.
func offerOf(r *dbadapter.Record) wire.Offer {
	o := wire.Offer{Record: *r}
	if o.Hashed = len(r.Value) > offerAbove; o.Hashed {
		o.Hash = r.ContentHash()
	} else {
		o.Record.Signature, o.Record.Signer = nil, 0 // only needed to adopt a version
	}
	o.Record.Value = nil
	return o
}

// tell sends the plan. The order of the lists carries no meaning. A long one leaves at
// once. An initiator to which so much may not come now says so while this side reads its
// records for the residual.
func (b *responder) tell() error {
	defer b.link.in(StepPeel)()
	long := b.plan.count(wire.Lacking, wire.Newer, roleOffered) >= longPlan
	for role := wire.Lacking; role <= wire.Older; role++ {
		for part := range slices.Chunk(b.plan.lists[role], wire.MaxIndices) {
			if err := b.link.sendNow(&wire.Indices{Role: role, Indices: part}, long); err != nil {
				return err
			}
		}
	}
	for _, role := range []wire.Role{roleOffered, roleBid} {
		for part := range slices.Chunk(b.plan.lists[role], wire.MaxOffers) {
			if err := b.tellOffers(role == roleBid, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellOffers sends the heads of the records under indices, one under each.
func (b *responder) tellOffers(wanting bool, indices []dbadapter.Index) error {
	m := &wire.Offers{Wanting: wanting}
	if err := b.own.each(b.link, indices, func(_ int, own []dbadapter.Hashed) error {
		m.Offers = append(m.Offers, offerOf(&own[0].Record))
		return b.link.tick()
	}); err != nil {
		return err
	}
	return b.link.send(m)
}

// hear reads the responder's plan, and answers its requests for cells on the
// way.
func (a *initiator) hear() (*wire.Result, error) {
	defer a.link.in(StepPeel)() // the responder peels, this side waits
	a.link.report.Rounds = 1
	for {
		m, err := a.link.receive()
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *wire.More:
			if a.plan.size() > 0 || len(a.sums) > 0 || a.listed != nil {
				return nil, violation("cells asked for after the differences were told")
			}
			if err := a.cellsAsked(m); err != nil {
				return nil, err
			}
		case *wire.Indices:
			if err := a.noteIndices(m); err != nil {
				return nil, err
			}
			if err := a.expects(false); err != nil {
				return nil, err
			}
		case *wire.Offers:
			if err := a.noteOffers(m); err != nil {
				return nil, err
			}
			if err := a.expects(false); err != nil {
				return nil, err
			}
		case *wire.Sums:
			if err := a.noteSums(m); err != nil {
				return nil, err
			}
		case *wire.Result:
			a.replica.Decoded()
			r := a.link.report
			r.MissingHere, r.MissingThere, r.Mismatched = a.plan.count(wire.Lacking), a.plan.count(wire.Wanted), a.plan.mismatched()
			r.Estimate = int64(min(m.Estimate, math.MaxInt64))
			return m, nil
		default:
			return nil, unexpected(m)
		}
	}
}

// expects lets the node decide whether the records that the plan tells of so far, or in
// all, may come to this side. The responder sends them unasked, once it has read them for
// its residual: this side says no before that.
func (a *initiator) expects(all bool) error {
	if a.opts.DryRun {
		return nil
	}
	return a.await(a.plan.count(wire.Lacking, wire.Newer, roleOffered), all)
}

func (a *initiator) noteIndices(m *wire.Indices) error {
	if m.Role > wire.Older {
		return violation("a list of role %d in a difference plan", m.Role)
	}
	for _, i := range m.Indices {
		if err := a.note(i, m.Role); err != nil {
			return err
		}
	}
	return nil
}

func (a *initiator) noteOffers(m *wire.Offers) error {
	role, list := roleOffered, &a.plan.offers
	if m.Wanting {
		role, list = roleBid, &a.plan.bids
	}
	for i := range m.Offers {
		key := m.Offers[i].Record.Key
		if err := a.link.reserve(int64(offerBytes + len(key) + m.Offers[i].Record.OptionalSize())); err != nil {
			return err
		}
		if err := a.note(a.opts.Keys.Hasher.Index(key), role); err != nil {
			return err
		}
	}
	*list = append(*list, m.Offers...)
	return nil
}

// note takes one index into the plan. A cell yields at most one index, so that the
// cells sent bound what this side has to remember. For ranges that were listed, its
// budget does.
func (a *initiator) note(i dbadapter.Index, role wire.Role) error {
	switch {
	case a.listed != nil:
		if !a.listed[dbadapter.RangeOf(i)] {
			return violation("index %d told, of a range that was not listed", i)
		}
		if err := a.link.reserve(cellBytes); err != nil {
			return err
		}
	case a.plan.size() >= a.cells:
		return violation("more differences told than the %d cells sent can show", a.cells)
	}
	if !a.opts.Span.Holds(i) {
		return violation("index %d lies outside the ranges of the sync", i)
	}
	if !a.plan.add(i, role) {
		return violation("index %d told twice", i)
	}
	return nil
}
