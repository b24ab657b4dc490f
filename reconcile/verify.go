package reconcile

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The step verify: a decode proves itself by the residuals. A side's residual
// is its digest less the digests of all its records under the decoded
// indices. What is left must be the part that both have in common, so the two
// residuals are equal exactly if the decoding explains the whole difference,
// but for a chance of 2^-256 and members who forge (see docs/THREATS.md).

// residual is this side's, and the bytes of its records under each role.
func residual(own *buckets, acc *account) (dbadapter.Digest, map[wire.Role]int64, error) {
	r := own.replica.Digest()
	bytes := map[wire.Role]int64{}
	hasher := own.hasher
	for i, role := range acc.role {
		records, err := own.bucket(i)
		if err != nil {
			return r, nil, err
		}
		for n := range records {
			r = r.Sub(hasher.Digest(&records[n]))
			bytes[role] += recordSize(&records[n])
		}
	}
	return r, bytes, nil
}

// conceivable refuses the digest of a set that has no records, other than 0.
// The peer would be sent everything, and have nothing to prove.
func conceivable(records uint64, digest dbadapter.Digest) error {
	if records == 0 && digest != (dbadapter.Digest{}) {
		return violation("no records were announced, and the digest of some")
	}
	return nil
}

// recordSize is about what a record takes on the wire.
func recordSize(r *dbadapter.Record) int64 {
	const head = 30 // flags, lengths and version
	return int64(len(r.Key) + len(r.Value) + len(r.Signature) + head)
}

// result tells the responder's residual.
func (b *responder) result() error {
	b.opts.enter(StepVerify)
	r, bytes, err := residual(&b.own, b.account)
	if err != nil {
		return err
	}
	b.residual = r
	gives := bytes[wire.Lacking] + bytes[wire.Newer] + bytes[roleOffered]
	if !b.gives {
		gives = 0
	} else if b.gets {
		gives += b.doubtful / 2 // of which half will come back
	}
	b.link.report.ForecastBytes = b.link.report.WireBytesSent + b.link.report.WireBytesReceived + gives
	return b.link.send(&wire.Result{Method: wire.Sketch, Residual: r, Bytes: uint64(gives), Estimate: uint64(b.link.report.Estimate)})
}

// prove compares the residuals, at the initiator.
func (a *initiator) prove(m *wire.Result) error {
	a.opts.enter(StepVerify)
	r, bytes, err := residual(&a.own, a.account)
	if err != nil {
		return err
	}
	if r != m.Residual {
		return fmt.Errorf("%w: %d differences were decoded from %d cells, and do not explain the gap between the digests; nothing was applied",
			ErrNotVerified, a.account.size(), a.cells)
	}
	a.residual = r
	a.sends = bytes[wire.Wanted] + bytes[wire.Older] + bytes[roleBid]
	if !a.gives {
		a.sends = 0
	}
	a.forecast(m)
	return nil
}

// forecast says what the sync will take, now that the differences are known.
func (a *initiator) forecast(m *wire.Result) {
	r := a.link.report
	r.ForecastBytes = r.WireBytesSent + r.WireBytesReceived + a.sends + int64(min(m.Bytes, 1<<62))
}

// conclude says whether everything that differed has been exchanged. A sync of
// one direction that had something for the other has not done that.
func (e *exchange) conclude() error {
	e.opts.enter(StepVerify)
	r := e.link.report
	r.Rejected += len(e.due)
	r.Verified = r.Rejected == 0 && (e.gives && e.gets || !e.heldBack())
	return nil
}

// heldBack reports whether records may have been left where they were because
// of the direction of the sync.
func (e *exchange) heldBack() bool {
	other := wire.Lacking
	if e.pulls {
		other = wire.Wanted
	}
	return e.unseen > 0 || len(e.account.lists[other]) > 0 || e.held() > 0 || e.heldThere > 0
}

// buckets reads this side's records under an index, and keeps what it read
// while that is little: the residual needs them first, the peer next.
type buckets struct {
	replica Replica
	hasher  dbadapter.Hasher
	kept    map[dbadapter.Index][]dbadapter.Record
	size    int64
}

func (b *buckets) bucket(i dbadapter.Index) ([]dbadapter.Record, error) {
	if records, ok := b.kept[i]; ok {
		return records, nil
	}
	records, err := b.replica.Bucket(i)
	if err != nil {
		return nil, fmt.Errorf("reading the records to compare: %w", err)
	}
	var size int64
	for n := range records {
		size += recordSize(&records[n])
	}
	if b.size += size; b.size <= cacheBytes {
		if b.kept == nil {
			b.kept = map[dbadapter.Index][]dbadapter.Record{}
		}
		b.kept[i] = records
	}
	return records, nil
}
