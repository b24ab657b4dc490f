package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Conversation is one side of a sync with a peer. Its driver carries the frames
// of Session, and ends it with End. It goes straight through this file:
//
//	MayCall, Initiate    this node calls: the replica is opened before the stream
//	Answer, Respond      a peer calls: its Hello says for which part
//	open                 the turn of the bulk sender; then step sketch, by package replica
//	greeting, heed       what the two sides say of themselves
//	                     steps subtract, peel and fetch are the session's own
//	admit                step apply, in turn
//	End                  step verify: what the sync has proved, and what is remembered of it
type Conversation struct {
	Session *reconcile.Session

	part     *Part
	remote   ID
	incoming bool
	ask      syncing.Ask // of the initiator
	// claim is that to the turn of the bulk sender; it claims nothing for a control namespace.
	claim *syncing.Claim
	// brings: records may come to this side, as far as the peer's Hello says.
	brings bool
	// opened is the digest of the set as the replica has it.
	opened dbadapter.Digest
	left   time.Time // when this node's Hello left; zero at a responder
	// stands is what this side greets with, and theirs the peer's greeting, as far as
	// this side can believe it.
	stands gc.Greeting
	theirs wire.Greeting
	began  quorum.Term  // of this node's tenure, when the replica was opened
	twins  error        // ErrTwin of the peer, as this node has found
	close  func() error // the replica; nil before it is opened
	// collect takes out what the peer has collected; nil unless this node is behind.
	collect func() error
}

// MayCall decides whether this node may sync with a peer. It comes before
// anything leaves for the peer.
func (ns *Namespace) MayCall(remote ID) error {
	if err := ns.otherMember(remote); err != nil {
		return err
	}
	return ns.PausedWith(remote)
}

// mayRoute decides whether this node may ask a peer routed questions.
func (ns *Namespace) mayRoute(remote ID) error {
	if err := ns.otherMember(remote); err != nil {
		return err
	}
	return ns.peerPaused(remote)
}

func (ns *Namespace) otherMember(remote ID) error {
	if !ns.Admits(remote) || remote == ns.node.ID {
		return fmt.Errorf("%w: this node does not list it as another member of the namespace; invite it, or join with a ticket from there", ErrDenied)
	}
	return nil
}

// Call notes that this node calls a peer: until done is called, the peer's own
// calls yield where they must.
func (p *Part) Call(remote ID, a syncing.Ask) (done func()) {
	if a.DryRun {
		return func() {} // it changes nothing, and keeps nothing waiting
	}
	return p.ns.node.Sessions.Call(p.of(a).Keys.ID, remote)
}

// Initiate begins a sync. enter is told of each step. The replica is opened
// before the stream: a scan may take longer than a peer waits for a Hello.
func (p *Part) Initiate(ctx context.Context, remote ID, a syncing.Ask, enter func(reconcile.Step)) (*Conversation, error) {
	c := p.of(a).conversation(remote, a)
	c.brings = true
	replica, err := c.open(ctx)
	if err != nil {
		c.claim.End(false, false, false)
		return nil, err
	}
	o := c.options(ctx, enter)
	o.Direction, o.Method, o.Prefix, o.Span, o.DryRun, o.ListsMayDiffer = a.Direction, a.Method, a.Prefix, a.Span, a.DryRun, a.ListsMayDiffer
	if a.Keys != nil {
		o.Differs = func(d reconcile.KeyDifference) (bool, error) { return a.Keys.Take(d, c.tick) }
	}
	if a.Whole() {
		o.FirstCells = c.opening()
	}
	c.left = c.part.ns.node.Now()
	c.Session = reconcile.Initiate(replica, o)
	return c, nil
}

// opening is how many cells the Hello of a conversation carries. It is none to a
// peer that pushes and was last proved to hold what this node holds. What it has
// taken since it would have pushed.
func (c *Conversation) opening() int {
	if !c.ask.Control && c.part.ns.node.Push.On && c.part.equal.Has(c.remote, c.opened) {
		return reconcile.NoCells
	}
	return c.part.openings.Cells(c.remote)
}

