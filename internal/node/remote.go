package node

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Remote is the shard of a key, seen from a node that may or may not hold it: which hosts
// there are to ask, what to ask, and what an answer means. Package route says which of them is
// asked when.
type Remote struct {
	ns    *Namespace
	shard placement.Shard
	key   []byte
	// view has the keys and the rights of the shard's set, and no store.
	view  *Set
	hosts []ID
	named int // hosts by the layout, of which some may be no members any longer
	// list is the digest of the list of members by which the hosts were found, or of one before: it may change
	// before they answer.
	list [16]byte
	gone []ID // see Gone
}

// Remote is the shard of a key, by the layout that counts now, or while its table has not come, by
// the one before. Where none is known here, it has no hosts.
func (ns *Namespace) Remote(key []byte) *Remote { return ns.remote(ns.Home(key), key) }

// Located reports whether hosts tell all nodes which keys there are.
func (ns *Namespace) Located() bool { return ns.rule != nil && ns.rule.Locator }

func (ns *Namespace) remote(shard placement.Shard, key []byte) *Remote {
	r := &Remote{ns: ns, shard: shard, key: key, view: ns.view(shard), list: ns.reckonedList()}
	var all []ID
	if ns.rule == nil {
		all = append(ns.Others(), ns.node.ID)
	} else {
		if layout := ns.placed.Load().last; layout != nil {
			all = layout.Hosts(r.shard)
		}
	}
	r.named = len(all)
	for _, id := range all {
		if ns.Admits(id) { // a layout names a removed member until the next one
			r.hosts = append(r.hosts, id)
		}
	}
	return r
}

// view is a shard's set with its keys and rights, and no store. It is made once: what it is
// made of does not change while the namespace is open.
func (ns *Namespace) view(shard placement.Shard) *Set {
	if known, ok := ns.views.Load(shard); ok {
		return known.(*Set)
	}
	keys := reconcile.DeriveKeys(ns.secret, []byte(ns.creator))
	if ns.rule != nil {
		keys = reconcile.DeriveShardKeys(ns.secret, ns.Members().state.Root(), uint32(shard))
	}
	if ns.node.Weaken != nil {
		keys.Hasher = ns.node.Weaken(keys.Hasher)
	}
	set := &Set{Part: Part{Keys: keys, ns: ns}, shard: shard}
	set.Part.set = set
	made, _ := ns.views.LoadOrStore(shard, set)
	return made.(*Set)
}

// Shard is the shard's number.
func (r *Remote) Shard() placement.Shard { return r.shard }

// Hosts are the members that the layout names, the one that others prefer first; this node
// may be one. The error is ErrNoLayout.
func (r *Remote) Hosts() ([]ID, error) {
	if len(r.hosts) == 0 {
		return nil, ErrNoLayout
	}
	return r.hosts, nil
}

// Named is how many hosts the layout names, also those that are no members any longer. So
// many are all of them, for a write: a copy that is missing is not one that is there.
func (r *Remote) Named() int { return r.named }

// holders is Namespace.Holders, by the layout that the hosts are of.
func (r *Remote) holders() []ID {
	if r.ns.rule == nil {
		return r.ns.Others()
	}
	return r.ns.holders(r.ns.placed.Load().last, r.shard)
}

// Candidates are the other nodes that may be asked for the record: the hosts, and those
// that say that they hold the shard still.
func (r *Remote) Candidates(connected func(ID) bool) (all []route.Candidate) {
	for _, id := range r.holders() {
		if former := !slices.Contains(r.hosts, id); !former || !slices.Contains(r.gone, id) {
			all = append(all, route.Candidate{ID: id, Former: former, Connected: connected(id)})
		}
	}
	return all
}

// Gone notes which members have said to an earlier read of the key that they hold the set no more: what they held
// its hosts have, so that these alone are asked now.
func (r *Remote) Gone(ids []ID) { r.gone = ids }

// SameList reports whether a host has answered by the list of members by which the hosts were found.
func (r *Remote) SameList(g *wire.Greeting) bool { return g.List == r.list }

// Unheard reports whether a member that is none of the candidates may hold the shard: it has not
// said yet, under the list as it is now, that it does not.
func (r *Remote) Unheard() bool {
	return len(r.view.unheard(r.holders())) > 0
}

// Here is this node's own set of the shard, if it is a host and holds it; or nil.
func (r *Remote) Here() *Set {
	if !slices.Contains(r.hosts, r.ns.node.ID) {
		return nil
	}
	return r.ns.held(r.shard)
}

