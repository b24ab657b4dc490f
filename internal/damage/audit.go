package damage

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// Read reads all that is kept of a namespace, and checks it.
func Read(ctx context.Context, log *slog.Logger, ns *node.Namespace, v *status.Verification) error {
	drift, err := Drift(ctx, log, ns, nil)
	if err != nil {
		return err
	}
	v.Drift = drift
	v.Records = 0
	for _, why := range []dbadapter.Why{dbadapter.KeptConflict, dbadapter.KeptSetAside} {
		for _, err := range ns.Kept(ctx, why, 0) {
			if err != nil {
				return err
			}
		}
	}
	for _, set := range ns.Sets() {
		_, records, _ := set.Live.State()
		v.Records += int64(records)
		if err := Audit(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// Drift computes anew what is kept, puts right what is not that of the records, and
// says what that was.
func Drift(ctx context.Context, log *slog.Logger, ns *node.Namespace, tick func() error) (string, error) {
	data, control, err := ns.Audit(ctx, tick)
	found := ""
	for _, d := range []struct {
		where string
		any   bool
		what  string
	}{{"", data.Any(), data.String()}, {"in the control namespace, ", control.Any(), control.String()}} {
		if !d.any {
			continue
		}
		if found != "" {
			found += "; "
		}
		found += d.where + d.what
	}
	if found != "" {
		log.Error("what the node keeps of its records had drifted, and is put right: this is a fault of the program, or of the memory; please report it",
			slog.String("ns", ns.Members().Name()), slog.String("drift", found))
	}
	return found, err
}

// Audit compares what a set keeps up to date for syncs with a scan of its records. It
// trusts the records alone, not even what the store says of their indices.
func Audit(ctx context.Context, set *node.Set) error {
	n := set.Live.Cells()
	snap, err := set.Live.Snapshot(ctx, set.Store, nil)
	if err != nil {
		return err
	}
	defer snap.Close()
	cells, err := snap.Cells(0, n)
	if err != nil {
		return err
	}
	var all dbadapter.Sum
	ranges := make([]dbadapter.Sum, dbadapter.Ranges)
	sketch := rateless.NewSketch(set.Keys.Cells, n)
	for r, err := range snap.All() {
		if err != nil {
			return err
		}
		at, one := dbadapter.RangeOf(r.Index), dbadapter.Sum{Records: 1, Digest: r.Digest}
		all, ranges[at] = all.Add(one), ranges[at].Add(one)
		read, err := snap.Buckets([]dbadapter.Index{r.Index})
		if err != nil {
			return err
		}
		bucket := read[0]
		// A bucket of several keys is added with the first of them.
		if len(bucket) == 0 {
			return fmt.Errorf("%w: %q is not under its index", dbadapter.ErrCorrupt, r.Key[:min(len(r.Key), 64)])
		}
		if string(bucket[0].Key) == string(r.Key) {
			var sum dbadapter.Bucket
			for i := range bucket {
				sum.Add(&bucket[i])
			}
			sketch.Add(coded.Pair(r.Index, sum.Pair(set.Keys.Hasher).Checksum))
		}
	}
	switch kept := snap.Sum(); {
	case kept.Records != all.Records:
		return fmt.Errorf("%w: it counts %d records, and a scan finds %d", dbadapter.ErrCorrupt, kept.Records, all.Records)
	case kept.Digest != all.Digest:
		return fmt.Errorf("%w: the digest that it keeps is %s, that of its records %s", dbadapter.ErrCorrupt, kept.Digest, all.Digest)
	case !sameRanges(snap, ranges):
		return fmt.Errorf("%w: the sums of ranges that it keeps are not those of its records", dbadapter.ErrCorrupt)
	case !slices.Equal(cells, sketch.Prefix(n)):
		return fmt.Errorf("%w: the sketch that it keeps is not that of its records", dbadapter.ErrCorrupt)
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
