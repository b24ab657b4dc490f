package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What this node answers to routed questions: what it holds of a shard, and what has
// become of the records that it is to hold.

// Home is the shard of a key; 0 in a namespace that is one shard.
func (ns *Namespace) Home(key []byte) placement.Shard {
	if ns.rule == nil {
		return 0
	}
	return ns.rule.Home(key, dbadapter.HomeHash(ns.secret, key))
}

// proofs are what the proofs of routed questions are made with.
func (ns *Namespace) proofs() reconcile.Keys { return reconcile.Keys{Secret: ns.secret, ID: ns.id} }

// routedGreeting is what this node says of itself beside a routed question or answer. It
// promises nothing, and so needs no lock.
func (ns *Namespace) routedGreeting() wire.Greeting {
	return wire.Greeting{List: ns.Members().Digest(), Incarnation: ns.incarnation, Time: uint64(ns.node.Now().UnixMilli())}
}

// held is this node's set of a shard, or nil.
func (ns *Namespace) held(shard placement.Shard) *Set {
	sets := ns.Sets()
	i := slices.IndexFunc(sets, func(set *Set) bool { return set.shard == shard })
	if i < 0 {
		return nil
	}
	return sets[i]
}

// settled reports whether what this node does not hold of the set is not there, as far as
// has come to it: it was found equal with a node that held the set before it, and no loss
// is known since.
func (set *Set) settled() bool {
	return !set.vouching.recovers.Load() && !set.ns.Members().state.Lost.Missing()
}

// Routed is a routed question of a peer that is to be answered.
type Routed struct {
	ns     *Namespace
	remote ID
	ask    *wire.Ask
	done   func()
}

// Routed decides upon a peer's routed question; see Asked. Done must be called unless
// there is an error.
func (n *Node) Routed(remote ID, m *wire.Ask) (*Routed, error) {
	if m.Version != wire.Version {
		return nil, reconcile.ErrVersion
	}
	if !m.Question.Subject().Routed() {
		return nil, fmt.Errorf("%w: a routed question about %d", reconcile.ErrProtocol, m.Question.Subject())
	}
	ns := n.Namespace(m.Namespace)
	if ns == nil {
		return nil, ErrDenied
	}
	if err := ns.mayAsk(ns.proofs(), remote, m, ns.peerPaused); err != nil {
		return nil, err
	}
	done, ok := n.Sessions.asked.take(remote, m.Question.Subject(), n.elapsed())
	if !ok {
		return nil, reconcile.ErrBusy
	}
	return &Routed{ns, remote, m, done}, nil
}

// Namespace is the one that the question is about.
func (r *Routed) Namespace() *Namespace { return r.ns }

// Done ends the question.
func (r *Routed) Done() { r.done() }

// Answer answers the question. What it says to be held is durable. A poll of the feed may wait,
// unless wait is nil.
func (r *Routed) Answer(ctx context.Context, wait Waiter) (*wire.Reply, error) {
	m := &wire.Reply{}
	list := r.ns.reckonedList() // before the answer: what it says it says by this one, or by a later one
	var floor dbadapter.Timestamp
	var err error
	switch q := r.ask.Question.(type) {
	case *wire.AskRecord:
		m.Answer, floor, err = r.record(q)
	case *wire.AskHold:
		m.Answer, err = r.hold(ctx, q)
	case *wire.AskScan:
		m.Answer, err = r.scan(ctx, q)
	case *wire.AskChanges:
		m.Answer, err = r.changes(ctx, q)
	case *wire.AskFeed:
		m.Answer, err = r.feed(ctx, q, wait)
	}
	if err != nil {
		return nil, err
	}
	m.Greeting = r.ns.routedGreeting()
	m.Greeting.List, m.Greeting.Floor = list, floor
	r.ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveReply(r.ns.proofs(), []byte(r.ns.node.ID), []byte(r.remote), r.ask, m)
	return m, nil
}

// record looks up what is held under a key. floor is up to when deletions have been collected from the set.
func (r *Routed) record(q *wire.AskRecord) (a *wire.RecordAnswer, floor dbadapter.Timestamp, err error) {
	shard := placement.Shard(q.Shard)
	a = &wire.RecordAnswer{Elsewhere: r.ns.elsewhere(shard)}
	set := r.ns.held(shard)
	if set == nil {
		return a, 0, nil
	}
	own, err := set.Answer(q.Key)
	if err != nil {
		return nil, 0, err
	}
	a.Record = own.Record
	if a.Holds = a.Elsewhere != nil; !a.Holds {
		a.Settled, a.Current = own.Settled, own.Current
	}
	return a, own.Floor, nil
}

