package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What this node answers, as a host, to routed questions. An answer counts if this node went by
// the asker's row when it was given: the row is looked at before, and again behind a commit or
// a snapshot. A row that this node takes up later finds the commit in its sets. (2)

// Home is the shard of a key; 0 in a namespace that is one shard. The key of a body or a hint names it.
func (ns *Namespace) Home(key []byte) placement.Shard {
	if ns.rule == nil {
		return 0
	}
	if shard, named := bodies.Shard(key); named && ns.Bodied() && int(shard) < ns.rule.Shards {
		return shard
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
	for _, set := range ns.Sets() {
		if set.shard == shard {
			return set
		}
	}
	return nil
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

// Answer answers the question. What it says to be held is durable.
func (r *Routed) Answer(ctx context.Context) (*wire.Reply, error) {
	m := &wire.Reply{}
	var floor dbadapter.Timestamp
	var err error
	switch q := r.ask.Question.(type) {
	case *wire.AskRecord:
		m.Answer, floor, err = r.ns.answerRecord(q)
	case *wire.AskHold:
		a, failed := r.ns.answerHold(ctx, r.remote, q)
		if err = failed; err == nil {
			m.Answer, floor = a, r.ns.declinedUpTo(a, placement.Shard(q.Shard))
		}
	case *wire.AskScan:
		m.Answer, err = r.ns.answerScan(ctx, q)
	case *wire.AskChanges:
		m.Answer, err = r.ns.answerChanges(ctx, q)
	case *wire.AskKept:
		m.Answer, err = r.ns.answerKept(ctx, q)
	case *wire.AskBody:
		m.Answer, err = r.ns.answerBody(q)
	case *wire.AskNames:
		m.Answer, err = r.ns.answerNames(ctx, q)
	case *wire.AskFeed:
		m.Answer, err = r.ns.answerFeed(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	m.Greeting = r.ns.routedGreeting()
	m.Greeting.Floor = floor
	r.ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveReply(r.ns.proofs(), []byte(r.ns.node.ID), []byte(r.remote), r.ask, m)
	return m, nil
}

// asHost is this node's set of a shard for which a question names the row by which this node
// goes. It is nil where the node goes by another one. reconcile.ErrBusy: the set is being opened.
func (ns *Namespace) asHost(at *wire.ShardRow) (*Set, error) {
	if !ns.goesBy(at) || !ns.Row(placement.Shard(at.Shard)).IsHost(ns.node.ID) {
		return nil, nil //nolint:nilnil // that is the answer
	}
	if set := ns.held(placement.Shard(at.Shard)); set != nil {
		return set, nil
	}
	return nil, reconcile.ErrBusy
}

// answerRecord looks up what is held under a key. floor is up to when deletions have been collected.
func (ns *Namespace) answerRecord(q *wire.AskRecord) (a *wire.RecordAnswer, floor dbadapter.Timestamp, err error) {
	set, err := ns.asHost(&q.ShardRow)
	if set == nil {
		return &wire.RecordAnswer{Apart: true}, 0, err
	}
	whole := set.settled()
	held, err := set.Held(q.Key)
	if err != nil {
		return nil, 0, err
	}
	floor = dbadapter.Timestamp(set.vouching.floor.Load()) // behind the snapshot: what it lacks may be collected
	if !ns.goesBy(&q.ShardRow) {
		return &wire.RecordAnswer{Apart: true}, 0, nil
	}
	a = &wire.RecordAnswer{Whole: whole && set.settled()} // behind the snapshot, too: the store may have been found to be damaged meanwhile
	switch {
	case held == nil:
	case q.Head:
		a.Head = held.Version
	default:
		a.Record = held
	}
	return a, floor, nil
}

// answerHold admits records by the one admission, and lists no refusal: their writer hears of it.
func (ns *Namespace) answerHold(ctx context.Context, from ID, q *wire.AskHold) (*wire.HoldAnswer, error) {
	set, err := ns.asHost(&q.ShardRow)
	if set == nil {
		return &wire.HoldAnswer{Apart: true}, err
	}
	records := make([]dbadapter.Hashed, len(q.Records))
	for i, one := range q.Records {
		if records[i], err = dbadapter.Hash(set.Keys.Hasher, one); err != nil {
			return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
		}
		if !ns.placedIn(one.Key, placement.Shard(q.Shard)) {
			return nil, fmt.Errorf("%w: a record of another shard than %d", reconcile.ErrProtocol, q.Shard)
		}
	}
	a := &wire.HoldAnswer{Outcomes: make([]wire.HoldOutcome, len(records))}
	for tries := 1; ; tries++ {
		whole := set.settled()
		if len(q.On) > 0 && !whole { // only who has all that was acknowledged can compare
			return a, nil
		}
		switch err = ns.hold(ctx, set, from, q, records, a.Outcomes); {
		case errors.Is(err, dbadapter.ErrConflict) && tries < maxAttempts: // what was looked at has changed
			clear(a.Outcomes)
			continue
		case errors.Is(err, dbadapter.ErrConflict):
			return nil, reconcile.ErrBusy
		case !ns.goesBy(&q.ShardRow):
			return &wire.HoldAnswer{Apart: true}, nil
		case err != nil:
			return nil, err
		}
		a.Whole = whole && (set.settled() || len(q.On) > 0) // what was compared is committed
		return a, nil
	}
}

// declinedUpTo is up to when this node takes no record of a shard, where it has declined one for
// that. 0: it has not.
func (ns *Namespace) declinedUpTo(a *wire.HoldAnswer, shard placement.Shard) dbadapter.Timestamp {
	set := ns.held(shard)
	if set == nil || !slices.ContainsFunc(a.Outcomes, func(o wire.HoldOutcome) bool { return o.Declined == wire.ReasonFloor }) {
		return 0
	}
	set.vouching.Lock()
	defer set.vouching.Unlock()
	return set.vouching.mark.upTo()
}

// hold admits those of the records that may be held. One record, a batch and what has conditions
// are committed only in the place of what was looked at: dbadapter.ErrConflict, where another
// record was committed in between. Further ones are not, since one would keep back the others.
func (ns *Namespace) hold(ctx context.Context, set *Set, from ID, q *wire.AskHold, records []dbadapter.Hashed, outcomes []wire.HoldOutcome) error {
	together := q.Batch || len(q.On) > 0
	places := make([]int, 0, len(records)) // of those that are let in, among all
	let := make([]dbadapter.Hashed, 0, len(records))
	var over []*dbadapter.Version
	var newer []bool
	refused := false // a later one that has seen a record is none
	for i := range records {
		r, o := &records[i].Record, &outcomes[i]
		held, err := set.Held(r.Key)
		if err != nil {
			return err
		}
		var version dbadapter.Version
		if held != nil {
			version = held.Version
		}
		switch {
		case !q.Passed && !ns.mayTake(r, held):
			o.Declined, refused = wire.ReasonBody, true
		case len(q.On) > 0 && q.On[i] != nil && version != *q.On[i] && version.Compare(*q.On[i]) < 0:
			return reconcile.ErrBusy // it was to be given what the reader has found
		case q.New && ns.says(held, r):
			o.There, o.Other = true, &dbadapter.Record{Version: version}
		case len(q.On) > 0 && q.On[i] != nil && version != *q.On[i], unseen(r, held):
			o.Other = seen(held)
			refused = refused || len(q.On) > 0 || !held.Supersedes(r.Version)
		default:
			places, let = append(places, i), append(let, records[i])
			newer = append(newer, held == nil || held.Compare(r) < 0)
			if together || len(records) == 1 {
				over = append(over, &version)
			}
		}
	}
	if together && refused || len(let) == 0 {
		return nil
	}
	a := set.arrived(ns.Members(), from, 0, ns.node.Now(), let)
	a.way, a.held, a.newer, a.together, a.earliest = byRoute, over, newer, together, q.Earliest
	if err := set.let(ctx, set.past(), a); err != nil {
		return err
	}
	for i, v := range a.verdicts {
		o := &outcomes[places[i]]
		switch {
		case v.Reason != 0:
			o.Declined = v.Reason
		case v.Result == dbadapter.Dominated:
			held, err := set.Held(let[i].Key)
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

// says reports whether what is held, if it is anything, says what a record does. One without a
// writer is the same everywhere by its version, which an older one cannot stand for.
func (ns *Namespace) says(held, r *dbadapter.Record) bool {
	return held != nil && ns.sameValue(held, r) && (r.Version.Writer != 0 || held.Version.Compare(r.Version) >= 0)
}

// unseen reports whether a record must not take the place of what is held: that is later, or the
// record's writer had not seen it. A record without a writer merges by its date, and what
// has no writer cannot be named as seen. (6)
func unseen(r, held *dbadapter.Record) bool {
	return r.Version.Writer != 0 && held != nil && held.Version != r.Version &&
		(held.Version.Compare(r.Version) > 0 || held.Version.Writer != 0 && !r.Supersedes(held.Version))
}

// seen is what a writer has to know of a record to replace it.
func seen(r *dbadapter.Record) *dbadapter.Record {
	return &dbadapter.Record{Version: r.Version, Replaces: r.Replaces}
}

// placedIn reports whether a record of the key may be in the shard.
func (ns *Namespace) placedIn(key []byte, shard placement.Shard) bool {
	return ns.rule == nil || ns.Home(key) == shard
}

// settled reports whether the set is whole: it has all that it must have. (4)
func (set *Set) settled() bool { return !set.vouching.recovers.Load() }

// Settled is settled.
func (set *Set) Settled() bool { return set.settled() }

// WholeHere is this node's set of a shard, if it is a whole host; or nil.
func (ns *Namespace) WholeHere(shard placement.Shard) *Set {
	set, row := ns.held(shard), ns.Row(shard)
	if set == nil || row == nil || !row.IsOld(ns.node.ID) || !set.settled() {
		return nil
	}
	return set
}
