package memdb

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// keep adds leavers to the kept log, which m counts, and drops the oldest conflicts.
func (d *data) keep(m *layout.Kept, leavers []commit.Leaver, now time.Time) {
	for i := range leavers {
		l := &leavers[i]
		m.Seq++
		m.Count(l.Why, l.Size(), 1)
		d.kept[l.Why] = append(d.kept[l.Why], dbadapter.Kept{
			Seq: m.Seq, Why: l.Why, Record: l.Record.Record, By: l.By, At: now.Truncate(time.Millisecond).UTC(),
		})
	}
	conflicts := d.kept[dbadapter.KeptConflict]
	for m.Full() {
		m.CountRecord(dbadapter.KeptConflict, &conflicts[0].Record, -1)
		conflicts = conflicts[1:]
	}
	d.kept[dbadapter.KeptConflict] = conflicts
}

func (n *namespace) Kept(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return seq.Of(func(yield func(dbadapter.Kept) bool) error {
		var all []dbadapter.Kept
		err := n.Between(ctx, "read the kept log", func() error {
			all = slices.Concat(n.data.kept[dbadapter.KeptConflict], n.data.kept[dbadapter.KeptSetAside])
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range all {
			k.Record = k.Record.Clone()
			if err := ctx.Err(); err != nil || !yield(k) {
				return err
			}
		}
		return nil
	})
}

func (n *namespace) Forget(ctx context.Context, seqs ...uint64) error {
	sorted := slices.Sorted(slices.Values(seqs))
	return n.Set(ctx, "forget entries of the kept log", func(m *layout.Meta) {
		for why, entries := range n.data.kept {
			n.data.kept[why] = slices.DeleteFunc(slices.Clone(entries), func(k dbadapter.Kept) bool {
				_, gone := slices.BinarySearch(sorted, k.Seq)
				if gone {
					m.Kept.CountRecord(why, &k.Record, -1)
				}
				return gone
			})
		}
	})
}