// Answer decides upon a peer's Hello, and gives the part that it asks for. The error says why there will be no
// session: ErrVersion, ErrDenied, ErrPaused, ErrBusy or a RemovedError; reconcile.Refusal
// makes the message of it. A stranger, and a peer that asks for what is not there,
// get one and the same answer. Otherwise done must be called when the session is
// over.
//
// A peer that is not a member and proves the secret was a member, or is one that
// this node has not heard of. This node shows a former member what removed it, and
// lets the other show its list.
func (n *Node) Answer(remote ID, h *wire.Hello) (p *Part, done func(), err error) {
	if err := reconcile.CheckVersion(h); err != nil {
		return nil, nil, err
	}
	if p = n.part(h.Namespace); p == nil {
		return nil, nil, ErrDenied
	}
	accept := n.Sessions.Accept
	if !p.ns.Admits(remote) {
		switch former, was := p.ns.Members().Former(remote); {
		case !reconcile.Proves(p.Keys, []byte(remote), []byte(n.ID), h):
			return nil, nil, ErrDenied
		case p.isControl() && h.Direction == wire.Push:
			accept = n.Sessions.Introduce
		case was, p.ns.Members().Has(remote, RoleRead):
			return nil, nil, &reconcile.RemovedError{Statements: p.ns.Explain(remote, former)}
		default:
			return nil, nil, ErrDenied
		}
	}
	if p.ns.PausedWith(remote) != nil {
		return nil, nil, reconcile.ErrPaused
	}
	if n.Sessions.Yields(p.Keys.ID, n.ID, remote) && !h.DryRun {
		return nil, nil, fmt.Errorf("%w: this node has begun the same sync", reconcile.ErrBusy)
	}
	done, ok := accept(remote)
	if !ok {
		return nil, nil, fmt.Errorf("%w: as many syncs that peers began are running as may, of all peers or of this one", reconcile.ErrBusy)
	}
	return p, done, nil
}

// Respond begins this side of a sync that a peer's Hello asks for, of size
// bytes. The replica is opened when the session has found that the peer knows the
// secret.
func (p *Part) Respond(ctx context.Context, remote ID, h *wire.Hello, size int, enter func(reconcile.Step)) *Conversation {
	c := p.conversation(remote, p.AskOf(h))
	c.incoming, c.brings = true, h.Records > 0
	c.Session = reconcile.Respond(func(*wire.Hello) (reconcile.Replica, error) { return c.open(ctx) }, c.options(ctx, enter))
	c.Session.Next() // it waits for the Hello, which is here
	c.Session.Deliver(h, size)
	return c
}

// AskOf is what a Hello asks of the part.
func (p *Part) AskOf(h *wire.Hello) syncing.Ask {
	return syncing.Ask{
		Prefix: h.Prefix, Span: h.Span, Direction: h.Direction, Method: h.Method, DryRun: h.DryRun,
		Control: p.isControl(), ListsMayDiffer: h.ListsMayDiffer,
	}
}

func (p *Part) conversation(remote ID, a syncing.Ask) *Conversation {
	c := &Conversation{part: p, remote: remote, ask: a, claim: new(syncing.Claim)}
	if p.set != nil {
		c.claim = p.set.bulk.Claim(remote, a.Part(), p.ns.node.bulk().Turn, p.ns.node.elapsed)
	}
	return c
}

// options are those of both sides.
func (c *Conversation) options(ctx context.Context, enter func(reconcile.Step)) reconcile.Options {
	ns := c.part.ns
	n := ns.node
	o := reconcile.Options{
		Keys: c.part.Keys, Self: []byte(n.ID), Remote: []byte(c.remote),
		Greeting: c.greeting, Heed: func(theirs wire.Greeting) error { return c.heed(ctx, theirs) },
		Enter: enter, Elapsed: n.Elapsed, GiveWay: n.GiveWay, Declined: c.part.declined.By(c.remote, n.Now, ns.Members().Policy().MaxSkew), Budget: n.Budget,
	}
	n.random(o.Nonce[:], ForNonce)
	if c.ask.Control { // a list of members is small, and a statement comes behind those that it names
		o.PartsFrom = math.MaxInt64
		o.Admit = func(records []dbadapter.Hashed) func() ([]reconcile.Verdict, error) {
			return func() ([]reconcile.Verdict, error) { return ns.Admit(ctx, c.remote, records) }
		}
		return o
	}
	o.PartsFrom = n.bulk().PartsFrom
	o.Expect, o.Await = c.claim.Expect, c.claim.Await
	o.Aside = n.Aside
	o.Admit = func(records []dbadapter.Hashed) func() ([]reconcile.Verdict, error) { return c.admit(ctx, records) }
	return o
}

