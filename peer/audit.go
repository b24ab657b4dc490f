package peer

import (
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// Audit recomputes by a scan what the namespace keeps up to date with each commit: the
// number of its records, their digest and their sketch. A sync relies on these and does
// not read the records. It trusts the records alone, not even what the store says of
// their indices. ErrCorrupt says what differs. Writes go on meanwhile; ErrBusy says
// that there were too many.
func (ns *Namespace) Audit(ctx context.Context) error {
	if err := ns.enter("audit"); err != nil {
		return err
	}
	defer ns.gate.leave()
	ctx, cancel := ns.bind(ctx)
	defer cancel()
	for _, sh := range ns.shards() {
		if err := sh.audit(ctx); err != nil {
			return fmt.Errorf("audit %s: %w", ns.Name(), ns.explain(ctx, err))
		}
	}
	return nil
}

func (sh *shard) audit(ctx context.Context) error {
	n := sh.set.Live.Cells()
	snap, err := sh.set.Live.Snapshot(ctx, sh.set.Store, nil)
	if err != nil {
		return err
	}
	defer snap.Close()
	cells, err := snap.Cells(0, n)
	if err != nil {
		return err
	}
	var records uint64
	var digest dbadapter.Digest
	ranges := make([]dbadapter.Sum, dbadapter.Ranges)
	sketch := rateless.NewSketch(sh.set.Keys.Cells, n)
	for r, err := range snap.All(nil) {
		if err != nil {
			return err
		}
		records++
		digest = digest.Add(r.Digest)
		at := dbadapter.RangeOf(r.Index)
		ranges[at] = ranges[at].Add(dbadapter.Sum{Records: 1, Digest: r.Digest})
		read, err := snap.Buckets([]dbadapter.Index{r.Index})
		if err != nil {
			return err
		}
		bucket := read[0]
		// A bucket of several keys is added with the first of them.
		if len(bucket) == 0 {
			return fmt.Errorf("%w: %q is not under its index", ErrCorrupt, clip(r.Key))
		}
		if string(bucket[0].Key) == string(r.Key) {
			var sum dbadapter.Bucket
			for i := range bucket {
				sum.Add(&bucket[i])
			}
			sketch.Add(coded.Pair(r.Index, sum.Pair(sh.set.Keys.Hasher).Checksum))
		}
	}
	switch {
	case snap.Records() != records:
		return fmt.Errorf("%w: it counts %d records, and a scan finds %d", ErrCorrupt, snap.Records(), records)
	case snap.Digest() != digest:
		return fmt.Errorf("%w: the digest that it keeps is %s, that of its records %s", ErrCorrupt, snap.Digest(), digest)
	case !sameRanges(snap, ranges):
		return fmt.Errorf("%w: the sums of ranges that it keeps are not those of its records", ErrCorrupt)
	case !slices.Equal(cells, sketch.Prefix(n)):
		return fmt.Errorf("%w: the sketch that it keeps is not that of its records", ErrCorrupt)
	}
	return nil
}

func sameRanges(snap *replica.Snapshot, ranges []dbadapter.Sum) bool {
	for r, want := range ranges {
		if snap.Ranges(dbadapter.Range(r), dbadapter.Range(r)+1) != want {
			return false
		}
	}
	return true
}
