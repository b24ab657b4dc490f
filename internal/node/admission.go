package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/signature"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Admit is the one way in for records from a peer in a sync. It examines each
// record alone, and commit commits those that pass. The verdicts are in the order
// of the records. theirs is the floor that the peer has greeted with. The sync has
// begun in the term began of this node's tenure, which is 0 for a sync that counts
// in no term.
func (set *Set) Admit(ctx context.Context, from ID, theirs dbadapter.Timestamp, began quorum.Term, records []dbadapter.Hashed) (commit func() ([]reconcile.Verdict, error)) {
	a := set.arrived(set.ns.Members(), from, theirs, set.ns.node.Now(), records)
	a.began = began
	return func() ([]reconcile.Verdict, error) {
		past := set.gc.Past()
		for first := 0; first < len(records); {
			most := set.pace.next(set.commits.singles.Load(), set.ns.node.elapsed(), admitLeast, admitMost)
			last := min(first+most, len(records))
			slice := a.slice(first, last)
			if most < admitMost {
				set.slowly.Lock()
			}
			err := set.let(ctx, past, slice)
			if most < admitMost {
				set.slowly.Unlock()
			}
			set.listRefused(slice)
			if err != nil {
				return nil, err
			}
			first = last
		}
		return a.verdicts, nil
	}
}

// let lets records in that have been examined, and says in the arrivals what became
// of each. It shares the commits with single writes, and the store's transactions
// too. A single write that such a record overtakes is made anew, as if another
// single write had overtaken it.
//
// The list of members is read while commits is held. So what a sweep for a later
// list reads holds all that an earlier list has let in.
func (set *Set) let(ctx context.Context, past dbadapter.Timestamp, arrivals ...*Arrival) error {
	set.commits.RLock()
	defer set.commits.RUnlock()
	if set.tenure.ended() {
		return dbadapter.ErrClosed
	}
	for _, a := range arrivals {
		if err := set.takes(); err != nil && a.way != bySync && !a.adopts {
			return err
		}
		defer set.tenure.entered(a.began)
	}
	members := set.ns.Members()
	room := 0
	for _, a := range arrivals {
		if members != a.members {
			set.examineAgain(members, a.from, a.Records, a.refused)
		}
		if err := set.keepOut(members, a); err != nil {
			return err
		}
		if err := set.keepPromise(a); err != nil {
			return err
		}
		room += len(a.Records)
	}
	writes := make([]dbadapter.Write, 0, room)
	for _, a := range arrivals {
		a.refuseTogether()
		for i, why := range a.refused {
			if why != nil {
				continue
			}
			// The clock observes before the commit. A reader of one of these
			// versions may write on the condition that it is held, and then gets a
			// greater version.
			set.ns.clock.Observe(hlc.Timestamp(a.Records[i].Version.Clock))
			w := dbadapter.Write{Record: a.Records[i], Past: past, Must: a.Together}
			if len(a.Over) > 0 {
				w.If = a.Over[i]
			}
			writes = append(writes, w)
		}
	}
	outcomes, err := set.Apply(ctx, writes)
	set.written(writes[:len(outcomes)], outcomes)
	if err != nil {
		return err
	}
	for _, a := range arrivals {
		for i, why := range a.refused {
			if why != nil {
				a.verdicts[i].Reason = why.Reason
				continue
			}
			if a.verdicts[i].Result = outcomes[0].Result; outcomes[0].Result == dbadapter.Full {
				a.refused[i] = &refusals.Refusal{Reason: wire.ReasonFull, Err: refusals.ErrFull}
				a.verdicts[i] = reconcile.Verdict{Reason: wire.ReasonFull}
			}
			outcomes = outcomes[1:]
		}
	}
	return nil
}

// refuseTogether refuses all records of which one is refused, where they are committed together.
func (a *Arrival) refuseTogether() {
	if !a.Together {
		return
	}
	at := slices.IndexFunc(a.refused, func(r *refusals.Refusal) bool { return r != nil })
	for i := range a.refused {
		if at >= 0 && a.refused[i] == nil {
			a.refused[i] = a.refused[at]
		}
	}
}

