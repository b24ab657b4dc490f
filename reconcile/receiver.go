package reconcile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// receiver takes the peer's records, holds them against what was told, and
// notes which of this side's own they do not answer.
type receiver struct {
	link   *link
	hasher dbadapter.Hasher
	own    *buckets
	plan   *plan
	// gets: records may travel to this side. No record outside the prefix, or the
	// span, is let in.
	gets   bool
	prefix []byte
	span   wire.Span

	// due are the indices from which a record still has to come.
	due map[dbadapter.Index]bool
	// got counts the records received under each index.
	got map[dbadapter.Index]int
	// owed are own records that the peer's under the same index did not
	// answer: of another key of the bucket, or newer. They are noted by digest
	// and read again when they are sent, so that a peer cannot make this side
	// hold values.
	owed map[dbadapter.Index][]dbadapter.Digest
	// arrived is the sum of the digests of the records received.
	arrived dbadapter.Digest
	// told is what the peer's cells told of its records; nil at the initiator,
	// which receives no cells.
	told *announced
	// unmatched are the last records received, while there must be more under
	// their index for them to be what was told: at most maxBucketBytes.
	unmatched []arrival
	reserved  int64 // the most bytes of them so far, taken from the budget

	// pending are the admissions that run aside, in the order of their records: at most
	// mostAside. aside is what they take: at most asideBytes, and besideBytes more.
	pending []*pending
	aside   taken

	// refusals are the records received since the last End and refused. applied counts
	// those let in, received all since the sync began. collectable counts those refused
	// since the last End that an End counts as Collectable.
	refusals          []wire.Refusal
	applied, received int
	collectable       int
	// heldThere counts the records that the direction keeps at the peer.
	heldThere uint64
}

// arrival is a record received. Of a withheld one only head and digest have arrived:
// the peer knows that this side has declined it.
type arrival struct {
	dbadapter.Hashed
	withheld bool
	why      wire.Reason // it declined a withheld one, as the peer says
	// beside is about how many bytes this side holds under the index, which a
	// store reads to compare.
	beside int64
}

func newReceiver(l *link, own *buckets, p *plan) receiver {
	return receiver{
		link: l, hasher: l.opts.Keys.Hasher, own: own, plan: p,
		due: map[dbadapter.Index]bool{}, got: map[dbadapter.Index]int{}, owed: map[dbadapter.Index][]dbadapter.Digest{},
	}
}

// expect makes the records under the indices of these roles due.
func (t *receiver) expect(of ...wire.Role) {
	if !t.gets {
		return
	}
	for _, role := range of {
		for _, i := range t.plan.lists[role] {
			t.due[i] = true
		}
	}
}

// records takes one batch. allowed says which roles were asked for; with last,
// what comes is not answered any more. What arrives is applied as it comes, so
// that a broken connection loses nothing that has arrived.
func (t *receiver) records(m *wire.Records, allowed func(wire.Role) bool, last bool) error {
	waiting := append(make([]arrival, 0, len(t.unmatched)+len(m.Records)), t.unmatched...)
	whole := 0 // of the waiting, those before this one may be applied
	arrived, indices := make([]arrival, len(m.Records)), make([]dbadapter.Index, len(m.Records))
	for n := range arrived {
		r, err := t.hash(&m.Records[n])
		if err != nil {
			return err
		}
		if err := t.check(&r, allowed); err != nil {
			return err
		}
		arrived[n], indices[n] = r, r.Index
	}
	if err := t.own.each(t.link, indices, func(n int, held []dbadapter.Hashed) error {
		r := &arrived[n]
		r.beside = bytesOf(held)
		if m.Records[n].Stub {
			if err := t.complete(r, held); err != nil {
				return err
			}
		}
		if !last {
			t.answer(held, r)
		}
		if len(t.owed[r.Index]) == 0 {
			t.own.done(r.Index)
		}
		if t.told != nil {
			if r.Index != t.told.index {
				whole = len(waiting)
			}
			role := t.plan.role[r.Index]
			if err := t.told.next(r, role == wire.Wanted || role == wire.Older || role == roleBid); err != nil {
				return err
			}
		}
		t.arrived = t.arrived.Add(r.Digest)
		waiting = append(waiting, *r)
		return nil
	}); err != nil {
		return err
	}
	t.received += len(m.Records)
	if t.told == nil || t.told.complete() || sizeOf(waiting[whole:]) > maxBucketBytes {
		whole = len(waiting)
	}
	t.unmatched = waiting[whole:]
	if err := t.wait(sizeOf(t.unmatched)); err != nil {
		return err
	}
	return t.apply(waiting[:whole])
}

