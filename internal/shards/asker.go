package shards

import (
	"context"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Asker asks the hosts of a shard under one row: it makes questions and records, and says what
// an answer means.
type Asker struct {
	ns  *node.Namespace
	row *quorum.Row
	at  wire.ShardRow
	// view has the keys and the rights of the shard's set.
	view node.View
}

// NewAsker is one under the row by which this node goes now. The error is node.ErrOneShard or node.ErrNoLayout.
func NewAsker(ns *node.Namespace, shard placement.Shard) (*Asker, error) {
	if ns.Rule() == nil {
		return nil, node.ErrOneShard
	}
	row := ns.Row(shard)
	if row == nil {
		return nil, node.ErrNoLayout
	}
	return &Asker{ns: ns, row: row, at: wire.ShardRow{Shard: uint32(shard), Row: row.Name(), Gone: ns.Gone()}, view: ns.View(shard)}, nil
}

// Row is the row.
func (a *Asker) Row() *quorum.Row { return a.row }

// Shard is the shard's number.
func (a *Asker) Shard() placement.Shard { return placement.Shard(a.at.Shard) }

// Current reports whether this node still goes by the row, and knows of no further removal or
// lapse. Answers count while it does. (2)
func (a *Asker) Current() bool { return a.ns.GoesBy(&a.at) }

// question is one to the hosts of a shard, and what an answer means here. read is given no answer of a host that goes
// by another row, and keeps nothing of the reply. It fails with node.ErrDeclined where a peer gives what this node
// would not admit.
type question[T any] struct {
	wire.Question
	read func(from node.ID, reply *wire.Reply) (T, error)
}

// HostAnswer is what a host answers about a key.
type HostAnswer struct {
	Whole bool
	// Record is what it holds, a tombstone too; nil: nothing, or only the head is known.
	Record *dbadapter.Record
	// Version is that of what it holds; zero: nothing.
	Version dbadapter.Version
	// Floor is up to when it has collected deletions.
	Floor dbadapter.Timestamp
}

// record asks for the record under a key, or for its version alone.
func (a *Asker) record(key []byte, head bool) question[HostAnswer] {
	q := &wire.AskRecord{ShardRow: a.at, Head: head, Key: key}
	return question[HostAnswer]{q, func(from node.ID, reply *wire.Reply) (HostAnswer, error) {
		said := reply.Answer.(*wire.RecordAnswer)
		h := HostAnswer{Whole: said.Whole, Version: said.Head, Floor: reply.Greeting.Floor}
		switch {
		case said.Record == nil && said.Head.IsZero():
			return h, nil
		case said.Record == nil && head:
			return h, a.plausible(from, said.Head)
		case said.Record == nil || head:
			return HostAnswer{}, fmt.Errorf("%w: a head and a record are taken for each other", reconcile.ErrProtocol)
		}
		record, err := a.taken(from, said.Record, key)
		if err != nil {
			return HostAnswer{}, err
		}
		h.Record, h.Version = record, record.Version
		return h, nil
	}}
}

// plausible says why a version that a peer holds cannot be, or nil: one from beyond what this node can follow would
// stop its clock.
func (a *Asker) plausible(from node.ID, v dbadapter.Version) error {
	if from == a.ns.Self() {
		return nil
	}
	return hlc.Check(v.Clock.Time(), a.ns.Time(), a.ns.Members().Policy().MaxSkew)
}

// taken is a record of a host as this node's own memory. One of a peer is examined as one of a sync; node.ErrDeclined.
func (a *Asker) taken(from node.ID, said *dbadapter.Record, key []byte) (*dbadapter.Record, error) {
	record := said.Clone()
	if from == a.ns.Self() {
		return &record, nil
	}
	if err := a.check(from, &record, key); err != nil {
		return nil, fmt.Errorf("%w: %w", node.ErrDeclined, err)
	}
	return &record, nil
}

// check returns an error for a record that does not belong to the key, or that its writer may not write.
func (a *Asker) check(from node.ID, record *dbadapter.Record, key []byte) error {
	if string(record.Key) != string(key) {
		return fmt.Errorf("%w: a record of another key", reconcile.ErrProtocol)
	}
	if err := record.Validate(); err != nil {
		return err
	}
	return a.view.Examine(from, record)
}

// What this node answers to routed questions. An answer counts if this node went by the asker's row when it was given:
// the row is looked at before, and again behind a commit or a snapshot. A row that this node takes up later finds the
// commit in its sets. (2)

// Reply is the answer to a routed question of a peer. What it says to be held is durable.
func Reply(ctx context.Context, asked *node.Asked) (*wire.Reply, error) {
	a, floor, err := answer(ctx, asked.NS, asked.Remote, asked.Ask.Question)
	if err != nil {
		return nil, err
	}
	return asked.Reply(a, floor), nil
}

// answer is what this node answers to a question of a member, or to its own one. floor is up to when it has collected
// deletions, or takes no record.
func answer(ctx context.Context, ns *node.Namespace, from node.ID, q wire.Question) (a wire.Answering, floor dbadapter.Timestamp, err error) {
	switch q := q.(type) {
	case *wire.AskRecord:
		a, err = asHost(ns, &q.ShardRow, func(set *node.Set) (a wire.Answering, err error) {
			a, floor, err = answerRecord(set, q)
			return a, err
		})
	case *wire.AskHold:
		a, err = asHost(ns, &q.ShardRow, func(set *node.Set) (a wire.Answering, err error) {
			a, floor, err = answerHold(ctx, ns, set, from, q)
			return a, err
		})
	case *wire.AskScan:
		a, err = asHost(ns, &q.ShardRow, func(set *node.Set) (wire.Answering, error) { return answerScan(ctx, set, q) })
	case *wire.AskChanges:
		a, err = asHost(ns, &q.ShardRow, func(set *node.Set) (wire.Answering, error) { return answerChanges(ctx, set, q) })
	case *wire.AskBody:
		a, err = asHost(ns, &q.ShardRow, func(set *node.Set) (wire.Answering, error) { return answerBody(ns, set, q) })
	case *wire.AskNames:
		a, err = answerNames(ctx, ns, q)
	case *wire.AskKept:
		a, err = answerKept(ctx, ns, q)
	case *wire.AskFeed:
		a, err = answerFeed(ctx, ns, q)
	}
	return a, floor, err
}

// asHost gives what this node says of its set, as a host by the row of a question.
func asHost(ns *node.Namespace, row *wire.ShardRow, say func(*node.Set) (wire.Answering, error)) (a wire.Answering, err error) {
	set, err := ns.AsHost(row)
	if err != nil {
		return nil, err
	}
	if set != nil {
		a, err = say(set)
	}
	if set == nil || !ns.GoesBy(row) {
		return &wire.Apart{}, nil
	}
	return a, err
}

// answerRecord looks up what is held under a key. floor is up to when deletions have been collected.
func answerRecord(set *node.Set, q *wire.AskRecord) (a *wire.RecordAnswer, floor dbadapter.Timestamp, err error) {
	whole := !set.Recovers()
	held, err := set.Held(q.Key)
	if err != nil {
		return nil, 0, err
	}
	floor = set.Floor()                                     // behind the snapshot: what it lacks may be collected
	a = &wire.RecordAnswer{Whole: whole && !set.Recovers()} // behind the snapshot, too: the store may have been found to be damaged meanwhile
	switch {
	case held == nil:
	case q.Head:
		a.Head = held.Version
	default:
		a.Record = held
	}
	return a, floor, nil
}