// keepPromise treats as a dated import what a writer routes, or what a member
// without pledges gives. Such a sender does not promise to hold the record, and its clock
// may be behind what this node has promised to hold. What comes too late is
// refused, and the promise stays below the rest until the others hold it, too.
// commits is held.
func (set *Set) keepPromise(a *Arrival) error {
	if a.way != byRoute && set.ns.pledges(a.from) {
		return nil
	}
	// What is held already, or in a later version, changes nothing. A record that
	// is sent again and again must not hold the promises back, nor cost a durable
	// state each time.
	changes := make([]bool, len(a.Records))
	look := func(i int) error {
		held, err := set.Held(a.Records[i].Key)
		changes[i] = err == nil && (held == nil || held.Compare(&a.Records[i].Record) < 0)
		return err
	}
	for i := range a.Records {
		if changes[i] = a.refused[i] == nil && len(a.Newer) > 0 && a.Newer[i]; changes[i] || a.refused[i] != nil {
			continue
		}
		if err := look(i); err != nil {
			return err
		}
	}
	at := set.gc.Next()
	var failed error
	err := set.gc.Update(func(w *watermark.Watermark) bool { // no promise is made in between
		late := w.UpTo()
		least, own := watermark.Never, dbadapter.Timestamp(0)
		for i := range a.Records {
			clock := a.Records[i].Version.Clock
			if changes[i] && clock <= late && len(a.Newer) > 0 { // it may have come since
				if failed = look(i); failed != nil {
					return false
				}
			}
			switch {
			case !changes[i]:
			case clock <= late:
				a.refused[i] = refusals.Refuse(wire.ReasonFloor, "it is not later than %s, up to when this node has said to hold all", late.Time().Format(time.RFC3339))
			default:
				least = min(least, clock)
				if a.Earliest != 0 && a.Records[i].Version.Writer == 0 {
					least = min(least, max(a.Earliest, late+1))
				}
				if set.ns.own(&a.Records[i].Record) && (own == 0 || clock < own) {
					own = clock
				}
			}
		}
		return least != watermark.Never && w.Hold(least, own, at)
	})
	return errors.Join(failed, err)
}

// listRefused lists what was refused of an arrival, but for what is held as a later
// version already.
func (set *Set) listRefused(a *Arrival) {
	any := false
	for i, why := range a.refused {
		if why != nil && why.Err != nil {
			set.reject(&a.Records[i], a.from, why)
			any = true
		}
	}
	if any {
		set.outdated(a.Records, a.refused)
	}
}

// keepOut refuses the records that the floor keeps out. commits is held.
func (set *Set) keepOut(members *membership.Members, a *Arrival) (err error) {
	floor := set.Floor()
	follows := !members.Has(set.ns.node.ID, RoleWrite) && members.Has(a.from, RoleWrite)
	var snap dbadapter.Snapshot
	defer func() {
		if snap != nil {
			snap.Close()
		}
	}()
	for i := range a.Records {
		r := &a.Records[i]
		if a.refused[i] != nil || !watermark.KeepsOut(floor, r.Version.Clock, follows, a.theirs) {
			continue
		}
		if snap == nil {
			if snap, err = set.Store.Snapshot(); err != nil {
				return err
			}
		}
		switch _, err := snap.Get(r.Key); {
		case err == nil: // it is no newcomer
			continue
		case !errors.Is(err, dbadapter.ErrNotFound):
			return err
		}
		if at, ok := r.Due(); ok && at <= floor {
			a.refused[i] = &refusals.Refusal{Reason: wire.ReasonFloor, Err: nil} // it has been collected here, and is missed by no person
			continue
		}
		a.refused[i] = refusals.Refuse(wire.ReasonFloor, "it is not later than %s, up to when deleted records have been collected here", floor.Time().Format(time.RFC3339))
	}
	return nil
}

// verifiedMost, verifiedAlone and verifiedLeast are how many records share a check
// of their signatures, at most. While several batches are examined, each is one
// piece, and they keep the processors busy. The sum over the points of 1,300
// together takes a fifth less than of 384 (decisions/0021). One batch alone is cut
// in pieces for them: that of a frame of small records makes four. While single
// writes arrive, 32 keep a processor busy for 0.3 ms, as other work of a sync does.
// Each of 32 takes a tenth more than of 128. A write passes some ten goroutines,
// each of which may wait for such a piece.
const (
	verifiedMost  = wire.BatchRecords
	verifiedAlone = 384
	verifiedLeast = 32
)

// examineAll says of each record why it must stay outside, or nil. Each has the
// verdict that it would have alone.
func (set *Set) examineAll(members *membership.Members, from ID, now time.Time, records []dbadapter.Hashed) []*refusals.Refusal {
	refused := make([]*refusals.Refusal, len(records))
	atOnce := set.verifying.next(set.commits.singles.Load(), set.ns.node.elapsed(), verifiedLeast, verifiedMost)
	each := set.ns.node.Each
	if atOnce == verifiedLeast {
		each = set.oneByOne
	}
	if set.examining.Add(1) == 1 {
		atOnce = min(atOnce, verifiedAlone)
	}
	defer set.examining.Add(-1)
	chunks := (len(records) + atOnce - 1) / atOnce
	each(chunks, func(chunk int) {
		first, last := chunk*len(records)/chunks, (chunk+1)*len(records)/chunks
		v := verification{namespace: set.Keys.ID, records: records[first:last]}
		for i := first; i < last; i++ {
			r := &records[i].Record
			writer, why := set.examine(members, from, now, r)
			if refused[i] = why; why != nil || writer == "" {
				continue
			}
			if !v.add(writer, i-first) {
				refused[i] = unsigned(writer)
			}
		}
		for i, ok := range set.ns.node.Verify(v.checks) {
			if !ok {
				refused[first+v.places[i]] = unsigned(v.writers[i])
			}
		}
	})
	return refused
}