// GetOptions are those of a read of the record, with what this node itself holds, and without a deadline. Where
// this node is no host any more, a record that it has not handed over counts as no host's, and a set that
// cannot be read as one that may hold the record. The error is that of a host's own set.
func (r *Remote) GetOptions() (o route.GetOptions, err error) {
	o.Unheard = r.Unheard()
	o.Here, err = r.own()
	if err != nil && r.Here() == nil {
		o.Unheard, err = true, nil
	}
	return o, err
}

// own is what this node answers, or nil. A node that is no host gives no answer where it holds no record.
func (r *Remote) own() (*route.Answer, error) {
	set := r.ns.held(r.shard)
	if set == nil {
		return nil, nil //nolint:nilnil // that is the answer
	}
	own, err := set.Answer(r.key)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.hosts, r.ns.node.ID) {
		if own.Record == nil {
			return nil, nil //nolint:nilnil // what it does not hold is no answer
		}
		own.Host, own.Holds, own.Settled, own.Current = false, true, false, false
	}
	return &own, nil
}

// Settled reports whether the set is one that is sure of what it does not hold.
func (set *Set) Settled() bool { return set.settled() }

// elsewhere is nil if this node is a host of the shard by the layout that counts here, or while
// its table has not come, by the one before: what it takes it keeps until it knows. Otherwise it
// names the layout that counts.
func (ns *Namespace) elsewhere(shard placement.Shard) *wire.Elsewhere {
	if ns.rule == nil {
		if shard == 0 {
			return nil
		}
		return &wire.Elsewhere{}
	}
	now := ns.placed.Load()
	if now.last != nil && int(shard) < ns.rule.Shards && now.last.Has(shard, ns.node.ID) {
		return nil
	}
	return &wire.Elsewhere{Epoch: now.stated.Epoch, Table: now.stated.Table}
}

// Outdated reports whether the layout by which a peer said that it is no host is one that
// this node has not heard of: the two make their lists of members equal, and it asks anew.
func (ns *Namespace) Outdated(l route.Layout) bool {
	_, stated, _ := ns.Layout()
	return l.Epoch >= max(1, stated.Epoch) && roster.Table(l.Table) != stated.Table
}

// ask begins a question to a host.
func (r *Remote) ask(remote ID, q wire.Question) (*wire.Ask, error) {
	if err := r.ns.mayRoute(remote); err != nil {
		return nil, err
	}
	m := &wire.Ask{Greeting: r.ns.routedGreeting(), Question: q}
	r.ns.node.random(m.Nonce[:], ForNonce)
	reconcile.ProveAsk(r.ns.proofs(), []byte(r.ns.node.ID), []byte(remote), m)
	return m, nil
}

func (r *Remote) reply(remote ID, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	return reconcile.CheckReply(r.ns.proofs(), []byte(r.ns.node.ID), []byte(remote), ask, m)
}

// AskRecord asks a host for the record.
func (r *Remote) AskRecord(remote ID) (*wire.Ask, error) {
	return r.ask(remote, &wire.AskRecord{Shard: uint32(r.shard), Key: r.key})
}

// Record is what a message of the peer answers to AskRecord. It fails with ErrDeclined
// where the peer gives what this node would not admit, and keeps nothing of m.
func (r *Remote) Record(remote ID, ask *wire.Ask, m wire.Message) (route.Answer, error) {
	reply, err := r.reply(remote, ask, m)
	if err != nil {
		return route.Answer{}, err
	}
	said := reply.Answer.(*wire.RecordAnswer) // CheckReply has compared the subjects
	a := route.Answer{Host: said.Elsewhere == nil, Holds: said.Holds, Settled: said.Settled, Current: said.Current, OtherList: !r.SameList(&reply.Greeting), Layout: layoutOf(said.Elsewhere), Floor: reply.Greeting.Floor}
	if said.Record == nil {
		return a, nil
	}
	record := said.Record.Clone()
	if err := r.check(remote, &record, r.key); err != nil {
		return route.Answer{}, fmt.Errorf("%w: %w", ErrDeclined, err)
	}
	a.Record = &record
	return a, nil
}

