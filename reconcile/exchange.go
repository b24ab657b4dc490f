package reconcile

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// exchange is what both sides do alike while records travel.
type exchange struct {
	link    *link
	replica Replica
	opts    Options
	own     buckets
	// account is what is to be done about each difference.
	account *account
	// residual is this side's own.
	residual dbadapter.Digest
	// gives and gets say which way records may travel, seen from here.
	gives, gets bool
	// pulls: records travel to the initiator only, if not both ways.
	pulls bool
	// prefix is the scope: no record outside it is let in.
	prefix []byte
	// got counts the records received under each index.
	got map[dbadapter.Index]int
	// fetches: the peer may fetch what it was offered.
	fetches bool
	// told is what the peer's cells told of its records; nil at the initiator,
	// which has seen none.
	told *announced
	// unmatched are the last records received, while there must be more under
	// their index for them to be what was told: at most maxBucketBytes.
	unmatched []dbadapter.Record
	// arrived is the sum of the digests of the records received.
	arrived dbadapter.Digest
	// heldThere counts the records that the peer keeps back, and withheld the
	// own ones since the last End that would have answered the peer's, and that
	// it has refused before.
	heldThere uint64
	withheld  uint64
	// unseen counts the records that this direction of a sync by the method
	// all leaves uncompared.
	unseen uint64

	outbox      []wire.Sent
	outboxBytes int

	// due are the indices from which a record still has to come.
	due map[dbadapter.Index]bool
	// owing are own records that the peer's under the same index did not
	// answer: another key of the bucket, or an older version than ours.
	owing map[dbadapter.Index][]dbadapter.Record
	// stubs are the owed ones whose content the peer holds.
	stubs map[dbadapter.Index]bool
	// fetch are the indices that were asked for by the receiving side.
	fetch []dbadapter.Index
	// refusals are the records received since the last End and refused.
	refusals []wire.Refusal
	applied  int // records applied since the last End
	received int // records received
	// sends is about how many bytes of records this side has to send.
	sends int64
}

func newExchange(l *link, r Replica, o Options) exchange {
	return exchange{
		link: l, replica: r, opts: o, own: buckets{replica: r, hasher: o.Keys.Hasher}, account: newAccount(),
		due: map[dbadapter.Index]bool{}, owing: map[dbadapter.Index][]dbadapter.Record{}, stubs: map[dbadapter.Index]bool{}, got: map[dbadapter.Index]int{}, prefix: o.Prefix,
	}
}

// sendBucket sends this side's records under an index; those with the content
// that was bid go without their value.
func (e *exchange) sendBucket(i dbadapter.Index, bid *wire.Offer) error {
	records, err := e.own.bucket(i)
	if err != nil {
		return err
	}
	if e.opts.Aside.has(i, e.checksum(records)) {
		e.link.report.Rejected++ // the peer has refused these before
		return nil
	}
	for n := range records {
		r := &records[n]
		stub := bid != nil && !r.Deleted && !bid.Record.Deleted && r.ContentHash() == bid.Hash
		if err := e.sendRecord(r, stub); err != nil {
			return err
		}
	}
	return nil
}

// checksum is the one of a bucket as it was read.
func (e *exchange) checksum(records []dbadapter.Record) dbadapter.Checksum {
	if e.opts.Aside.empty() || len(records) == 0 {
		return 0
	}
	var latest dbadapter.Timestamp
	digests := make([]dbadapter.Digest, len(records))
	for n := range records {
		latest = max(latest, records[n].Version.Clock)
		digests[n] = e.opts.Keys.Hasher.Digest(&records[n])
	}
	return e.opts.Keys.Hasher.Checksum(latest, digests)
}