// oneByOne calls fn(0) … fn(k−1) and lets others run in between. The other
// processors are for single writes, so the batches of several admissions take
// turns.
func (p *Part) oneByOne(k int, fn func(i int)) {
	for i := range k {
		p.slowly.Lock()
		fn(i)
		p.slowly.Unlock()
		if p.ns.node.GiveWay != nil {
			p.ns.node.GiveWay()
		}
	}
}

// examineAgain examines those that passed under a list that has come since. Their
// signatures stay what they are: a writer's id holds its key.
func (set *Set) examineAgain(members *membership.Members, from ID, records []dbadapter.Hashed, refused []*refusals.Refusal) {
	now := set.ns.node.Now()
	for i := range records {
		if refused[i] == nil {
			_, refused[i] = set.examine(members, from, now, &records[i].Record)
		}
	}
}

func unsigned(by ID) *refusals.Refusal {
	return refusals.Refuse(wire.ReasonSignature, "it is not signed by its writer %s", by)
}

// examine says why a record must stay outside whatever its signature is, or whose
// signature it must have. In a namespace without signatures the writer is "".
func (set *Set) examine(members *membership.Members, from ID, now time.Time, r *dbadapter.Record) (writer ID, why *refusals.Refusal) {
	if !set.ns.placedIn(r.Key, set.shard) {
		return "", refusals.Refuse(wire.ReasonWriter, "its key belongs to shard %d, and it came to shard %d", set.ns.Home(r.Key), set.shard)
	}
	policy := members.Policy()
	if err := hlc.Check(r.Version.Clock.Time(), now, policy.MaxSkew); err != nil {
		return "", &refusals.Refusal{Reason: wire.ReasonClock, Err: err}
	}
	// A dated import has the first reading of its millisecond and no more: an
	// honest node makes no other version without a writer.
	by := r.Version.Writer
	if by == 0 {
		if r.Version != (dbadapter.Version{Clock: dbadapter.TimestampAt(r.Version.Clock.Time())}) {
			return "", refusals.Refuse(wire.ReasonWriter, "version %s has no writer, and is not that of a dated import", r.Version)
		}
		by = r.Signer
	}
	if policy.Unsigned {
		if !members.Has(from, RoleWrite) {
			return "", refusals.Refuse(wire.ReasonWriter, "it came from %s, whose role is %s; without signatures only members that may write can pass records on",
				from, members.Role(from))
		}
		return "", nil
	}
	writer, known := members.ByWriter(by)
	switch {
	case !known:
		return "", refusals.Refuse(wire.ReasonWriter, "its writer %s is not a member that this node knows", by)
	case !members.MayWrite(by, r.Version.Clock):
		return "", refusals.Refuse(wire.ReasonWriter, "its writer %s had not the right to write then", writer)
	}
	return writer, nil
}

// Signed reports whether a node's key made the record's signature.
func (p *Part) Signed(by ID, r *dbadapter.Record) bool {
	c, ok := p.check(by, r)
	return ok && p.ns.node.Verify([]signature.Check{c})[0]
}

// check is what must be verified of a record's signature, if it can be the node's.
func (p *Part) check(by ID, r *dbadapter.Record) (c signature.Check, ok bool) {
	key, err := by.PublicKey()
	if err != nil || len(r.Signature) != dbadapter.SignatureSize {
		return c, false
	}
	return signature.Check{Key: key, Message: SignedBytes(p.Keys.ID, r), Signature: r.Signature}, true
}

// verification collects what must be verified of several records. All that was signed lies
// in one piece of memory.
type verification struct {
	namespace dbadapter.NamespaceID
	records   []dbadapter.Hashed
	checks    []signature.Check
	writers   []ID
	places    []int // of checks among the records
	signed    []byte
}

// begin makes room for all of the records. Those of a namespace without signatures need
// none.
func (v *verification) begin() {
	size, n := 0, len(v.records)
	for i := range v.records {
		size += signedSize(&v.records[i].Record)
	}
	v.checks, v.writers, v.places = make([]signature.Check, 0, n), make([]ID, 0, n), make([]int, 0, n)
	v.signed = make([]byte, 0, size)
}

// add adds the signature of the record at a place, if it can be the writer's.
func (v *verification) add(writer ID, place int) bool {
	r := &v.records[place].Record
	if len(r.Signature) != dbadapter.SignatureSize {
		return false
	}
	if v.checks == nil {
		v.begin()
	}
	var key ed25519.PublicKey
	if last := len(v.writers) - 1; last >= 0 && v.writers[last] == writer {
		key = v.checks[last].Key
	} else {
		var err error
		if key, err = writer.PublicKey(); err != nil {
			return false
		}
	}
	start := len(v.signed)
	v.signed = appendSigned(v.signed, v.namespace, r)
	message := v.signed[start:len(v.signed):len(v.signed)]
	v.checks = append(v.checks, signature.Check{Key: key, Message: message, Signature: r.Signature})
	v.writers, v.places = append(v.writers, writer), append(v.places, place)
	return true
}

// verify reports whether a key made one signature.
func (n *Node) verify(key ed25519.PublicKey, message, made []byte) bool {
	return n.Verify([]signature.Check{{Key: key, Message: message, Signature: made}})[0]
}
