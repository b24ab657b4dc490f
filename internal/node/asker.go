package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Asker asks the hosts of a shard under one row: it makes questions and records, and says what
// an answer means. Package shards decides whom to ask, and what is enough.
type Asker struct {
	ns  *Namespace
	row *quorum.Row
	at  wire.ShardRow
	// view has the keys and the rights of the shard's set, and no store.
	view *Set
}

// Asker is one under the row by which this node goes now. The error is ErrOneShard or ErrNoLayout.
func (ns *Namespace) Asker(shard placement.Shard) (*Asker, error) {
	if ns.rule == nil {
		return nil, ErrOneShard
	}
	row := ns.Row(shard)
	if row == nil {
		return nil, ErrNoLayout
	}
	return &Asker{ns: ns, row: row, at: wire.ShardRow{Shard: uint32(shard), Row: row.Name(), Gone: ns.Gone()}, view: ns.view(shard)}, nil
}

// view is a shard's set with its keys and rights, and no store. It is made once: what it is
// made of does not change while the namespace is open.
func (ns *Namespace) view(shard placement.Shard) *Set {
	if known, ok := ns.views.Load(shard); ok {
		return known.(*Set)
	}
	keys := reconcile.DeriveKeys(ns.secret, []byte(ns.creator))
	if ns.rule != nil {
		keys = reconcile.DeriveShardKeys(ns.secret, ns.state.Load().Root(), uint32(shard))
	}
	if ns.node.Weaken != nil {
		keys.Hasher = ns.node.Weaken(keys.Hasher)
	}
	set := &Set{Part: Part{Keys: keys, ns: ns}, shard: shard}
	set.Part.set = set
	made, _ := ns.views.LoadOrStore(shard, set)
	return made.(*Set)
}

// Row is the row.
func (a *Asker) Row() *quorum.Row { return a.row }

// Shard is the shard's number.
func (a *Asker) Shard() placement.Shard { return placement.Shard(a.at.Shard) }

// Current reports whether this node still goes by the row, and knows of no further removal or
// lapse. Answers count while it does. (2)
func (a *Asker) Current() bool { return a.ns.goesBy(&a.at) }

// goesBy reports whether this node goes by what a question names. (2)
func (ns *Namespace) goesBy(at *wire.ShardRow) bool {
	if ns.rule == nil || int(at.Shard) >= ns.rule.Shards {
		return false
	}
	row := ns.Row(placement.Shard(at.Shard))
	return row != nil && row.Name() == quorum.Name(at.Row) && ns.Gone() == at.Gone
}

// Begin begins a question to a host.
func (a *Asker) Begin(remote ID, q wire.Question) (*wire.Ask, error) { return a.ns.Begin(remote, q) }

// Begin begins a routed question to a member.
func (ns *Namespace) Begin(remote ID, q wire.Question) (*wire.Ask, error) {
	if err := ns.mayRoute(remote); err != nil {
		return nil, err
	}
	m := &wire.Ask{Greeting: ns.routedGreeting(), Question: q}
	ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveAsk(ns.proofs(), []byte(ns.node.ID), []byte(remote), m)
	return m, nil
}

func (a *Asker) reply(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return a.ns.routedReply(remote, ask, m)
}

func (ns *Namespace) routedReply(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return reconcile.CheckReply(ns.proofs(), []byte(ns.node.ID), []byte(remote), ask, m)
}

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
func (a *Asker) Record(remote ID, ask *wire.Ask, m wire.Message) (HostAnswer, error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return HostAnswer{}, err
	}
	said, asked := reply.Answer.(*wire.RecordAnswer), ask.Question.(*wire.AskRecord) // CheckReply has compared the subjects
	h := HostAnswer{Apart: said.Apart, Whole: said.Whole, Version: said.Head, Floor: reply.Greeting.Floor}
	switch {
	case said.Record == nil && said.Head.IsZero():
		return h, nil
	case said.Record == nil && asked.Head:
		return h, hlc.Check(said.Head.Clock.Time(), a.ns.node.Now(), a.ns.Members().Policy().MaxSkew)
	case said.Record == nil || asked.Head:
		return HostAnswer{}, fmt.Errorf("%w: a head and a record are taken for each other", reconcile.ErrProtocol)
	}
	record := said.Record.Clone()
	if err := a.check(remote, &record, asked.Key); err != nil {
		return HostAnswer{}, fmt.Errorf("%w: %w", ErrDeclined, err)
	}
	h.Record, h.Version = &record, record.Version
	return h, nil
}

// RecordHere is what this node, a host, answers to AskRecord.
func (a *Asker) RecordHere(q *wire.AskRecord) (HostAnswer, error) {
	said, floor, err := a.ns.answerRecord(q)
	if err != nil {
		return HostAnswer{}, err
	}
	h := HostAnswer{Apart: said.Apart, Whole: said.Whole, Record: said.Record, Version: said.Head, Floor: floor}
	if h.Record != nil {
		h.Version = h.Record.Version
	}
	return h, nil
}

// check says why a record of a peer is none for the key, or nil.
func (a *Asker) check(remote ID, record *dbadapter.Record, key []byte) error {
	if string(record.Key) != string(key) {
		return fmt.Errorf("%w: a record of another key", reconcile.ErrProtocol)
	}
	if err := record.Validate(); err != nil {
		return err
	}
	writer, why := a.view.examine(a.ns.Members(), remote, a.ns.node.Now(), record)
	switch {
	case why != nil && why.reason == wire.ReasonWriter:
		return fmt.Errorf("%w: %w", ErrDenied, why.err) // by this node's list, which may be the older one
	case why != nil:
		return why.err
	case writer != "" && !a.view.signed(writer, record):
		return unsigned(writer).err
	}
	return nil
}

