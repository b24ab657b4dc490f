package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/route"
)

// OfferTries is how often a record is made anew, because a host holds what it has not seen, or it came too late.
const OfferTries = 8

// besideMost is how often a write without a condition is made anew for other calls of its node beside it.
const besideMost = 100

// maxHeeds is how often lists are made equal for one write: the next layout may be stated
// meanwhile, and each host may be behind.
const maxHeeds = 3

// Offering is a write of one key of a namespace that is cut into shards, at any node: the
// record is made here, held here if this node is a host, and goes to the shard's hosts until
// as many hold it as are to. It decides what comes next; a driver carries that out, for one
// goroutine at a time:
//
//	for o := ns.Offer(draft, deletes, ack); ; {
//		switch o.Next() {
//		case OfferLookUp: // look the key up, and tell o.LookedUp
//		case OfferCommit: // commit o.Attempt(), and tell o.Committed
//		case OfferHand:   // drive o.Put at the hosts of o.Remote(), and tell o.Handed
//		case OfferHeed:   // make the lists equal with hosts that disagree, and tell o.Heeded
//		case OfferOver:   // o.Result()
//		}
//	}
type Offering struct {
	ns      *Namespace
	draft   Draft
	deletes bool // a record must be there
	ack     route.Ack
	steady  func() time.Duration

	next   OfferDo // 0: another try begins
	tries  int
	beside int // so often other calls of this node had written the key
	heeds  int // so often lists were made equal with those of hosts that disagree
	remote *Remote
	need   int // so many hosts are to hold it
	// record is what hosts are asked to hold; nil: it is to be made. here: this node, which
	// holds it already, as a host that is settled or not.
	record  *dbadapter.Record
	here    ID
	settled bool
	set     *Set
	attempt *Attempt
	version dbadapter.Version // of the record that was made last
	// recalled is what this node remembers to have written to the key; all: the key is looked up at all hosts.
	recalled Recalled
	all      bool
	awaited  int // 1: the write counts among those that callers wait for
	// lost: a host holds another version than that on which the record rests; all are asked for it.
	lost bool
	// taken: a host holds a record of this write, or may. From then on a condition is not
	// looked at anew: the record that is found would be the write's own. latest: it is the one that was made last.
	taken, latest bool
	written       route.Written
	err           error
}

// OfferDo is what the driver of an Offering does next.
type OfferDo uint8

// The steps of an Offering.
const (
	OfferLookUp OfferDo = iota + 1
	OfferCommit
	OfferHand
	OfferHeed
	OfferOver
)

// Offer begins a write. deletes: a record must be there. steady is a clock that never runs fast.
func (ns *Namespace) Offer(d Draft, deletes bool, ack route.Ack, steady func() time.Duration) *Offering {
	return &Offering{ns: ns, draft: d, deletes: deletes, ack: ack, steady: steady}
}

// Next is what to do now.
func (o *Offering) Next() OfferDo {
	for o.next == 0 {
		o.try()
	}
	return o.next
}

// try begins one.
func (o *Offering) try() {
	o.tries++
	var err error
	o.remote = o.ns.Remote(o.draft.Record.Key)
	o.need, err = o.remote.Enough(o.ack)
	switch {
	case err != nil:
		o.end(route.Written{}, err)
		return
	case o.record != nil:
		if !slices.Contains(o.remote.hosts, o.ns.node.ID) {
			o.here = "" // a new layout names others: what is held here does not count
		}
		o.hand()
		return
	}
	o.set, o.here, o.settled = o.remote.Here(), "", false
	if o.draft.If != nil && o.set != nil && (o.need > 1 || !o.set.Settled()) {
		o.set = nil // this node is asked in its turn: the first host decides which of two such writes comes first
	}
	sure := false // what is held here is enough for a condition
	if o.set != nil {
		o.here, o.settled, sure = o.ns.node.ID, o.set.Settled(), o.set.Current()
	}
	recall := o.ns.Recall
	if o.set == nil { // else what it holds itself becomes a conflict here
		recall = o.remote.recall
	}
	o.recalled, o.all = recall(o.draft.Record.Key, o.steady()), o.lost
	o.recalled.mine, o.draft.Heeded = o.awaited, o.recalled.Own
	if o.conditional() && (!sure || o.lost || o.recalled.Rests()) { // it may have become a host since it wrote to others
		o.all = o.all || o.recalled.All()
		o.next = OfferLookUp
		return
	}
	if own := o.recalled.Own; own != nil {
		o.draft.Seen = append(slices.Clone(o.draft.Seen), own)
	}
	o.make()
}

