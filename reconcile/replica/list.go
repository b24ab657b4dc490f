package replica

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// The listing of ranges, from the records themselves, and the repair of what was
// kept of them.

// List implements reconcile.Replica.
func (s *Snapshot) List(ranges []dbadapter.Range) iter.Seq2[reconcile.Listed, error] {
	return func(yield func(reconcile.Listed, error) bool) {
		for _, r := range ranges {
			from, to := r.Bounds()
			for part, err := range parts(s.ctx, s.store, from, to) {
				if err != nil {
					yield(reconcile.Listed{}, err)
					return
				}
				for b, err := range ticking(s.tick, s.buckets(part)) {
					if !yield(b, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

// parts yields the indices from from to to, some at a time. So a store's sequence of
// pairs is not held open while their records are read.
func parts(ctx context.Context, store dbadapter.Snapshot, from, to dbadapter.Index) iter.Seq2[[]dbadapter.Index, error] {
	return func(yield func([]dbadapter.Index, error) bool) {
		for from < to {
			var part []dbadapter.Index
			for p, err := range store.Pairs(ctx, from, to) {
				if err != nil {
					yield(nil, err)
					return
				}
				if part = append(part, p.Index); len(part) == listPart {
					break
				}
			}
			if len(part) == 0 || !yield(part, nil) || len(part) < listPart {
				return
			}
			from = part[len(part)-1] + 1
		}
	}
}

// buckets yields what is held under indices.
func (s *Snapshot) buckets(indices []dbadapter.Index) iter.Seq2[reconcile.Listed, error] {
	return func(yield func(reconcile.Listed, error) bool) {
		for _, i := range indices {
			records, err := s.store.Bucket(i)
			b := reconcile.Listed{Index: i}
			for n := range records {
				b.Sum = b.Sum.Add(dbadapter.Sum{Records: 1, Digest: records[n].Digest})
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Repair implements reconcile.Replica.
func (s *Snapshot) Repair(r dbadapter.Range, sum dbadapter.Sum) {
	wrong := s.ranges.Of(r, r+1)
	s.ranges.Set(r, sum)
	s.live.repair(r, sum.Sub(wrong), s.repairs)
}

// repair adds to the sum of a range what a snapshot found to be missing in it. What was
// written since the snapshot is in the sum and stays. Of several snapshots that find
// the same fault, the first one repairs it. Snapshots opened before that are not heard
// about this range any more.
func (l *Live) repair(r dbadapter.Range, missing dbadapter.Sum, asOf uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if max(l.audited, l.repaired[r]) > asOf {
		return
	}
	if l.repaired == nil {
		l.repaired = map[dbadapter.Range]uint64{}
	}
	l.repairs++
	l.repaired[r] = l.repairs
	l.ranges.Set(r, l.ranges.Of(r, r+1).Add(missing))
}

// List implements reconcile.Replica: where all ranges are synced, it reads all records
// with the prefix.
func (p *Prefix) List(ranges []dbadapter.Range) iter.Seq2[reconcile.Listed, error] {
	return func(yield func(reconcile.Listed, error) bool) {
		asked := map[dbadapter.Range]bool{}
		for _, r := range ranges {
			asked[r] = true
		}
		all := p.All()
		if p.held != nil {
			in := slices.DeleteFunc(slices.Clone(p.held), func(i dbadapter.Index) bool { return !asked[dbadapter.RangeOf(i)] })
			all = under(p.ctx, p.tick, in, p.Buckets)
		}
		sums := map[dbadapter.Index]dbadapter.Sum{}
		for r, err := range all {
			if err != nil {
				yield(reconcile.Listed{}, err)
				return
			}
			if !asked[dbadapter.RangeOf(r.Index)] {
				continue
			}
			if len(sums)%reserveEvery == 0 {
				if err := p.reserve(reserveEvery * listedBytes); err != nil {
					yield(reconcile.Listed{}, err)
					return
				}
			}
			sums[r.Index] = sums[r.Index].Add(dbadapter.Sum{Records: 1, Digest: r.Digest})
		}
		for _, i := range slices.Sorted(maps.Keys(sums)) {
			if !yield(reconcile.Listed{Index: i, Sum: sums[i]}, p.ctx.Err()) {
				return
			}
		}
	}
}

// Repair implements reconcile.Replica. The sums were made for this replica alone.
func (p *Prefix) Repair(r dbadapter.Range, sum dbadapter.Sum) { p.ranges.Set(r, sum) }
