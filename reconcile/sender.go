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
	hasher   dbadapter.Hasher
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
	p := s.pair(r)
	if why := s.declined.reason(p, r.Version); why != 0 {
		sent = withheld(r, why)
		s.link.report.declinedThere(why, r)
		if collectable(&r.Record, why) {
			s.link.report.DeclinedCollectable++
		}
	} else {
		s.leg++
		s.link.report.Sent++
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

// pair is the pair that stands for one record alone: it names the record where
// it is declined.
func (s *sender) pair(r *dbadapter.Hashed) dbadapter.Pair {
	if s.declined.empty() {
		return dbadapter.Pair{}
	}
	return dbadapter.PairOf(s.hasher, r)
}

// settled reads what became of the records sent since the peer's last End.
func (s *sender) settled(m *wire.End) error {
	if m.Applied > uint64(s.leg) || m.Applied+uint64(len(m.Refusals)) > uint64(s.leg+s.adoptable) {
		return violation("%d records applied and %d refused of %d sent and %d offered", m.Applied, len(m.Refusals), s.leg, s.adoptable)
	}
	refused := uint64(s.leg+s.adoptable) - m.Applied // at most
	s.leg, s.adoptable = 0, 0
	named := map[dbadapter.Pair]int{}
	least, most := uint64(0), uint64(0) // of the refusals: collectable
	for _, r := range m.Refusals {
		p := dbadapter.Pair{Index: r.Index, Checksum: r.Checksum}
		sent, err := s.sent(p)
		if err != nil {
			return err
		}
		if named[p]++; named[p] > len(sent) {
			return violation("a record under index %d was refused that was not sent, or twice", r.Index)
		}
		is := func(h *dbadapter.Hashed) bool { return collectable(&h.Record, r.Reason) }
		if slices.ContainsFunc(sent, is) {
			most++
			if !slices.ContainsFunc(sent, func(h *dbadapter.Hashed) bool { return !is(h) }) {
				least++
			}
		}
		s.link.report.declinedThere(r.Reason, sent...)
		if len(sent) == 1 { // else which of them is not known: each is sent again
			s.declined.add(p, sent[0].Version, r.Reason)
		}
	}
	all := len(m.Refusals) < wire.MaxRefusals // were named
	if m.Collectable < least || m.Collectable > refused || all && m.Collectable > most {
		return violation("%d collectable records refused, of which %d were named", m.Collectable, most)
	}
	s.link.report.DeclinedCollectable += int(m.Collectable)
	return nil
}

// sent are the records that the pair stands for, if this side has sent them, or
// offered them. They are several only where a member has ground two keys of one index
// to one checksum.
func (s *sender) sent(p dbadapter.Pair) (sent []*dbadapter.Hashed, err error) {
	if !s.all && !s.under[p.Index] {
		return nil, nil
	}
	if err := s.link.tick(); err != nil {
		return nil, err
	}
	records, err := s.own.bucket(p.Index)
	if err != nil {
		return nil, err
	}
	for n := range records {
		if dbadapter.PairOf(s.hasher, &records[n]) == p {
			sent = append(sent, &records[n])
		}
	}
	return sent, nil
}