// open opens the set of records that the sync is about.
func (c *Conversation) open(ctx context.Context) (reconcile.Replica, error) {
	if err := c.takeTurn(); err != nil {
		return nil, err
	}
	if err := c.stand(ctx); err != nil {
		return nil, err
	}
	return c.sketch(ctx)
}

// takeTurn sees to it that this node is given many records by one peer at a time. A
// peer that calls and holds nothing needs no turn.
func (c *Conversation) takeTurn() error {
	if c.ask.Control {
		return nil
	}
	c.claim.Look()
	if c.ask.DryRun || !c.gets() || !c.brings {
		return nil
	}
	_, records, _ := c.part.Live.State()
	return c.claim.Open(c.ask.Whole() && records == 0)
}

// stand reads what this node says with the replica that is opened next.
func (c *Conversation) stand(ctx context.Context) (err error) {
	p := c.part
	if p.set != nil {
		if err := p.set.renounce(ctx); err != nil {
			return err
		}
		c.began = p.set.tenure.begun(p.ns.node.elapsed()) // before the list that counts in it
	}
	c.stands = gc.Greeting{List: p.Lists()}
	if c.conclusive() { // a snapshot that is not of all that the peer lacks says nothing
		c.stands, err = p.set.gc.Greet(ctx, p.Lists)
	}
	return err
}

