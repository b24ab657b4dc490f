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

// HostAnswer is what a host answers about a key.
type HostAnswer struct {
	// Apart: it goes by another row, or knows of other removals or lapses; nothing else is said.
	Apart bool
	Whole bool
	// Record is what it holds, a tombstone too; nil: nothing, or only the head is known.
	Record *dbadapter.Record
	// Version is that of what it holds; zero: nothing.
	Version dbadapter.Version
	// Floor is up to when it has collected deletions.
	Floor dbadapter.Timestamp
}

// AskRecord asks for the record under a key, or for its version alone.
func (a *Asker) AskRecord(key []byte, head bool) *wire.AskRecord {
	return &wire.AskRecord{ShardRow: a.at, Head: head, Key: key}
}

// Record is what a message of the peer answers to AskRecord. It fails with ErrDeclined
// where the peer gives what this node would not admit, and keeps nothing of m.
func (a *Asker) Record(remote node.ID, ask *wire.Ask, m wire.Message) (HostAnswer, error) {
	reply, err := a.ns.Answered(remote, ask, m)
	if err != nil {
		return HostAnswer{}, err
	}
	said, asked := reply.Answer.(*wire.RecordAnswer), ask.Question.(*wire.AskRecord) // CheckReply has compared the subjects
	h := HostAnswer{Apart: said.Apart, Whole: said.Whole, Version: said.Head, Floor: reply.Greeting.Floor}
	switch {
	case said.Record == nil && said.Head.IsZero():
		return h, nil
	case said.Record == nil && asked.Head:
		return h, hlc.Check(said.Head.Clock.Time(), a.ns.Time(), a.ns.Members().Policy().MaxSkew)
	case said.Record == nil || asked.Head:
		return HostAnswer{}, fmt.Errorf("%w: a head and a record are taken for each other", reconcile.ErrProtocol)
	}
	record := said.Record.Clone()
	if err := a.check(remote, &record, asked.Key); err != nil {
		return HostAnswer{}, fmt.Errorf("%w: %w", node.ErrDeclined, err)
	}
	h.Record, h.Version = &record, record.Version
	return h, nil
}

// RecordHere is what this node, a host, answers to AskRecord.
func (a *Asker) RecordHere(q *wire.AskRecord) (HostAnswer, error) {
	said, floor, err := answerRecord(a.ns, q)
	if err != nil {
		return HostAnswer{}, err
	}
	h := HostAnswer{Apart: said.Apart, Whole: said.Whole, Record: said.Record, Version: said.Head, Floor: floor}
	if h.Record != nil {
		h.Version = h.Record.Version
	}
	return h, nil
}

// answerRecord looks up what is held under a key. floor is up to when deletions have been collected.
func answerRecord(ns *node.Namespace, q *wire.AskRecord) (a *wire.RecordAnswer, floor dbadapter.Timestamp, err error) {
	set, err := ns.AsHost(&q.ShardRow)
	if set == nil {
		return &wire.RecordAnswer{Apart: true}, 0, err
	}
	whole := set.Settled()
	held, err := set.Held(q.Key)
	if err != nil {
		return nil, 0, err
	}
	floor = set.Floor() // behind the snapshot: what it lacks may be collected
	if !ns.GoesBy(&q.ShardRow) {
		return &wire.RecordAnswer{Apart: true}, 0, nil
	}
	a = &wire.RecordAnswer{Whole: whole && set.Settled()} // behind the snapshot, too: the store may have been found to be damaged meanwhile
	switch {
	case held == nil:
	case q.Head:
		a.Head = held.Version
	default:
		a.Record = held
	}
	return a, floor, nil
}

// check says why a record of a peer is none for the key, or nil.
func (a *Asker) check(remote node.ID, record *dbadapter.Record, key []byte) error {
	if string(record.Key) != string(key) {
		return fmt.Errorf("%w: a record of another key", reconcile.ErrProtocol)
	}
	if err := record.Validate(); err != nil {
		return err
	}
	return a.view.Examine(remote, record)
}

// What this node answers, as a host, to routed questions. An answer counts if this node went by
// the asker's row when it was given: the row is looked at before, and again behind a commit or
// a snapshot. A row that this node takes up later finds the commit in its sets. (2)

// Reply is the answer to a routed question of a peer. What it says to be held is durable.
func Reply(ctx context.Context, asked *node.Asked) (*wire.Reply, error) {
	ns := asked.Namespace()
	var answer wire.Answering
	var floor dbadapter.Timestamp
	var err error
	switch q := asked.Question().(type) {
	case *wire.AskRecord:
		answer, floor, err = answerRecord(ns, q)
	case *wire.AskHold:
		answer, floor, err = answerHold(ctx, ns, asked.Remote(), q)
	case *wire.AskScan:
		answer, err = answerScan(ctx, ns, q)
	case *wire.AskChanges:
		answer, err = answerChanges(ctx, ns, q)
	case *wire.AskKept:
		answer, err = answerKept(ctx, ns, q)
	case *wire.AskBody:
		answer, err = answerBody(ns, q)
	case *wire.AskNames:
		answer, err = answerNames(ctx, ns, q)
	case *wire.AskFeed:
		answer, err = answerFeed(ctx, ns, q)
	}
	if err != nil {
		return nil, err
	}
	return asked.Reply(answer, floor), nil
}
