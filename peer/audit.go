package peer

import (
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
)

// Audit sets what a namespace keeps up to date with each commit, so that a
// sync need not look at its records, beside what its records give.
type Audit struct {
	// Kept is what is kept, Scanned what a scan of the records gives, both as
	// of one moment.
	Kept, Scanned Summary
}

// Summary describes a set of records: their number, tombstones included, the
// sum of their digests, and the first cells of their sequence.
type Summary struct {
	Digest  dbadapter.Digest
	Records uint64
	Cells   []rateless.Cell
}

// Err is nil if the two summaries are the same, and else an ErrCorrupt that
// says what differs.
func (a *Audit) Err() error {
	switch {
	case a.Kept.Records != a.Scanned.Records:
		return fmt.Errorf("%w: %d records are counted, %d are there", ErrCorrupt, a.Kept.Records, a.Scanned.Records)
	case a.Kept.Digest != a.Scanned.Digest:
		return fmt.Errorf("%w: the kept digest is %s, that of the records %s", ErrCorrupt, a.Kept.Digest, a.Scanned.Digest)
	case !slices.Equal(a.Kept.Cells, a.Scanned.Cells):
		return fmt.Errorf("%w: the kept sketch is not that of the records", ErrCorrupt)
	}
	return nil
}

// Audit recomputes by a scan what the namespace keeps: nothing but the records
// is trusted, not even what the store says of its indices. Writes go on
// meanwhile; ErrBusy says that there were too many.
func (ns *Namespace) Audit(ctx context.Context) (_ *Audit, err error) {
	if err := ns.enter("audit"); err != nil {
		return nil, err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	a, err := ns.audit(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", ns.Name(), ns.explain(ctx, err))
	}
	return a, nil
}

func (ns *Namespace) audit(ctx context.Context) (*Audit, error) {
	cells := ns.core.Live.Cells()
	snap, err := ns.core.Live.Snapshot(ctx, ns.core.Store, nil)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	a := &Audit{Kept: Summary{Digest: snap.Digest(), Records: snap.Records()}}
	if a.Kept.Cells, err = snap.Cells(0, cells); err != nil {
		return nil, err
	}
	sketch := rateless.NewSketch(ns.core.Keys.Cells, cells)
	for r, err := range snap.All() {
		if err != nil {
			return nil, err
		}
		a.Scanned.Records++
		a.Scanned.Digest = a.Scanned.Digest.Add(r.Digest)
		bucket, err := snap.Bucket(r.Index)
		if err != nil {
			return nil, err
		}
		// A bucket of several keys is added with the first of them.
		if len(bucket) == 0 {
			return nil, fmt.Errorf("%w: %q is not under its index", ErrCorrupt, clip(r.Key))
		}
		if string(bucket[0].Key) == string(r.Key) {
			var sum dbadapter.Bucket
			for i := range bucket {
				sum.Add(&bucket[i])
			}
			sketch.Add(coded.Pair(r.Index, sum.Pair(ns.core.Keys.Hasher).Checksum))
		}
	}
	a.Scanned.Cells = sketch.Prefix(cells)
	return a, nil
}
