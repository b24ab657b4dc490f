package memdb

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// keptLog is the kept log of a namespace. Its slices are only ever appended to or
// replaced, so that a reader may keep them.
type keptLog struct {
	seq     uint64 // of the last entry
	bytes   int    // keys and values of the conflicts
	entries map[dbadapter.Why][]dbadapter.Kept
}

func (k *keptLog) add(leavers []commit.Leaver, now time.Time) {
	for i := range leavers {
		l := &leavers[i]
		k.seq++
		if k.entries == nil {
			k.entries = make(map[dbadapter.Why][]dbadapter.Kept)
		}
		k.entries[l.Why] = append(k.entries[l.Why], dbadapter.Kept{
			Seq: k.seq, Why: l.Why, Record: l.Record.Record, By: l.By, At: now.Truncate(time.Millisecond).UTC(),
		})
		if l.Why == dbadapter.KeptConflict {
			k.bytes += l.Size()
		}
	}
	conflicts := k.entries[dbadapter.KeptConflict]
	for len(conflicts) > dbadapter.MaxConflicts || k.bytes > dbadapter.MaxConflictBytes {
		k.bytes -= sizeOf(&conflicts[0])
		conflicts = conflicts[1:]
	}
	if k.entries != nil {
		k.entries[dbadapter.KeptConflict] = conflicts
	}
}

func sizeOf(k *dbadapter.Kept) int { return len(k.Record.Key) + len(k.Record.Value) }

func (n *namespace) Kept(ctx context.Context) iter.Seq2[dbadapter.Kept, error] {
	return seq.Of(func(yield func(dbadapter.Kept) bool) error {
		n.mu.Lock()
		entries := n.data.kept.entries
		all := slices.Concat(entries[dbadapter.KeptConflict], entries[dbadapter.KeptSetAside])
		closed := n.closed.Load()
		n.mu.Unlock()
		if closed {
			return n.errClosed("read the kept log")
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

func (n *namespace) KeptCount(why dbadapter.Why) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.data.kept.entries[why])
}

func (n *namespace) Forget(ctx context.Context, seqs ...uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed.Load() {
		return n.errClosed("forget entries of the kept log")
	}
	gone := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		gone[seq] = true
	}
	log := &n.data.kept
	for why, entries := range log.entries {
		var left []dbadapter.Kept
		for _, k := range entries {
			switch {
			case !gone[k.Seq]:
				left = append(left, k)
			case why == dbadapter.KeptConflict:
				log.bytes -= sizeOf(&k)
			}
		}
		log.entries[why] = left
	}
	return nil
}
