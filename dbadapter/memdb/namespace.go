package memdb

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// data is what stays of a namespace while it is closed. It is guarded by the
// lock of the namespace that has it open, and open by the store's.
type data struct {
	records tree[string, *commit.Held]
	buckets tree[dbadapter.Index, []commit.Held] // by key within a bucket
	seq     uint64
	logID   dbadapter.LogID
	log     []dbadapter.Change // the last ones, up to seq
	summary *summary           // nil: none is kept
	latest  dbadapter.Timestamp
	raised  dbadapter.Timestamp // the greatest clock given to Raise
	kept    keptLog
	open    *namespace
}

type namespace struct {
	store   *Store
	id      dbadapter.NamespaceID
	hasher  dbadapter.Hasher
	observe func([]dbadapter.Change)

	mu     sync.Mutex // the commit lock; guards what follows
	data   *data
	closed atomic.Bool // set under mu; read without it by running scans
}

func (n *namespace) errClosed(what string) error {
	return fmt.Errorf("%s: namespace %x is %w", what, n.id, dbadapter.ErrClosed)
}

func (n *namespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	items, err := commit.Prepare(writes)
	if err != nil {
		return nil, err
	}
	for i := range items {
		items[i].Record, items[i].If = items[i].Record.Clone(), nil
		if writes[i].If != nil {
			version := *writes[i].If
			items[i].If = &version
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed.Load() {
		return nil, n.errClosed("apply")
	}
	d := n.data
	group := commit.NewGroup(n.hasher, func(indices []dbadapter.Index) []commit.Loaded {
		loaded := make([]commit.Loaded, len(indices))
		for i, index := range indices {
			loaded[i].Held, _ = d.buckets.get(index)
		}
		return loaded
	})
	outcomes, err := group.Batch(items)
	if err != nil || len(group.Touched()) == 0 {
		return outcomes, err
	}
	for _, b := range group.Touched() {
		held := slices.Clone(b.Held) // which lies among those of the whole group
		for i := range held {
			if h := &held[i]; h.Item != nil {
				h.Item = nil
				d.records = d.records.put(string(h.Record.Key), h)
			}
		}
		for _, h := range b.Removed() {
			d.records = d.records.remove(string(h.Record.Key))
		}
		if len(held) > 0 {
			d.buckets = d.buckets.put(b.Index, held)
		} else {
			d.buckets = d.buckets.remove(b.Index)
		}
	}
	d.kept.add(group.Leavers(), n.store.options.Now())
	changes := group.Changes(d.seq)
	d.seq += uint64(len(changes))
	d.latest = max(d.latest, group.Latest())
	d.log = append(d.log, changes...)
	d.trim(n.store.options.LogLimit)
	if n.observe != nil {
		n.observe(changes)
	}
	return outcomes, nil
}

// trim drops what need not be in the log, when it is the greater half of it, so
// that a change is moved about once.
func (d *data) trim(limit int) {
	need := limit
	if s := d.summary; s != nil {
		need = int(min(uint64(limit)*dbadapter.LogReach, max(uint64(limit), d.seq-s.seq)))
	}
	if len(d.log) > 2*need {
		d.log = slices.Clone(d.log[len(d.log)-need:])
	}
}

func (n *namespace) Snapshot() (dbadapter.Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed.Load() {
		return nil, n.errClosed("open a snapshot")
	}
	return &snapshot{namespace: n, records: n.data.records, buckets: n.data.buckets, seq: n.data.seq}, nil
}

func (n *namespace) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return seq.Of(func(yield func(dbadapter.Change) bool) error {
		n.mu.Lock()
		log, last, closed := n.data.log, n.data.seq, n.closed.Load()
		n.mu.Unlock()
		if closed {
			return n.errClosed("read the change log")
		}
		if after >= last {
			return nil
		}
		first := last - uint64(len(log)) + 1
		if after+1 < first {
			return fmt.Errorf("read the change log after %d: %w: it begins with %d; scan the records instead", after, dbadapter.ErrTrimmed, first)
		}
		for _, c := range log[after+1-first:] {
			if err := ctx.Err(); err != nil || !yield(c) {
				return err
			}
		}
		return nil
	})
}

func (n *namespace) Log() dbadapter.LogID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data.logID
}

func (n *namespace) Latest() dbadapter.Timestamp {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.data.latest
}

func (n *namespace) Ceiling() dbadapter.Timestamp {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(n.data.latest, n.data.raised)
}

func (n *namespace) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	return n.setClocks(ctx, "raise the ceiling", func(d *data) { d.raised = max(d.raised, to) })
}

func (n *namespace) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	return n.setClocks(ctx, "lower the ceiling", func(d *data) { d.latest, d.raised = min(d.latest, to), min(d.raised, to) })
}

func (n *namespace) setClocks(ctx context.Context, what string, set func(*data)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed.Load() {
		return n.errClosed(what)
	}
	set(n.data)
	return nil
}

func (n *namespace) Close() error {
	n.mu.Lock()
	closed := n.closed.Swap(true)
	n.mu.Unlock()
	if closed {
		return nil
	}
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	n.data.open = nil
	return nil
}