// wait makes room for records that wait for the rest of their bucket.
func (t *receiver) wait(n int64) error {
	if n <= t.reserved {
		return nil
	}
	more := n - t.reserved
	t.reserved = n
	return t.link.reserve(more)
}

// hash validates and hashes a record received, the one time. A stub is hashed
// when it has its value; what a withheld record hashes to, the peer says.
func (t *receiver) hash(s *wire.Sent) (arrival, error) {
	if s.Withheld || s.Stub {
		return arrival{Hashed: dbadapter.Hashed{Record: s.Record, Index: t.hasher.Index(s.Record.Key), Digest: s.Digest}, withheld: s.Withheld, why: s.Why}, nil
	}
	r, err := dbadapter.Hash(t.hasher, s.Record)
	if err != nil {
		return arrival{}, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return arrival{Hashed: r}, nil
}

// complete gives a stub the value of the record held under its index.
func (t *receiver) complete(r *arrival, held []dbadapter.Hashed) error {
	if len(held) != 1 {
		return violation("key %q was sent without its value, which this side does not hold", r.Key)
	}
	whole := r.Record
	whole.Value = held[0].Value
	var err error
	r.Hashed, err = dbadapter.Hash(t.hasher, whole)
	return err
}

// check holds a record against what was asked for.
func (t *receiver) check(r *arrival, allowed func(wire.Role) bool) error {
	role, asked := t.plan.role[r.Index]
	if !asked || !t.gets || !allowed(role) {
		return violation("a record of key %q was sent without having been asked for", r.Key)
	}
	if !bytes.HasPrefix(r.Key, t.prefix) {
		return violation("a record of key %q was sent in a sync of the prefix %q", r.Key, t.prefix)
	}
	if t.got[r.Index]++; t.got[r.Index] > maxBucket {
		return violation("more than %d records under one index", maxBucket)
	}
	delete(t.due, r.Index)
	return t.link.tick()
}

// answer takes off what is owed under an index the record that r dominates.
func (t *receiver) answer(held []dbadapter.Hashed, r *arrival) {
	if len(held) == 0 {
		return
	}
	owed, begun := t.owed[r.Index]
	if !begun {
		for n := range held {
			owed = append(owed, held[n].Digest)
		}
	}
	for n := range held {
		if bytes.Equal(held[n].Key, r.Key) && r.dominates(&held[n]) {
			owed = slices.DeleteFunc(owed, func(d dbadapter.Digest) bool { return d == held[n].Digest })
		}
	}
	t.owed[r.Index] = owed
}

// dominates reports whether the peer's record makes it pointless to send ours.
// Of two contents of one version, a withheld one does not tell which wins.
func (r *arrival) dominates(ours *dbadapter.Hashed) bool {
	switch c := ours.Version.Compare(r.Version); {
	case c != 0:
		return c < 0
	case r.Digest == ours.Digest:
		return true
	case r.withheld:
		return false
	}
	return ours.Compare(&r.Record) <= 0
}

// owes counts the own records that the peer's did not answer.
func (t *receiver) owes() (n uint64) {
	for _, digests := range t.owed {
		n += uint64(len(digests))
	}
	return n
}

// sendOwed sends the records that the peer's did not answer, those of the given
// indices without their value.
func (t *receiver) sendOwed(s *sender, stubs map[dbadapter.Index]bool) error {
	maps.DeleteFunc(t.owed, func(_ dbadapter.Index, d []dbadapter.Digest) bool { return len(d) == 0 })
	indices := slices.Sorted(maps.Keys(t.owed)) // sorted: a session is a function of its input
	return t.own.each(t.link, indices, func(at int, records []dbadapter.Hashed) error {
		i := indices[at]
		for n := range records {
			if slices.Contains(t.owed[i], records[n].Digest) {
				if err := s.record(&records[n], stubs[i]); err != nil {
					return err
				}
			}
		}
		return t.link.tick()
	})
}

// finish fails if something that was told has not come.
func (t *receiver) finish() error {
	if t.told != nil {
		if err := t.told.finish(); err != nil {
			return err
		}
	}
	if len(t.due) > 0 {
		return fmt.Errorf("%w: records were told under %d indices that did not come", ErrNotVerified, len(t.due))
	}
	return nil
}

// settled is the End that tells what became of the records received.
func (t *receiver) settled() *wire.End {
	m := &wire.End{Applied: uint64(t.applied), Collectable: uint64(t.collectable), Refusals: t.refusals}
	t.applied, t.collectable, t.refusals = 0, 0, nil
	return m
}