// sendRecord puts a record into the outbox and sends it when it is full.
func (e *exchange) sendRecord(r *dbadapter.Record, stub bool) error {
	size := int(recordSize(r))
	if stub {
		size -= len(r.Value)
	}
	if len(e.outbox) > 0 && (e.outboxBytes+size > wire.BatchBytes || len(e.outbox) == wire.BatchRecords) {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.outbox = append(e.outbox, wire.Sent{Record: *r, Stub: stub})
	e.outboxBytes += size
	return nil
}

func (e *exchange) flush() error {
	if len(e.outbox) == 0 {
		return nil
	}
	m := &wire.Records{Records: e.outbox}
	e.link.report.Sent += len(e.outbox)
	e.outbox, e.outboxBytes = e.outbox[:0], 0
	return e.link.send(m)
}

// sendOwing sends the records that the peer's did not answer.
func (e *exchange) sendOwing() error {
	for _, i := range slices.Sorted(maps.Keys(e.owing)) { // sorted: a session is a function of its input
		records := e.owing[i]
		if len(records) > 0 && e.opts.Aside.has(i, e.checksum(records)) {
			e.link.report.Rejected++ // the peer has refused these before
			e.withheld += uint64(len(records))
			continue
		}
		for n := range records {
			if err := e.sendRecord(&records[n], e.stubs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// end closes this side's list of records, and accounts for those received.
func (e *exchange) end() error {
	if err := e.flush(); err != nil {
		return err
	}
	m := &wire.End{Applied: uint64(e.applied), Held: e.held() + e.withheld, Refusals: e.refusals}
	e.applied, e.refusals, e.withheld = 0, nil, 0
	return e.link.send(m)
}

// held counts the own records that the peer's did not answer, and that may not
// travel to it.
func (e *exchange) held() (n uint64) {
	if !e.gives {
		for _, records := range e.owing {
			n += uint64(len(records))
		}
	}
	return n
}

// receive takes batches of records until the peer's End. Each batch is
// applied in one transaction as it comes, so that a broken connection loses
// nothing that has arrived. allowed says which roles were asked for; with
// last, what comes is not answered any more.
func (e *exchange) receive(allowed func(wire.Role) bool, last bool) error {
	for {
		m, err := e.link.receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.Indices:
			if m.Role != wire.Fetch || !e.fetches || last {
				return violation("a list of role %d among the records", m.Role)
			}
			if err := e.fetched(m.Indices); err != nil {
				return err
			}
		case *wire.Records:
			if err := e.batch(m, allowed, last); err != nil {
				return err
			}
		case *wire.End:
			if e.told != nil {
				if err := e.told.finish(); err != nil {
					return err
				}
			}
			return e.ended(m)
		default:
			return unexpected(m)
		}
	}
}

// fetched notes what the peer fetches: what it was offered, and that once, so
// that a few bytes do not fetch a large value over and over.
func (e *exchange) fetched(indices []dbadapter.Index) error {
	for _, i := range indices {
		if e.account.role[i] != roleOffered {
			return violation("index %d was fetched twice, or without having been offered", i)
		}
		e.account.role[i] = roleFetched
	}
	e.fetch = append(e.fetch, indices...)
	return nil
}

// batch checks one batch against what was asked for, and applies it.
func (e *exchange) batch(m *wire.Records, allowed func(wire.Role) bool, last bool) error {
	records := append(make([]dbadapter.Record, 0, len(e.unmatched)+len(m.Records)), e.unmatched...)
	whole := 0 // of the records, those before this one may be applied
	for n := range m.Records {
		r := m.Records[n].Record
		i := e.opts.Keys.Hasher.Index(r.Key)
		role, asked := e.account.role[i]
		if !asked || !e.gets || !allowed(role) {
			return violation("a record of key %q was sent without having been asked for", r.Key)
		}
		if !bytes.HasPrefix(r.Key, e.prefix) {
			return violation("a record of key %q was sent in a sync of the prefix %q", r.Key, e.prefix)
		}
		if e.got[i]++; e.got[i] > maxBucket {
			return violation("more than %d records under one index", maxBucket)
		}
		delete(e.due, i)
		var held []dbadapter.Record
		if !last {
			var err error
			if held, err = e.own.bucket(i); err != nil {
				return err
			}
			e.answered(i, held, &r)
		}
		if m.Records[n].Stub {
			if len(held) != 1 {
				return violation("key %q was sent without its value, which this side does not hold", r.Key)
			}
			r.Value = held[0].Value
		}
		if e.told != nil {
			if i != e.told.index {
				whole = len(records)
			}
			if err := e.told.next(i, &r, role == wire.Wanted || role == wire.Older || role == roleBid); err != nil {
				return err
			}
		}
		e.arrived = e.arrived.Add(e.opts.Keys.Hasher.Digest(&r))
		records = append(records, r)
	}
	e.received += len(m.Records)
	if e.told == nil || e.told.complete() {
		whole = len(records)
	}
	e.unmatched = records[whole:]
	if n := sizeOf(e.unmatched); n > maxBucketBytes {
		return violation("%d bytes of records under one index; at most %d are allowed", n, maxBucketBytes)
	}
	// What was held back may have made a batch larger than one transaction.
	from, size := 0, int64(0)
	for to := range whole {
		next := recordSize(&records[to])
		if to-from == wire.BatchRecords || to > from && size+next > wire.MaxFrame {
			if err := e.apply(records[from:to:to]); err != nil {
				return err
			}
			from, size = to, 0
		}
		size += next
	}
	return e.apply(records[from:whole:whole])
}

// sizeOf is about what records take on the wire.
func sizeOf(records []dbadapter.Record) (n int64) {
	for i := range records {
		n += recordSize(&records[i])
	}
	return n
}

// answered takes off what is owed under an index the record that r dominates.
func (e *exchange) answered(i dbadapter.Index, held []dbadapter.Record, r *dbadapter.Record) {
	owing, begun := e.owing[i]
	if !begun {
		owing = slices.Clone(held)
	}
	owing = slices.DeleteFunc(owing, func(o dbadapter.Record) bool {
		return string(o.Key) == string(r.Key) && o.Version.Compare(r.Version) <= 0 && (o.Version != r.Version || o.Compare(r) <= 0)
	})
	e.owing[i] = owing
}

// ended reads the peer's account of what it received.
func (e *exchange) ended(m *wire.End) error {
	offered := len(e.account.offers) // they may be refused without having been sent
	if m.Applied > uint64(e.link.report.Sent) || len(m.Refusals) > e.link.report.Sent+offered {
		return violation("%d records applied and %d refused of %d sent", m.Applied, len(m.Refusals), e.link.report.Sent)
	}
	e.heldThere += m.Held
	if e.gives && e.gets {
		// The direction keeps nothing back: this side has refused them before,
		// and nothing else tells it that they are there.
		e.link.report.Rejected += int(min(m.Held, math.MaxInt32))
	}
	e.link.report.Rejected += len(m.Refusals)
	for _, r := range m.Refusals {
		e.opts.Aside.add(r)
	}
	return nil
}