// Answer is what a host says of a key: what it holds, and how sure it is.
func (set *Set) Answer(key []byte) (a route.Answer, err error) {
	// Before the snapshot, which can then only hold more, and behind it, where the store may
	// have been found to be damaged meanwhile.
	settled, current := set.settled(), set.Current()
	if a.Record, err = set.Held(key); err != nil {
		return a, err
	}
	a.Floor = dbadapter.Timestamp(set.vouching.floor.Load()) // behind the snapshot: what it lacks may be collected
	a.Host, a.Settled = true, settled && set.settled()
	a.Current = a.Settled && current
	return a, nil
}

// hold admits records by the one admission, and lists no refusal: their writer is told.
func (r *Routed) hold(ctx context.Context, q *wire.AskHold) (*wire.HoldAnswer, error) {
	shard := placement.Shard(q.Shard)
	if away := r.ns.elsewhere(shard); away != nil {
		return &wire.HoldAnswer{Elsewhere: away}, nil
	}
	set := r.ns.held(shard)
	if set == nil {
		return nil, reconcile.ErrBusy // it is a host since just now
	}
	records := make([]dbadapter.Hashed, len(q.Records))
	for i, one := range q.Records {
		var err error
		if records[i], err = dbadapter.Hash(set.Keys.Hasher, one); err != nil {
			return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
		}
		if !r.ns.placedIn(one.Key, shard) {
			return nil, fmt.Errorf("%w: a record of another shard than %d", reconcile.ErrProtocol, shard)
		}
	}
	answer := &wire.HoldAnswer{Settled: set.settled(), Outcomes: make([]wire.HoldOutcome, len(records))}
	if q.Look {
		if err := set.look(records, answer.Outcomes); err != nil {
			return nil, err
		}
		answer.Settled = answer.Settled && set.settled()
		return answer, nil
	}
	for tries := 1; ; tries++ {
		err := r.holdAll(ctx, set, q, records, answer.Outcomes)
		switch away := r.ns.elsewhere(shard); {
		case errors.Is(err, dbadapter.ErrConflict) && tries < maxAttempts: // what was looked at has changed
			clear(answer.Outcomes)
			continue
		case errors.Is(err, dbadapter.ErrConflict):
			return nil, reconcile.ErrBusy
		case errors.Is(err, ErrNotHost) && away != nil: // since just now
			return &wire.HoldAnswer{Elsewhere: away}, nil
		case err != nil:
			return nil, err
		}
		return answer, nil
	}
}

// holdAll admits those of the records that may be held. One record is committed only in the place of what
// was looked at: dbadapter.ErrConflict, where another one has come in between. Several are not, since one
// would keep back the others.
func (r *Routed) holdAll(ctx context.Context, set *Set, q *wire.AskHold, records []dbadapter.Hashed, outcomes []wire.HoldOutcome) (err error) {
	places := make([]int, 0, len(records)) // of those that are let in, among all
	let := make([]dbadapter.Hashed, 0, len(records))
	var over *dbadapter.Version
	for i := range records {
		o := &outcomes[i]
		if q.New {
			if o.There, err = set.there(&records[i].Record); err != nil {
				return err
			}
		}
		if q.Seen && !o.There {
			var held dbadapter.Version
			if o.Other, held, err = set.unseen(&records[i].Record, q); err != nil {
				return err
			}
			if q.Condition && held == records[i].Record.Version {
				o.Other = set.overruledBy(held, q.On)
			}
			if len(records) == 1 {
				over = &held
			}
		}
		if o.Other == nil && !o.There {
			places, let = append(places, i), append(let, records[i])
		}
	}
	return r.let(ctx, set, let, over, func(i int) *wire.HoldOutcome { return &outcomes[places[i]] })
}

// let admits records, and says what has become of each. over is the version that must be held, if not nil.
func (r *Routed) let(ctx context.Context, set *Set, records []dbadapter.Hashed, over *dbadapter.Version, outcome func(i int) *wire.HoldOutcome) error {
	a := set.arrived(r.ns.Members(), r.remote, 0, r.ns.node.Now(), records)
	a.way, a.began, a.held = byRoute, set.tenure.term(), over
	if err := set.let(ctx, set.past(), a); err != nil {
		return err
	}
	for i, v := range a.verdicts {
		o := outcome(i)
		switch {
		case v.Reason != 0:
			o.Declined = v.Reason
		case v.Result == dbadapter.Dominated:
			held, err := set.Held(records[i].Key)
			switch {
			case err != nil:
				return err
			case held == nil: // it has been collected since
				o.Declined = wire.ReasonFloor
			default:
				o.Other = seen(held)
			}
		}
	}
	return nil
}

// placedIn reports whether a record of the key may be in the shard.
func (ns *Namespace) placedIn(key []byte, shard placement.Shard) bool {
	return ns.rule == nil || ns.Home(key) == shard
}