// check says why a record of a peer is none for the key, or nil.
func (r *Remote) check(remote ID, record *dbadapter.Record, key []byte) error {
	if string(record.Key) != string(key) {
		return fmt.Errorf("%w: a record of another key", reconcile.ErrProtocol)
	}
	if err := record.Validate(); err != nil {
		return err
	}
	writer, why := r.view.examine(r.ns.Members(), remote, r.ns.node.Now(), record)
	switch {
	case why != nil && why.reason == wire.ReasonWriter:
		return fmt.Errorf("%w: %w", ErrDenied, why.err) // by this node's list, which may be the older one
	case why != nil:
		return why.err
	case writer != "" && !r.view.signed(writer, record):
		return unsigned(writer).err
	}
	return nil
}

func layoutOf(e *wire.Elsewhere) (l route.Layout) {
	if e != nil {
		l = route.Layout{Epoch: e.Epoch, Table: e.Table}
	}
	return l
}

// Holds says whether a draft may follow what the key was found to hold: ErrConflict, ErrNotFound, ErrDeleted or
// ErrExpired. Where the look-up is not sure, a draft on a condition fails with ErrUnsure, and so does a deletion
// that has found no record. deletes: the draft is to delete a record that is there.
func (r *Remote) Holds(d Draft, deletes bool, found *LookedUp) error {
	if d.If != nil && !found.Sure {
		return found.Unsure()
	}
	if !deletes {
		return meets(d.If, found.Record)
	}
	if _, err := r.view.mayDelete(found.Record); err == nil || found.Sure {
		return err
	}
	return found.Unsure()
}

// AskHold asks a host to hold a record that this node has made, unless the host holds what
// it has not seen and the write does not insist.
func (r *Remote) AskHold(remote ID, record *dbadapter.Record, how route.Manner) (*wire.Ask, error) {
	return r.ask(remote, r.askHold(record, how))
}

func (r *Remote) askHold(record *dbadapter.Record, how route.Manner) *wire.AskHold {
	q := &wire.AskHold{Shard: uint32(r.shard), Seen: !how.Insists, Records: []dbadapter.Record{*record}}
	if q.Seen && how.Itself {
		q.Condition, q.On = true, how.On
	}
	return q
}

// Hold is what a message of the peer answers to AskHold.
func (r *Remote) Hold(remote ID, ask *wire.Ask, m wire.Message) (o route.Outcome, err error) {
	reply, err := r.reply(remote, ask, m)
	if err != nil {
		return o, err
	}
	o, err = r.outcome(reply.Answer.(*wire.HoldAnswer), ask.Question.(*wire.AskHold))
	r.follow(reply, o)
	return o, err
}

// outcome is what an answer says of the one record of a question.
func (r *Remote) outcome(said *wire.HoldAnswer, q *wire.AskHold) (o route.Outcome, err error) {
	if said.Elsewhere != nil {
		return route.Outcome{Elsewhere: true, Layout: layoutOf(said.Elsewhere)}, nil
	}
	if len(said.Outcomes) != 1 {
		return o, fmt.Errorf("%w: %d outcomes of one record", reconcile.ErrProtocol, len(said.Outcomes))
	}
	return r.outcomeOf(said, 0, q)
}

// outcomeOf is what a host says to have done with the record i.
func (r *Remote) outcomeOf(said *wire.HoldAnswer, i int, asked *wire.AskHold) (o route.Outcome, err error) {
	o.Settled = said.Settled
	switch one := said.Outcomes[i]; {
	case one.There && !asked.New && !asked.Look:
		return o, fmt.Errorf("%w: a record that is said to be nothing new was not asked about so", reconcile.ErrProtocol)
	case one.There:
		o.There = true
	case asked.Look && one.Declined != 0:
		return o, fmt.Errorf("%w: a record is declined that was only to be compared", reconcile.ErrProtocol)
	case asked.Look && one.Other == nil:
	case one.Declined != 0:
		o.Declined = declinedFor(one.Declined)
	case one.Other == nil:
		o.Held = true
	default:
		// A version from beyond what this node can follow would stop its clock.
		if err := hlc.Check(one.Other.Version.Clock.Time(), r.ns.node.Now(), r.ns.Members().Policy().MaxSkew); err != nil {
			return o, fmt.Errorf("%w: it holds another version: %w", ErrDeclined, err)
		}
		other := one.Other.Clone()
		if v := asked.Records[i].Version; !asked.Look && v.Writer != 0 && other.Supersedes(v) { // to make it anew over that would undo what came behind it
			o.Held, o.Later = true, &other
		} else {
			o.Other = &other
		}
	}
	return o, nil
}