// sketch opens the replica.
func (c *Conversation) sketch(ctx context.Context) (reconcile.Replica, error) {
	var r interface {
		reconcile.Replica
		Close() error
	}
	var err error
	switch p := c.part; {
	case len(c.ask.Prefix) > 0:
		r, err = p.Live.Prefix(ctx, p.Store, c.ask.Prefix, c.ask.Span, c.tick, c.reserve)
	case c.ask.Part():
		r, err = p.Live.Span(ctx, p.Store, c.ask.Span, c.tick, c.reserve)
	default:
		if _, err = p.Grow(ctx, c.tick); err == nil {
			r, err = p.Live.Snapshot(ctx, p.Store, c.tick)
		}
	}
	if err != nil {
		return nil, err
	}
	c.opened, c.close = r.Sum().Digest, r.Close
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

// greeting is what this node says of itself at the beginning of a sync.
func (c *Conversation) greeting() wire.Greeting {
	ns := c.part.ns
	return wire.Greeting{
		List: c.stands.List, Tau: c.stands.Tau, Floor: c.stands.Floor,
		Incarnation: ns.incarnation, Time: uint64(ns.node.Now().UnixMilli()),
	}
}

// heed decides upon the peer's greeting.
func (c *Conversation) heed(ctx context.Context, theirs wire.Greeting) error {
	c.part.declined.Under(c.remote, theirs.List)
	if !c.ask.Control && !c.ask.ListsMayDiffer && theirs.List != c.part.Lists() {
		return reconcile.ErrListsDiffer
	}
	if c.ask.Control {
		return nil
	}
	ns, now := c.part.ns, c.part.ns.node.Now()
	c.theirs = ns.believe(theirs)
	ns.node.offsets.Measure(c.remote, theirs.Time, c.left, now)
	if c.twins = ns.twins.Greeted(c.remote, &theirs, now, ns.Members().Policy().MaxSkew); c.twins != nil {
		return c.twins
	}
	return c.keepUp(ctx)
}

// gets reports whether records may travel to this side.
func (c *Conversation) gets() bool {
	if c.incoming {
		return c.ask.Direction != wire.Pull
	}
	return c.ask.Direction != wire.Push
}

// conclusive reports whether the sync moves all that differs in the data, so that its
// end tells what each side holds.
func (c *Conversation) conclusive() bool {
	return !c.ask.Control && !c.ask.DryRun && c.ask.Whole() && c.ask.Direction == wire.Both
}

// inTerm is the term of this node's tenure to which the sync belongs. It is none if
// the two had different lists, or went by different rows.
func (c *Conversation) inTerm() quorum.Term {
	if c.theirs.List != c.stands.List {
		return noTerm
	}
	return c.began
}

// admit is Admit of the conversation's set, in its turn if many records come.
func (c *Conversation) admit(ctx context.Context, records []dbadapter.Hashed) func() ([]reconcile.Verdict, error) {
	commit := c.part.set.Admit(ctx, c.remote, c.theirs.Floor, c.inTerm(), records)
	return func() ([]reconcile.Verdict, error) {
		verdicts, err := commit() // what has come is kept, whoever has the turn now
		applied, bytes := 0, int64(0)
		for i, v := range verdicts {
			if v.Reason == 0 && v.Result == dbadapter.Applied {
				applied, bytes = applied+1, bytes+int64(records[i].Weight())
			}
		}
		return verdicts, cmp.Or(err, c.claim.Applied(applied, bytes))
	}
}

// End closes the session and gives back what it held. err is how the driver saw
// it end. The report is meaningful beside an error.
func (c *Conversation) End(err error) (reconcile.Report, error) {
	report, ns := c.Session.Report(), c.part.ns
	if err = c.leave(&report, err); err == nil {
		err = c.verify(&report)
	}
	if failed := ns.renounce(context.Background()); err == nil {
		err = failed
	}
	if c.twins == nil {
		err = ns.copied.Ended(c.remote, ns.node.Now(), err)
	}
	if err == nil {
		c.remember(&report)
	}
	return report, err
}

// leave gives back what the session held.
func (c *Conversation) leave(r *reconcile.Report, err error) error {
	c.Session.Close()
	if err == nil {
		err = c.Session.Err() // a session that is not over has not done its work
	}
	c.suspect(&r.Repair, err)
	if c.close != nil {
		if closed := c.close(); err == nil {
			err = closed
		}
	}
	c.claim.End(!c.incoming, err == nil, r.Applied > 0 && c.ask.Part())
	if c.collect != nil {
		if failed := c.collect(); failed != nil {
			err = failed
		}
	}
	return err
}

// verify concludes what a sync that ended well has shown of the two sets. What has been proved
// is not lost with the caller's patience.
func (c *Conversation) verify(r *reconcile.Report) error {
	if r.Split != nil || !c.conclusive() || c.theirs.List != c.stands.List {
		return nil
	}
	follows := r.Verified && c.part.set.tenure.equal(c.remote, c.theirs.Floor, c.inTerm())
	err := c.settle(context.Background(), r)
	if follows {
		err = errors.Join(err, c.part.set.conclude())
	}
	return err
}

// remember notes what the next syncs with the peer go by.
func (c *Conversation) remember(r *reconcile.Report) {
	p, n, whole := c.part, c.part.ns.node, c.ask.Whole() && r.Split == nil
	if whole && r.Method != wire.MethodAll {
		p.openings.Note(c.remote, r.Differences())
	}
	if c.ask.DryRun { // it proves what differs, and leaves it so
		return
	}
	if !c.ask.Control {
		p.set.doubt(c.remote, r.Verified && whole)
		if whole {
			p.set.pushes.Met(r.Sent)
		}
	}
	pushes := c.ask.Control || n.Pushes == nil || n.Pushes(c.remote)
	if r.Verified && whole && c.ask.Direction == wire.Both && r.Applied == 0 && pushes {
		p.equal.Note(c.remote, c.opened, n.elapsed()) // the peer has just this now
	}
}

// bulk is the node's, with its defaults.
func (n *Node) bulk() syncing.Bulk { return n.Bulk.WithDefaults() }
