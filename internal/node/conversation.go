package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/replica"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Ask is what an initiator wants of a sync. The zero value syncs all, both ways.
type Ask struct {
	Prefix    []byte
	Direction wire.Direction
	Method    wire.Method
	DryRun    bool
}

// Conversation is one side of a sync with a peer. Its driver carries the frames
// of Session, and ends it with End.
type Conversation struct {
	Session *reconcile.Session

	ns     *Namespace
	remote ID
	prefix []byte
	close  func() error // the replica; nil before it is opened
}

// MayCall decides whether this node may sync with a peer. It comes before
// anything leaves for the peer.
func (ns *Namespace) MayCall(remote ID) error {
	if !ns.Members().Has(remote, RoleRead) || remote == ns.node.ID {
		return fmt.Errorf("%w: this node does not list it as another member of the namespace; invite it, or join with a ticket from there", ErrDenied)
	}
	return nil
}

// Call notes that this node calls a peer: until done is called, the peer's own
// calls yield where they must.
func (ns *Namespace) Call(remote ID, a Ask) (done func()) {
	if a.DryRun {
		return func() {} // it changes nothing, and keeps nothing waiting
	}
	return ns.node.Sessions.calling(ns.Keys.ID, remote)
}

// Initiate begins a sync. enter is told of each step. The replica is opened
// before the stream: a scan may take longer than a peer waits for a Hello.
func (ns *Namespace) Initiate(ctx context.Context, remote ID, a Ask, enter func(reconcile.Step)) (*Conversation, error) {
	c := &Conversation{ns: ns, remote: remote, prefix: a.Prefix}
	set, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	o := c.options(ctx, enter)
	o.Direction, o.Method, o.Prefix, o.DryRun = a.Direction, a.Method, a.Prefix, a.DryRun
	if len(a.Prefix) == 0 {
		o.FirstCells = ns.openings.cells(remote)
	}
	c.Session = reconcile.Initiate(set, o)
	return c, nil
}

// Answer decides upon a peer's Hello. The error says why there will be no
// session: ErrVersion, ErrDenied or ErrBusy; reconcile.Refusal makes the message
// of it. A stranger, and a peer that asks for what is not there, get one and the
// same answer. Otherwise done must be called when the session is over.
func (n *Node) Answer(remote ID, h *wire.Hello) (ns *Namespace, done func(), err error) {
	if err := reconcile.CheckVersion(h); err != nil {
		return nil, nil, err
	}
	ns = n.Namespace(h.Namespace)
	if ns == nil || !ns.Members().Has(remote, RoleRead) {
		return nil, nil, ErrDenied
	}
	if n.Sessions.yields(ns.Keys.ID, n.ID, remote) && !h.DryRun {
		return nil, nil, reconcile.ErrBusy
	}
	done, ok := n.Sessions.accept(remote)
	if !ok {
		return nil, nil, reconcile.ErrBusy
	}
	return ns, done, nil
}

// Respond begins this side of a sync that a peer's Hello asks for, of size
// bytes. The replica is opened when the session has found that the peer knows the
// secret.
func (ns *Namespace) Respond(ctx context.Context, remote ID, h *wire.Hello, size int, enter func(reconcile.Step)) *Conversation {
	c := &Conversation{ns: ns, remote: remote, prefix: h.Prefix}
	c.Session = reconcile.Respond(func(*wire.Hello) (reconcile.Replica, error) { return c.open(ctx) }, c.options(ctx, enter))
	c.Session.Next() // it waits for the Hello, which is here
	c.Session.Deliver(h, size)
	return c
}

func (c *Conversation) options(ctx context.Context, enter func(reconcile.Step)) reconcile.Options {
	n := c.ns.node
	o := reconcile.Options{
		Keys: c.ns.Keys, Self: []byte(n.ID), Remote: []byte(c.remote),
		Admit: func(records []dbadapter.Hashed) ([]reconcile.Verdict, error) {
			return c.ns.Admit(ctx, c.remote, records)
		},
		Enter: enter, Elapsed: n.Elapsed, Declined: c.ns.declined.by(c.remote, n.Now, c.ns.Members().Policy().MaxSkew), Budget: n.Budget,
	}
	n.random(o.Nonce[:], ForNonce)
	return o
}

// open opens the set of records that the sync is about.
func (c *Conversation) open(ctx context.Context) (reconcile.Replica, error) {
	ns := c.ns
	if len(c.prefix) > 0 {
		r, err := replica.OpenPrefix(ctx, ns.Store, ns.Keys, c.prefix, c.tick, c.reserve)
		if err != nil {
			return nil, err
		}
		c.close = r.Close
		return r, nil
	}
	if _, err := ns.Grow(ctx, c.tick); err != nil {
		return nil, err
	}
	r, err := ns.Live.Snapshot(ctx, ns.Store, c.tick)
	if err != nil {
		return nil, err
	}
	c.close = r.Close
	return r, nil
}

// tick lets the session tell its peer now and then that a scan goes on. An
// initiator's first scan comes before its session.
func (c *Conversation) tick() error {
	if c.Session == nil {
		return nil
	}
	return c.Session.Tick()
}

// reserve takes memory from the session's budget until it ends.
func (c *Conversation) reserve(bytes int64) error {
	if c.Session == nil {
		return nil
	}
	return c.Session.Reserve(bytes)
}

// Grow lengthens the live sketch where the namespace has outgrown it, and
// reports whether it did. One sync does so at a time; the others use the
// shorter one.
func (ns *Namespace) Grow(ctx context.Context, tick func() error) (bool, error) {
	if !ns.growing.TryLock() {
		return false, nil
	}
	defer ns.growing.Unlock()
	grown, err := ns.Live.Grow(ctx, ns.Store, tick)
	if errors.Is(err, reconcile.ErrBusy) {
		return false, nil // too much was written meanwhile; the next sync tries again
	}
	return grown, err
}

// End closes the session and gives back what it held. err is how the driver saw
// it end. The report is meaningful beside an error.
func (c *Conversation) End(err error) (reconcile.Report, error) {
	report := c.Session.Report()
	c.Session.Close()
	if err == nil {
		err = c.Session.Err() // a session that is not over has not done its work
	}
	if c.close != nil {
		if closed := c.close(); err == nil {
			err = closed
		}
	}
	if err == nil && len(c.prefix) == 0 && report.Method != wire.MethodAll {
		c.ns.openings.note(c.remote, report.Differences())
	}
	if err == nil {
		c.ns.doubt(c.remote, report.Verified && len(c.prefix) == 0)
	}
	return report, err
}

// Proved is the error of a sync that ran to its end and did not make the two
// sets equal: ErrRejected where one side declined records, ErrNotVerified where
// the proof is missing. A dry run, and a sync of one direction that left records
// for the other, have not tried to.
func Proved(a Ask, r *reconcile.Report) error {
	switch {
	case r.Verified || a.DryRun:
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
