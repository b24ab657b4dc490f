package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// records makes as many records as are given what was seen under their keys, and signs them. one makes a record, with
// a version that is later than those. A record with a writer names what was seen.
func (a *Asker) records(seen [][]*dbadapter.Record, one func(i int) (dbadapter.Record, error)) ([]dbadapter.Record, error) {
	writes := make([]dbadapter.Write, len(seen))
	for i := range writes {
		for _, s := range seen[i] {
			if s != nil {
				a.ns.Follow(s.Version.Clock)
			}
		}
		record, err := one(i)
		if err == nil && record.Version.Writer != 0 {
			record.Replace(seen[i]...)
		}
		if err == nil {
			if writes[i].Record, err = dbadapter.Hash(a.view.Hasher(), record); err != nil {
				err = &node.ItemError{Item: i, Err: err}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := a.view.Authorize(writes); err != nil {
		return nil, err
	}
	records := make([]dbadapter.Record, len(writes))
	for i := range writes {
		records[i] = writes[i].Record.Record
	}
	return records, nil
}

// Make makes records of drafts, for the hosts to hold: with versions of this node above those
// of the records that were seen under their keys, which they name, and signed. A record on a
// condition has an incarnation of its own: under the common one it would supersede what
// another call of this node writes meanwhile.
func (a *Asker) Make(drafts []node.Draft, seen [][]*dbadapter.Record) ([]dbadapter.Record, error) {
	return a.records(seen, func(i int) (record dbadapter.Record, err error) {
		d := &drafts[i]
		if err := cmp.Or(d.Record.Validate(), d.CheckTTL()); err != nil {
			return record, &node.ItemError{Item: i, Err: err}
		}
		record = d.Record.Clone()
		record.Version, err = a.ns.NextVersion()
		if d.If != nil {
			record.Version.Incarnation = a.ns.NewIncarnation()
		}
		if d.TTL > 0 {
			record.Expires = a.view.Expiry(d.TTL)
		}
		return record, err
	})
}

// MakeItems makes records of items. Of a dated item it makes the record with its
// date, which has no writer, and of another one it makes what Make does.
func (a *Asker) MakeItems(items []node.Item, seen [][]*dbadapter.Record) ([]dbadapter.Record, error) {
	return a.records(seen, func(i int) (record dbadapter.Record, err error) {
		record = items[i].Record()
		if items[i].Time.IsZero() {
			record.Version, err = a.ns.NextVersion()
			return record, err
		}
		record.Version = dbadapter.Version{Clock: dbadapter.TimestampAt(items[i].Time)}
		a.ns.Follow(record.Version.Clock) // it may be a little ahead
		return record, nil
	})
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

// HostHeld is what a host answers to a question to hold records.
type HostHeld struct {
	Whole    bool // as in HostAnswer
	Outcomes []Held
	// From is the date from which on the host takes records, where it has declined one for its date.
	From time.Time
}

// holds is the question whether a host holds records; see wire.AskHold. It has a copy of what is given, as many hosts are
// asked the same at a time.
func (a *Asker) holds(q wire.AskHold) question[HostHeld] {
	q.ShardRow = a.at
	return question[HostHeld]{&q, func(from node.ID, reply *wire.Reply) (HostHeld, error) {
		said := reply.Answer.(*wire.HoldAnswer)
		h, err := a.outcomes(from, said, &q)
		if slices.ContainsFunc(h.Outcomes, func(o Held) bool { return errors.Is(o.Declined, node.ErrLate) }) {
			// By that clock the host has made its promise: the next version is to be later.
			a.ns.Follow(dbadapter.TimestampAt(time.UnixMilli(int64(reply.Greeting.Time) + 1)))
			h.From = node.DateFrom(reply.Greeting.Floor + 1)
		}
		return h, err
	}}
}

// pass asks a host to hold records that hosts have, as they are.
func (a *Asker) pass(records ...dbadapter.Record) question[HostHeld] {
	return a.holds(wire.AskHold{Records: records, Passed: true})
}

func (a *Asker) outcomes(from node.ID, said *wire.HoldAnswer, asked *wire.AskHold) (h HostHeld, err error) {
	h.Whole = said.Whole
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
			o.Declined = node.DeclinedFor(one.Declined)
		case one.Other == nil:
			o.Held = true
		default:
			if err := a.plausible(from, one.Other.Version); err != nil {
				o.Declined = fmt.Errorf("%w: it holds another version: %w", node.ErrDeclined, err)
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

// spread asks hosts beside one another to hold the same records. One goroutine uses it; what asks runs beside that.
type spread struct {
	shards  *Shards
	asker   *Asker
	over    time.Duration
	hold    wire.AskHold
	box     Mailbox
	open    int // hosts that are being asked
	answers map[node.ID]*HostHeld
	why     map[node.ID]error // of the last question to a host, where that has failed
	sent    map[node.ID]bool  // hosts that may have got a question
	flying  atomic.Int32      // questions whose end is not noted yet: by them a host may hold the records later
	ended   atomic.Bool       // no host is asked again
}

func (s *Shards) spread(a *Asker, over time.Duration, hold wire.AskHold) *spread {
	return &spread{
		shards: s, asker: a, over: over, hold: hold, box: s.Net.Mailbox(),
		answers: map[node.ID]*HostHeld{}, why: map[node.ID]error{}, sent: map[node.ID]bool{},
	}
}

// ask asks a host until it has said what it does with the records. The caller may have its answer before: a host that
// takes the records later holds them. done is called at the end.
func (p *spread) ask(id node.ID, done func()) {
	p.open++
	p.shards.Net.Outlive(func(ctx context.Context) {
		defer p.box.Put(func() { p.open-- })
		defer done()
		for pause := 2 * pauseFirst; ; pause = min(2*pause, pauseMost) {
			p.flying.Add(1)
			if p.ended.Load() {
				p.flying.Add(-1)
				return
			}
			h, sent, err := askHost(ctx, p.shards, p.asker, id, p.over, p.asker.holds(p.hold))
			p.box.Put(func() {
				p.flying.Add(-1)
				if sent {
					p.sent[id] = true
				}
				if p.why[id] = err; err == nil {
					p.answers[id] = &h
				}
			})
			if err == nil || errors.Is(err, errRow) || final(err) || p.ended.Load() || p.shards.Net.Sleep(ctx, pause) != nil {
				return
			}
		}
	})
}

// final reports whether a host is asked no more.
func final(err error) bool { return errors.Is(err, errApart) || errors.Is(err, errGone) }

// next takes note of what a host has said. false: the caller has given up, or the time is over, as where this process
// was stopped for long: then what a host says counts no more. (11)
func (p *spread) next(ctx context.Context) bool {
	note := p.box.Take(ctx, p.over)
	if note == nil || p.shards.Net.Now() >= p.over {
		p.ended.Store(true)
		return false
	}
	note()
	return true
}

func (p *spread) whole(id node.ID) bool { return p.answers[id] != nil && p.answers[id].Whole }

// answerHold admits records by the one admission, and lists no refusal: their writer hears of it.
// floor is up to when this node takes no record of the shard, where it has declined one for that; or 0.
func answerHold(ctx context.Context, ns *node.Namespace, set *node.Set, from node.ID, q *wire.AskHold) (a *wire.HoldAnswer, floor dbadapter.Timestamp, err error) {
	records := make([]dbadapter.Hashed, len(q.Records))
	for i, one := range q.Records {
		if records[i], err = dbadapter.Hash(set.Keys.Hasher, one); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
		}
		if ns.Home(one.Key) != placement.Shard(q.Shard) {
			return nil, 0, fmt.Errorf("%w: a record of another shard than %d", reconcile.ErrProtocol, q.Shard)
		}
	}
	a = &wire.HoldAnswer{Outcomes: make([]wire.HoldOutcome, len(records))}
	for tries := 1; ; tries++ {
		whole := !set.Recovers()
		if len(q.On) > 0 && !whole { // only who has all that was acknowledged can compare
			return a, 0, nil
		}
		switch err = hold(ctx, ns, set, from, q, records, a.Outcomes); {
		case errors.Is(err, dbadapter.ErrConflict) && tries < node.MaxAttempts: // what was looked at has changed
			clear(a.Outcomes)
			continue
		case errors.Is(err, dbadapter.ErrConflict):
			return nil, 0, reconcile.ErrBusy
		case err != nil:
			return nil, 0, err
		}
		a.Whole = whole && (!set.Recovers() || len(q.On) > 0) // what was compared is committed
		if slices.ContainsFunc(a.Outcomes, func(o wire.HoldOutcome) bool { return o.Declined == wire.ReasonFloor }) {
			floor = set.UpTo()
		}
		return a, floor, nil
	}
}

// hold admits those of the records that may be held. One record, a batch and what has conditions
// are committed only in the place of what was looked at: dbadapter.ErrConflict, where another
// record was committed in between. Further ones are not, since one would keep back the others.
func hold(ctx context.Context, ns *node.Namespace, set *node.Set, from node.ID, q *wire.AskHold, records []dbadapter.Hashed, outcomes []wire.HoldOutcome) error {
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
		case !q.Passed && !mayTake(ns, r, held):
			o.Declined, refused = wire.ReasonBody, true
		case len(q.On) > 0 && q.On[i] != nil && version != *q.On[i] && version.Compare(*q.On[i]) < 0:
			return reconcile.ErrBusy // it was to be given what the reader has found
		case q.New && says(ns, held, r):
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
	verdicts, err := set.AdmitRouted(ctx, from, node.Routed{Records: let, Over: over, Newer: newer, Together: together, Earliest: q.Earliest})
	if err != nil {
		return err
	}
	for i, v := range verdicts {
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
func says(ns *node.Namespace, held, r *dbadapter.Record) bool {
	return held != nil && sameValue(ns, held, r) && (r.Version.Writer != 0 || held.Version.Compare(r.Version) >= 0)
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

// mayTake reports whether a record of a writer may be held in the place of another one. (bodies, 4)
func mayTake(ns *node.Namespace, r, held *dbadapter.Record) bool {
	return !ns.Bodied() || bodies.Reserved(r.Key) || bodies.MayTake(bodies.Of(r), bodies.Of(held), ns.Time())
}

// sameValue is SameContent of users' values: two bodies of one value are the same.
func sameValue(ns *node.Namespace, a, b *dbadapter.Record) bool {
	if !ns.Bodied() || bodies.Reserved(a.Key) {
		return a.SameContent(b)
	}
	if p, q := bodies.Of(a), bodies.Of(b); p != nil && q != nil {
		return p.Sum == q.Sum && p.Size == q.Size && a.Expires == b.Expires
	}
	return a.SameContent(b)
}
