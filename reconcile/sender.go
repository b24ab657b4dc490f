package reconcile

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// sender sends this side's records, in batches, and holds what the peer says
// of them against what was sent.
type sender struct {
	link     *link
	own      *buckets
	declined *Declined

	outbox      []wire.Sent
	outboxBytes int
	// leg counts the records sent since the peer's last End, but for those
	// withheld, and adoptable those that it was offered and may have adopted.
	leg, adoptable int
	// count counts all records sent, withheld ones included.
	count int
	// under are the indices under which records were sent or offered; all says
	// that every record of the replica was.
	under map[dbadapter.Index]bool
	all   bool
}

// buckets sends this side's records under each of the indices.
func (s *sender) buckets(indices []dbadapter.Index) error {
	return s.own.each(s.link, indices, func(n int, records []dbadapter.Hashed) error {
		if err := s.bucket(records, nil); err != nil {
			return err
		}
		s.own.done(indices[n])
		return nil
	})
}

// bucket sends this side's records under an index; those with the content that
// was bid go without their value.
func (s *sender) bucket(records []dbadapter.Hashed, bid *wire.Offer) error {
	for n := range records {
		r := &records[n]
		stub := bid != nil && !r.Deleted && !bid.Record.Deleted && r.ContentHash() == bid.Hash
		if err := s.record(r, stub); err != nil {
			return err
		}
	}
	return s.link.tick()
}

// record puts a record into the outbox and sends it when it is full. A record
// that the peer has declined before goes as its head and digest.
func (s *sender) record(r *dbadapter.Hashed, stub bool) error {
	s.count++
	sent := wire.Sent{Record: r.Record, Stub: stub}
	if why := s.declined.reason(r); why != 0 {
		sent = withheld(r, why)
		s.link.report.declinedThere(r, why, true)
		if collectable(&r.Record, why) {
			s.link.report.DeclinedCollectable++
		}
	} else {
		s.leg++
		s.link.report.Sent++
		s.link.headway(1, recordSize(&r.Record))
		if !s.all {
			s.under[r.Index] = true
		}
	}
	size := int(recordSize(&sent.Record))
	if stub {
		size -= len(r.Value)
	}
	if len(s.outbox) > 0 && (s.outboxBytes+size > wire.BatchBytes || len(s.outbox) == wire.BatchRecords) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.outbox = append(s.outbox, sent)
	s.outboxBytes += size
	return nil
}

// withheld is a record as it travels to a peer that has declined it.
func withheld(r *dbadapter.Hashed, why wire.Reason) wire.Sent {
	head := r.Record
	head.Value, head.Signature, head.Signer = nil, nil, 0
	return wire.Sent{Record: head, Withheld: true, Why: why, Digest: r.Digest}
}

func (s *sender) flush() error {
	if len(s.outbox) == 0 {
		return nil
	}
	m := &wire.Records{Records: s.outbox}
	s.outboxBytes = 0
	err := s.link.send(m)
	clear(s.outbox) // the session holds no value longer than it must
	s.outbox = s.outbox[:0]
	return err
}

// settled reads what became of the records sent since the peer's last End.
func (s *sender) settled(m *wire.End) error {
	if m.Applied > uint64(s.leg) || m.Applied+uint64(len(m.Refusals)) > uint64(s.leg+s.adoptable) {
		return violation("%d records applied and %d refused of %d sent and %d offered", m.Applied, len(m.Refusals), s.leg, s.adoptable)
	}
	refused := uint64(s.leg+s.adoptable) - m.Applied // at most
	s.leg, s.adoptable = 0, 0
	named := map[dbadapter.Digest]bool{}
	held := uint64(0) // of the refusals: collectable
	for _, r := range m.Refusals {
		sent, err := s.sent(r.Index, r.Digest)
		if err != nil {
			return err
		}
		if sent == nil || named[r.Digest] {
			return violation("a record under index %d was refused that was not sent, or twice", r.Index)
		}
		named[r.Digest] = true
		if collectable(&sent.Record, r.Reason) {
			held++
		}
		s.link.report.declinedThere(sent, r.Reason, false)
		s.declined.add(sent, r.Reason)
	}
	all := len(m.Refusals) < wire.MaxRefusals // were named
	if m.Collectable < held || m.Collectable > refused || all && m.Collectable > held {
		return violation("%d collectable records refused, of which %d were named", m.Collectable, held)
	}
	s.link.report.DeclinedCollectable += int(m.Collectable)
	return nil
}

// sent is the record of a digest, if this side has sent records under its index, or
// offered them.
func (s *sender) sent(i dbadapter.Index, d dbadapter.Digest) (*dbadapter.Hashed, error) {
	if !s.all && !s.under[i] {
		return nil, nil
	}
	if err := s.link.tick(); err != nil {
		return nil, err
	}
	records, err := s.own.bucket(i)
	if err != nil {
		return nil, err
	}
	if n := slices.IndexFunc(records, func(r dbadapter.Hashed) bool { return r.Digest == d }); n >= 0 {
		return &records[n], nil
	}
	return nil, nil
}
