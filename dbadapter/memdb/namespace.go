package memdb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/RaduBerinde/btreemap"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
	"github.com/syncd-io/syncd/dbadapter/internal/seq"
)

// data is what stays of a namespace while it is closed. It is guarded by the
// lock of the namespace that has it open.
type data struct {
	records *btreemap.BTreeMap[string, *commit.Held]
	buckets *buckets
	meta    layout.Meta
	log     []dbadapter.Change // the last ones, up to meta.Seq
	summary *summary           // nil: none is kept
	// kept is the kept log. Its slices are only ever appended to or replaced, so that a
	// reader may keep them.
	kept map[dbadapter.Why][]dbadapter.Kept
}

// buckets are the records under each index, by key.
type buckets = btreemap.BTreeMap[dbadapter.Index, []commit.Held]

// summary is what SaveSummary was given last. It is never changed.
type summary struct {
	seq   uint64
	bytes []byte
}

type namespace struct {
	grouped.Namespace[*namespace]
	store *Store

	mu   sync.Mutex // the commit lock; guards what follows, and the head
	data *data
}

// degree of the trees: the first write behind a snapshot copies a node of at most 2·degree − 1
// entries at each level.
const degree = 8

// load takes up the namespace's data, or makes them.
func (n *namespace) load() error {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.data = s.namespaces[n.ID]; n.data == nil {
		n.data = &data{
			records: btreemap.New[string, *commit.Held](degree, cmp.Compare),
			buckets: btreemap.New[dbadapter.Index, []commit.Held](degree, cmp.Compare),
			meta:    layout.Meta{Log: dbadapter.NewLogID()},
			kept:    make(map[dbadapter.Why][]dbadapter.Kept),
		}
		s.namespaces[n.ID] = n.data
	}
	return n.Put(n.data.meta)
}

// Put makes a head the namespace's. The commit lock is held.
func (n *namespace) Put(m layout.Meta) error {
	n.Meta, n.Shown, n.data.meta = m, m, m
	return nil
}

// Release lets the namespace be opened again.
func (n *namespace) Release() { n.store.life.Release(n.ID) }

// locked runs a function between two commits.
func (n *namespace) locked(_ context.Context, run func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return run()
}

// Encode gives each item memory of its own, which is what is stored.
func (n *namespace) Encode(items []commit.Item) int {
	for i := range items {
		items[i].Record = items[i].Record.Clone()
	}
	return 0
}

type batch = grouped.Batch[*namespace]

// commit decides and commits a batch.
func (n *namespace) commit(_ context.Context, r *queue.Request[*batch]) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	parts := grouped.Decide([]*queue.Request[*batch]{r}, func(*namespace) *commit.Group {
		return commit.NewGroup(n.Hasher, func(indices []dbadapter.Index) []commit.Loaded { return held(n.data.buckets, indices) })
	})
	for _, p := range parts {
		n.land(p)
	}
	return r.Err
}

// held is what is under each of the indices.
func held(b *buckets, indices []dbadapter.Index) []commit.Loaded {
	loaded := make([]commit.Loaded, len(indices))
	for i, index := range indices {
		_, loaded[i].Held, _ = b.Get(index)
	}
	return loaded
}

// land makes a part what is held, and lets the observer see it.
func (n *namespace) land(p *grouped.Part[*namespace]) {
	d := n.data
	p.Count(n.Meta)
	for _, b := range p.Group.Touched() {
		held := slices.Clone(b.Held) // which lies among those of the whole group
		for i := range held {
			if h := &held[i]; h.Item != nil {
				h.Item = nil
				d.records.ReplaceOrInsert(string(h.Record.Key), h)
			}
		}
		for _, h := range b.Removed() {
			d.records.Delete(string(h.Record.Key))
		}
		if len(held) > 0 {
			d.buckets.ReplaceOrInsert(b.Index, held)
		} else {
			d.buckets.Delete(b.Index)
		}
	}
	d.keep(&p.Meta.Kept, p.Group.Leavers(), n.store.options.Now())
	_ = n.Put(p.Meta) // never fails
	d.log = append(d.log, p.Changes...)
	d.trim(n.store.options.LogLimit)
	if n.Observe != nil {
		n.Observe(p.Changes)
	}
}

// trim drops what need not be in the log, when it is the greater half of it, so
// that a change is moved about once.
func (d *data) trim(limit int) {
	need := limit
	if s := d.summary; s != nil {
		need = int(min(uint64(limit)*dbadapter.LogReach, max(uint64(limit), d.meta.Seq-s.seq)))
	}
	if len(d.log) > 2*need {
		d.log = slices.Clone(d.log[len(d.log)-need:])
	}
}

func (n *namespace) Snapshot() (dbadapter.Snapshot, error) {
	if err := n.Life.Enter("open a snapshot", n.ID); err != nil {
		return nil, err
	}
	defer n.Life.Leave()
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &snapshot{namespace: n, records: n.data.records.Clone(), buckets: n.data.buckets.Clone(), seq: n.Meta.Seq}
	n.Life.Opened(s)
	return s, nil
}

func (n *namespace) Changes(ctx context.Context, after uint64) iter.Seq2[dbadapter.Change, error] {
	return seq.Of(func(yield func(dbadapter.Change) bool) error {
		var log []dbadapter.Change
		var last uint64
		err := n.Between(ctx, "read the change log", func() error {
			log, last = n.data.log, n.Meta.Seq
			return nil
		})
		if err != nil || after >= last {
			return err
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

func (n *namespace) SaveSummary(ctx context.Context, seq uint64, b []byte) error {
	if err := dbadapter.CheckSummary(b); err != nil {
		return err
	}
	s := &summary{seq, bytes.Clone(b)}
	return n.Between(ctx, "save a summary", func() error {
		if seq > n.Meta.Seq {
			return fmt.Errorf("it is as of change %d, and the last change is %d", seq, n.Meta.Seq)
		}
		n.data.summary = s
		n.data.trim(n.store.options.LogLimit)
		return nil
	})
}

func (n *namespace) Summary(ctx context.Context) (seq uint64, b []byte, err error) {
	err = n.Between(ctx, "read the summary", func() error {
		s := n.data.summary
		if s == nil {
			return dbadapter.ErrNotFound
		}
		seq, b = s.seq, bytes.Clone(s.bytes)
		return nil
	})
	return seq, b, err
}