// Make makes records of drafts, for the hosts to hold: with versions of this node above those
// of the records that were seen under their keys, which they name, and signed. A record on a
// condition has an incarnation of its own: under the common one it would supersede what
// another call of this node writes meanwhile.
func (a *Asker) Make(drafts []Draft, seen [][]*dbadapter.Record) ([]dbadapter.Record, error) {
	writes := make([]dbadapter.Write, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		if err := cmp.Or(d.Record.Validate(), d.CheckTTL()); err != nil {
			return nil, &ItemError{Item: i, Err: err}
		}
		a.follow(seen[i]...)
		version, err := a.ns.nextVersion()
		if err != nil {
			return nil, err
		}
		if d.If != nil {
			version.Incarnation = a.ns.node.Random(ForIncarnation)
		}
		record := d.Record.Clone()
		record.Version = version
		if d.TTL > 0 {
			record.Expires = a.view.expiry(d.TTL)
		}
		record.Replace(seen[i]...)
		if writes[i].Record, err = dbadapter.Hash(a.view.Keys.Hasher, record); err != nil {
			return nil, &ItemError{Item: i, Err: err}
		}
	}
	if err := a.view.authorize(writes); err != nil {
		return nil, err
	}
	records := make([]dbadapter.Record, len(writes))
	for i := range writes {
		records[i] = writes[i].Record.Record
	}
	return records, nil
}

// follow has this node's next version be later than those of records.
func (a *Asker) follow(seen ...*dbadapter.Record) {
	for _, s := range seen {
		if s != nil {
			a.ns.clock.Observe(hlc.Timestamp(s.Version.Clock))
		}
	}
}

// Held is what a host has done with a record.
type Held struct {
	// Held: it holds the record durably, or one whose writer had seen it.
	Held bool
	// There, where only what is new is to be held: its content is held already, in Other.
	There bool
	// Other is what it holds in the record's place: its version, and, unless it is There, what that replaces.
	Other *dbadapter.Record
	// Declined is why it does not take the record.
	Declined error
}

// HostHeld is what a host answers to AskHold.
type HostHeld struct {
	Apart, Whole bool // as in HostAnswer
	Outcomes     []Held
	// From is the date from which on the host takes records, where it has declined one for its date.
	From time.Time
}

// AskHold asks a host to hold records; see wire.AskHold.
func (a *Asker) AskHold(records []dbadapter.Record) *wire.AskHold {
	return &wire.AskHold{ShardRow: a.at, Records: records}
}

// AskPass asks a host to hold records that hosts have, as they are.
func (a *Asker) AskPass(records ...dbadapter.Record) *wire.AskHold {
	return &wire.AskHold{ShardRow: a.at, Records: records, Passed: true}
}

// Hold is what a message of the peer answers to AskHold. It keeps nothing of m.
func (a *Asker) Hold(remote ID, ask *wire.Ask, m wire.Message) (HostHeld, error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return HostHeld{}, err
	}
	h, err := a.outcomes(reply.Answer.(*wire.HoldAnswer), ask.Question.(*wire.AskHold))
	if slices.ContainsFunc(h.Outcomes, func(o Held) bool { return errors.Is(o.Declined, ErrLate) }) {
		// By that clock the host has made its promise: the next version is to be later.
		a.ns.believe(wire.Greeting{Tau: dbadapter.TimestampAt(time.UnixMilli(int64(reply.Greeting.Time) + 1))})
		h.From = dateFrom(reply.Greeting.Floor + 1)
	}
	return h, err
}

func (a *Asker) outcomes(said *wire.HoldAnswer, asked *wire.AskHold) (h HostHeld, err error) {
	if h.Apart, h.Whole = said.Apart, said.Whole; h.Apart {
		return h, nil
	}
	if len(said.Outcomes) != len(asked.Records) {
		return h, fmt.Errorf("%w: %d outcomes of %d records", reconcile.ErrProtocol, len(said.Outcomes), len(asked.Records))
	}
	h.Outcomes = make([]Held, len(said.Outcomes))
	for i := range said.Outcomes {
		one, o := &said.Outcomes[i], &h.Outcomes[i]
		switch {
		case one.There && !asked.New:
			return h, fmt.Errorf("%w: a record that is said to be nothing new was not asked about so", reconcile.ErrProtocol)
		case one.Declined != 0:
			o.Declined = declinedFor(one.Declined)
		case one.Other == nil:
			o.Held = true
		default:
			// A version from beyond what this node can follow would stop its clock.
			if err := hlc.Check(one.Other.Version.Clock.Time(), a.ns.node.Now(), a.ns.Members().Policy().MaxSkew); err != nil {
				o.Declined = fmt.Errorf("%w: it holds another version: %w", ErrDeclined, err)
				continue
			}
			other := one.Other.Clone()
			if o.There = one.There; o.There {
				o.Other = &other
				continue
			}
			// Another writer, or another call of this node, has seen the record and written since. To make it
			// anew over that would undo what followed it.
			if v := asked.Records[i].Version; len(asked.On) == 0 && v.Writer != 0 && other.Supersedes(v) {
				o.Held = true
			} else {
				o.Other = &other
			}
		}
	}
	return h, nil
}

// HoldHere is what this node, a host, answers to AskHold.
func (a *Asker) HoldHere(ctx context.Context, q *wire.AskHold) (HostHeld, error) {
	said, err := a.ns.answerHold(ctx, a.ns.node.ID, q)
	if err != nil {
		return HostHeld{}, err
	}
	h, err := a.outcomes(said, q)
	if floor := a.ns.declinedUpTo(said, a.Shard()); floor != 0 {
		h.From = dateFrom(floor + 1)
	}
	return h, err
}

// Self is this node's id.
func (ns *Namespace) Self() ID { return ns.node.ID }
