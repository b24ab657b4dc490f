package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Course decides the conversations of one sync, in their order. The list of members
// is first where the two sides do not have the same. A large sync goes in parts,
// some of them at once. A driver asks Next for as many conversations as there are,
// holds them, and reports to Ended how each went. When it holds none and Next gives
// none, Result is that of the sync.
type Course struct {
	of     *Part // what is synced
	remote ID
	ask    Ask // what the caller wants

	mu   sync.Mutex // guards what follows
	todo []Ask      // the next first
	tally
	// rounds counts the conversations that found that the lists differ.
	rounds int
	// introduced: this node has shown the peer its list already.
	introduced bool
	// again: what was declined for the floor was looked at once more already.
	again bool
}

// Course begins a sync. The greeting tells where the lists differ, at no cost where
// they do not. The greeting covers the list of members alone, and not the addresses
// and pledges. So a sync of everything takes the control namespace first where that
// has changed since it was last found equal to the peer's.
func (set *Set) Course(remote ID, a Ask) *Course {
	// A dry run changes nothing, so that it cannot make the lists equal first.
	a.ListsMayDiffer = a.DryRun
	c := newCourse(set.part(a), remote, a)
	whole := !a.Control && !a.DryRun && a.Direction == wire.Both && len(a.Prefix) == 0
	if whole && !set.ns.alike.has(remote, set.ns.Control.Live) {
		c.before(Ask{Control: true})
	}
	return c
}

// Course begins a sync of the control namespace alone: with a member that shares no set.
func (ns *Namespace) Course(remote ID) *Course {
	return newCourse(&ns.Control, remote, Ask{Control: true})
}

func newCourse(p *Part, remote ID, a Ask) *Course {
	return &Course{of: p, remote: remote, ask: a, todo: []Ask{a}} // not shared yet
}

// before puts conversations before those that are still to come.
func (c *Course) before(asks ...Ask) {
	if c.failed == nil {
		c.todo = append(slices.Clone(asks), c.todo...)
	}
}

// Next is a conversation to be held now, beside those that are held already.
func (c *Course) Next() (Ask, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.todo) == 0 || c.ask.Keys.full() {
		return Ask{}, false
	}
	a := c.todo[0]
	if most := partsAtOnce; len(c.running) >= most || len(c.running) > 0 && (a.Span == (wire.Span{}) || c.whole()) {
		return Ask{}, false // all but parts are held alone
	}
	c.todo = c.todo[1:]
	c.begun(a)
	return a, true
}

// Ended tells how a conversation went: its report, and what Conversation.End and
// Proved say.
func (c *Course) Ended(a Ask, r reconcile.Report, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over(a, r, err)
	removed, told := errors.AsType[*reconcile.RemovedError](err)
	switch {
	case err == nil && r.Split != nil:
		c.divide(a, r.Split)
	case err == nil && r.Behind && c.resumed < maxRounds:
		c.resumed++
		c.before(a) // to prove it, and find what is not behind the key
	case err == nil:
	case a.Span != (wire.Span{}) && (errors.Is(err, ErrRejected) || errors.Is(err, reconcile.ErrNotVerified)):
		// The others go on; the sync of everything that follows them judges.
	case !c.again && errors.Is(err, ErrRejected) && r.DeclinedHere[wire.ReasonFloor]+r.Collected+r.SetAside > 0:
		// What one side declined for its floor has left the other, unless the floor is
		// not proven there yet.
		c.again = true
		c.before(a)
	case c.ask.DryRun && errors.Is(err, ErrDenied):
		c.fail(c.unlisted(err))
	case c.ask.DryRun:
		c.fail(err)
	case told:
		if err = c.of.ns.heed(c.remote, removed.Statements); err != nil {
			c.fail(err)
			return
		}
		c.introduce(a, reconcile.ErrDenied)
	case errors.Is(err, ErrDenied):
		c.introduce(a, err)
	case a.Control && (errors.Is(err, ErrRejected) || errors.Is(err, reconcile.ErrNotVerified)):
		// What could be synced of the list is; the data go on under what there is.
	case errors.Is(err, reconcile.ErrListsDiffer) && !a.ListsMayDiffer && !a.Control:
		c.rounds++
		a.ListsMayDiffer = c.rounds >= maxRounds-1
		c.before(Ask{Control: true}, a)
	default:
		c.fail(err)
	}
}

// introduce answers a peer that does not know this node: it may not have heard yet
// that this node is a member. This node shows it the list, once.
func (c *Course) introduce(a Ask, err error) {
	if c.introduced {
		c.fail(c.unlisted(err))
		return
	}
	c.introduced = true
	c.before(Ask{Control: true, Direction: wire.Push}, a)
}

// ErrNotHeld: a member does not hold a shard. While shards move that is no failure. It is ErrDenied, too.
var ErrNotHeld = errors.New("that node does not hold shard")

// unlisted says what the peer's denial means, and what to do about it. What this
// node itself denies says so where it is denied.
func (c *Course) unlisted(err error) error {
	if gone := c.of.ns.Outside(); gone != nil {
		return gone
	}
	if set := c.of.set; set != nil && set.ns.rule != nil && set.ns.Admits(c.remote) {
		return fmt.Errorf("%w %d: %w; it has yet to fetch it, or has handed it over, or goes by another list of members", ErrNotHeld, set.shard, err)
	}
	return fmt.Errorf("%w: that node does not list this one as a member, or does not hold the namespace; ask for an invitation", err)
}

func (c *Course) fail(err error) { c.todo, c.failed = nil, cmp.Or(c.failed, err) }

// Result is the report about the data: of the last conversation, or of all parts; and
// how the sync ended. The report is meaningful beside an error.
func (c *Course) Result() (reconcile.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result()
}

// Proved is the error of a sync that ran to its end and did not make the two
// sets equal: ErrRejected where one side declined records, ErrNotVerified where
// the proof is missing. A dry run, and a sync of one direction that left records
// for the other, have not tried to.
func Proved(a Ask, r *reconcile.Report) error {
	switch {
	case r.Verified || a.DryRun || r.Split != nil || r.Behind:
		return nil
	case r.Rejected > 0:
		return fmt.Errorf("%w: %s", ErrRejected, rejected(r))
	case a.Direction != wire.Both:
		return nil
	}
	return reconcile.ErrNotVerified
}

// rejected says how many records each side declined, and why.
func rejected(r *reconcile.Report) string {
	var parts []string
	if n := r.DeclinedThere.Sum(); n > 0 {
		parts = append(parts, fmt.Sprintf("the peer declines %d of this node's (%s)", n, r.DeclinedThere))
	}
	if n := r.DeclinedHere.Sum(); n > 0 {
		parts = append(parts, fmt.Sprintf("this node declines %d of the peer's (%s)", n, r.DeclinedHere))
	}
	if r.DeclinedThere[wire.ReasonClock] > 0 {
		parts = append(parts, "is this machine's clock right?")
	}
	return strings.Join(parts, "; ")
}