// Enough is how many hosts are to hold a record, or says why there are too few.
func (r *Remote) Enough(ack route.Ack) (need int, err error) {
	hosts, err := r.Hosts()
	if err != nil {
		return 0, err
	}
	need, err = ack.Of(r.named)
	switch {
	case err == nil:
	case r.ns.rule != nil && ack > 0 && int(ack) <= r.ns.rule.Replicas: // the layout may name as many yet
		return 0, fmt.Errorf("%w: %d hosts are to hold the record, and the layout names %d: try again when the next one names more, some 15 s after further members have joined, or ask for fewer acknowledgements",
			ErrUnreachable, int(ack), r.named)
	default:
		return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if need > len(hosts) {
		return 0, fmt.Errorf("%w: %d hosts are to hold the record, and of the %d that the layout names %d are members: try again when the next layout names others, or ask for fewer acknowledgements",
			ErrUnreachable, need, r.named, len(hosts))
	}
	return need, nil
}

// conditional: the write rests on what the key holds.
func (o *Offering) conditional() bool { return o.deletes || o.draft.If != nil }

// All: the key is to be looked up at all hosts.
func (o *Offering) All() bool { return o.all }

// LookedUp tells what a look-up of the key has found. Where one host has given what may be behind what this
// node itself has written, all are asked next.
func (o *Offering) LookedUp(found LookedUp, err error) {
	doubts := o.recalled.Misses
	if o.draft.If != nil {
		doubts = o.recalled.Doubts
	}
	if err == nil && !o.all && o.draft.isBeyond(found.Record) {
		o.all = true
		return
	}
	if err == nil && doubts(&found, o.all) {
		if !o.all {
			o.all = true
			return
		}
		found.Behind()
		err = found.Unsure()
	}
	if err == nil {
		err = o.remote.Holds(o.draft, o.deletes, &found)
	}
	if err != nil {
		o.end(route.Written{}, err)
		return
	}
	o.draft.Seen = []*dbadapter.Record{found.Record}
	o.make()
}

// make makes the record; of a host it is committed there first.
func (o *Offering) make() {
	var err error
	o.latest = false
	switch {
	case o.set == nil:
		o.record, err = o.remote.Make(o.draft)
	case o.deletes:
		o.attempt, err = o.set.Delete(o.draft.Record.Key, o.draft.Seen...)
		if err == nil {
			o.attempt.drafts[0].Heeded = o.draft.Heeded
		}
	default:
		o.attempt, err = o.set.Write(o.draft)
	}
	switch {
	case err != nil:
		o.unmade(err)
	case o.set == nil:
		o.hand()
	default:
		o.next = OfferCommit
	}
}

// Attempt is what is to be committed, and Set of which set.
func (o *Offering) Attempt() *Attempt { return o.attempt }

// Set: see Attempt.
func (o *Offering) Set() *Set { return o.set }

// Committed tells that the attempt was committed, or why it was not.
func (o *Offering) Committed(err error) {
	if err != nil {
		o.unmade(err)
		return
	}
	o.record, o.taken = o.attempt.Record(0), true
	o.hand()
}

// unmade follows a record that could not be made. A shard that has left this node meanwhile
// is written to as one of others, and what the node has written meanwhile is looked at.
func (o *Offering) unmade(err error) {
	if (errors.Is(err, ErrNotHost) || errors.Is(err, dbadapter.ErrClosed) || errors.Is(err, errWrittenBeside)) && o.tries < OfferTries {
		o.next = 0
		return
	}
	if conflict, ok := errors.AsType[*ConflictError](err); ok && o.set != nil && o.draft.If != nil && o.draft.If.Compare(conflict.Held) > 0 {
		if !o.lost && o.tries < OfferTries { // this host has not heard of the version yet, or it has lost elsewhere
			o.lost, o.next = true, 0
			return
		}
		err = fmt.Errorf("%w: this host of the shard has not heard of the version yet: try again", ErrUnsure)
	}
	o.end(route.Written{}, err)
}

// hand has the hosts asked, unless it is enough that this node holds the record: then a push
// brings it to the others.
func (o *Offering) hand() {
	o.version = o.record.Version
	if o.here == "" && o.awaited == 0 {
		o.awaited = 1
		o.ns.Await(o.draft.Record.Key) // before it is noted: another call may recall it at once
	}
	if o.here == "" && !o.remote.note(o.record, o.recalled.Own, o.draft.If != nil, o.steady()) { // another call has written the key meanwhile
		if o.beside++; o.draft.If == nil && o.beside < besideMost {
			o.tries-- // which takes no time
		}
		if o.tries == OfferTries {
			o.end(route.Written{}, errWrittenBeside)
			return
		}
		o.record, o.next = nil, 0
		return
	}
	if o.here == "" || o.need > 1 {
		o.next = OfferHand
		return
	}
	held := route.Outcome{Held: true, Settled: o.settled}
	o.end(route.Written{Need: o.need, Held: 1, Settled: o.settled, Hosts: []route.Holder{{Peer: o.here, Outcome: &held}}}, nil)
}

// Remote is the key's shard, and Record what its hosts are asked to hold.
func (o *Offering) Remote() *Remote { return o.remote }

// Record: see Remote.
func (o *Offering) Record() *dbadapter.Record { return o.record }

// Put begins the write to the hosts, until a deadline.
func (o *Offering) Put(deadline, now time.Duration) (*route.Put, error) {
	hosts, err := o.remote.Hosts()
	if err != nil {
		return nil, err
	}
	put, err := route.NewPut(hosts, o.here, o.settled, route.Ack(o.need), deadline, now)
	if err != nil {
		return nil, err
	}
	put.Manner = route.Manner{Patient: o.conditional(), InOrder: o.draft.If != nil, Itself: o.draft.If != nil, On: o.draft.on()}
	return put, nil
}

// Handed tells what hosts have done with the record: what Put.Result says. last: the caller
// waits no longer.
func (o *Offering) Handed(w route.Written, err error, last bool) {
	o.latest = o.latest || w.Taken() // of earlier turns, too: one of the same record may have been late
	o.taken = o.taken || o.latest
	if o.here == "" && !o.latest {
		o.ns.Withdraw(o.remote, o.record, o.steady())
	}
	switch {
	case err == nil || last || o.tries >= OfferTries:
		o.end(w, err)
	case (errors.Is(err, route.ErrOvertaken) || errors.Is(err, route.ErrRefused) && late(&w)) && o.again(w.Others):
		o.next = 0
	case errors.Is(err, route.ErrOvertaken) || o.heeds == maxHeeds:
		o.end(w, err)
	default:
		o.written, o.err, o.next = w, err, OfferHeed
	}
}

// late reports whether a host declines the record for what it has promised meanwhile.
func late(w *route.Written) bool {
	return slices.ContainsFunc(w.Hosts, func(h route.Holder) bool { return h.Outcome != nil && errors.Is(h.Outcome.Declined, ErrLate) })
}

// again has the record made anew, over what hosts hold in its place, if anything, and reports whether it
// may be. A conditional write is looked up anew, unless a host may have taken it.
func (o *Offering) again(others []*dbadapter.Record) bool {
	switch {
	case !o.conditional():
		o.draft.Seen = append(slices.Clone(o.draft.Seen), append(others, o.record)...)
	case o.taken:
		return false
	default:
		o.lost = o.lost || len(others) > 0
	}
	o.record = nil
	return true
}

// Heeded tells whether this node has learnt something of the hosts that have not taken the
// record, so that they may take it now.
func (o *Offering) Heeded(heard bool) {
	if !heard {
		o.end(o.written, o.err)
		return
	}
	o.next = 0
	o.heeds++
	if !o.taken {
		o.record = nil // the list may give another version to it
	}
}

func (o *Offering) end(w route.Written, err error) {
	if o.awaited > 0 {
		o.awaited = 0
		o.ns.Landed(o.draft.Record.Key)
	}
	o.written, o.err, o.next = w, err, OfferOver
}

// Result is how the write has ended, and what hosts have done with the record last. An error
// is one of a write here, of package route, ErrUnsure, or ErrUnreachable.
func (o *Offering) Result() (route.Written, error) { return o.written, o.err }

// Version is that of the record which was made last; the zero value: none was.
func (o *Offering) Version() dbadapter.Version { return o.version }

// Taken reports whether a host holds a record of this write, or may: no error may then say
// that nothing is written.
func (o *Offering) Taken() bool { return o.taken }
