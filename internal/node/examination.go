package node

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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
func (set *Set) examineAll(members *membership.Members, from ID, now time.Time, records []dbadapter.Hashed) []*refusal {
	refused := make([]*refusal, len(records))
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
func (set *Set) examineAgain(members *membership.Members, from ID, records []dbadapter.Hashed, refused []*refusal) {
	now := set.ns.node.Now()
	for i := range records {
		if refused[i] == nil {
			_, refused[i] = set.examine(members, from, now, &records[i].Record)
		}
	}
}

func unsigned(by ID) *refusal {
	return refuse(wire.ReasonSignature, "it is not signed by its writer %s", by)
}

// examine says why a record must stay outside whatever its signature is, or whose
// signature it must have. In a namespace without signatures the writer is "".
func (set *Set) examine(members *membership.Members, from ID, now time.Time, r *dbadapter.Record) (writer ID, why *refusal) {
	if !set.ns.placedIn(r.Key, set.shard) {
		return "", refuse(wire.ReasonWriter, "its key belongs to shard %d, and it came to shard %d", set.ns.Home(r.Key), set.shard)
	}
	policy := members.Policy()
	if err := hlc.Check(r.Version.Clock.Time(), now, policy.MaxSkew); err != nil {
		return "", &refusal{wire.ReasonClock, err}
	}
	// A dated import has the first reading of its millisecond and no more: an
	// honest node makes no other version without a writer.
	by := r.Version.Writer
	if by == 0 {
		if r.Version != (dbadapter.Version{Clock: dbadapter.TimestampAt(r.Version.Clock.Time())}) {
			return "", refuse(wire.ReasonWriter, "version %s has no writer, and is not that of a dated import", r.Version)
		}
		by = r.Signer
	}
	if policy.Unsigned {
		if !members.Has(from, RoleWrite) {
			return "", refuse(wire.ReasonWriter, "it came from %s, whose role is %s; without signatures only members that may write can pass records on",
				from, members.Role(from))
		}
		return "", nil
	}
	writer, known := members.ByWriter(by)
	switch {
	case !known:
		return "", refuse(wire.ReasonWriter, "its writer %s is not a member that this node knows", by)
	case !members.MayWrite(by, r.Version.Clock):
		return "", refuse(wire.ReasonWriter, "its writer %s had not the right to write then", writer)
	}
	return writer, nil
}
