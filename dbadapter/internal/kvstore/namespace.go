package kvstore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/lifecycle"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

type namespace struct {
	store   *Store
	id      dbadapter.NamespaceID
	number  uint32
	hasher  dbadapter.Hasher
	observe func([]dbadapter.Change)
	life    lifecycle.Namespace

	meta    meta      // used by the committer only: as of the last transaction that is prepared
	trimmed uint64    // likewise: conflicts up to this number are out of the kept log
	cache   readCache // has a lock of its own
	written bloom     // likewise
	summary keeps     // likewise

	saving sync.Mutex // held while a summary is saved

	// Guarded by the store's lock.
	shown meta // as of the last commit that snapshots see
}

// load reads the namespace's number and head, or gives it a number. It runs on
// the committer's goroutine.
func (n *namespace) load() error {
	s, c := n.store, &n.store.committer
	txn := s.db.Begin()
	defer txn.Discard()
	name, err := kv.Get(txn, nameKey(n.id))
	if err != nil {
		return err
	}
	if name != nil {
		if n.number, err = decodeName(n.id, name); err != nil {
			return err
		}
		b, err := kv.Get(txn, metaKey(n.number))
		if err != nil {
			return err
		}
		if b == nil {
			return damage.Corrupt("the head of a namespace", "it is missing")
		}
		if err := n.meta.decode(b, n.number); err != nil {
			return err
		}
		if n.summary, err = readKeeps(txn, n.number); err != nil {
			n.summary = keeps{} // it is of no use; the caller of Summary learns why
		}
		if err := c.dropAhead(n); err != nil {
			return err
		}
	} else {
		if c.head.next > maxNumber {
			return fmt.Errorf("%w: %d namespaces have been made in this store; start a new one", dbadapter.ErrLimit, c.head.next-1)
		}
		if err := n.store.disk.write(); err != nil {
			return err
		}
		n.number, n.meta = c.head.next, meta{Meta: layout.Meta{First: 1, Log: dbadapter.NewLogID()}}
		if err := txn.Set(nameKey(n.id), encodeName(n.id, n.number)); err != nil {
			return err
		}
		if err := txn.Set(metaKey(n.number), n.meta.encode(n.number)); err != nil {
			return err
		}
		c.head.next++
		if err := c.finish(txn); err != nil {
			return err
		}
	}
	n.cache.restart(n.meta.Seq)
	c.publish(n.show)
	return n.written.begin(s.last.txn, &n.meta, n.number)
}

func (n *namespace) Apply(ctx context.Context, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := n.life.Enter("apply", n.id); err != nil {
		return nil, err
	}
	defer n.life.Leave()
	items, err := commit.Prepare(writes)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	b := &batch{namespace: n, items: items}
	size := n.encode(items)
	err = n.store.committer.queue.Submit(ctx, &queue.Request[*batch]{Batch: b, Writes: len(items), Size: size})
	return b.outcomes, err
}

// encode gives each item its stored form, all in one piece of memory, and
// points the item's record there: a change handed to an observer stays valid, and the
// next group may be decided against the record. It returns the weight of the records.
func (n *namespace) encode(items []commit.Item) int {
	size, stored := 0, 0
	for i := range items {
		r := &items[i].Record
		size += r.Weight()
		stored += prefixSize + len(r.Key) + layout.HeadSize(&r.Record) + len(r.Value)
	}
	b := make([]byte, 0, stored)
	for i := range items {
		it, start := &items[i], len(b)
		b = append(appendPrefix(b, n.number, kindRecord), it.Record.Key...)
		key := b[start+prefixSize : len(b) : len(b)]
		if it.Action.Removes() {
			it.Record.Key = key // only its digest counts beside it
			continue
		}
		b = appendEnvelope(b, &it.Record)
		it.Stored = b[start:len(b):len(b)]
		it.Record.Key = key
		it.Record.Value = it.Stored[len(it.Stored)-len(it.Record.Value):]
		if size := len(it.Record.Signature); size > 0 {
			end := len(it.Stored) - len(it.Record.Value) - it.Record.OptionalSize()
			it.Record.Signature = it.Stored[end-size : end : end]
		}
		it.Record.Replaces = slices.Clone(it.Record.Replaces)
	}
	return size
}

// newGroup decides against a view of the last commit, and against the transaction that
// lands on it, or nil where the committer writes none.
func (n *namespace) newGroup(view *readTxn, landing *prepared) *commit.Group {
	var before *commit.Group
	if landing != nil {
		for _, s := range landing.staged {
			if s.namespace == n {
				before = s.group
			}
		}
	}
	return commit.NewGroup(n.hasher, func(indices []dbadapter.Index) []commit.Loaded {
		loaded := make([]commit.Loaded, len(indices))
		rest := indices
		if before != nil {
			rest = make([]dbadapter.Index, 0, len(indices))
			for i, index := range indices {
				held, ok := before.Held(index)
				if loaded[i].Held = held; !ok {
					rest = append(rest, index)
				}
			}
		}
		n.loadAll(view, indices, loaded, rest)
		return loaded
	})
}

func (n *namespace) Latest() dbadapter.Timestamp {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return n.shown.Latest
}

func (n *namespace) Ceiling() dbadapter.Timestamp {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return n.shown.Ceiling()
}

func (n *namespace) Log() dbadapter.LogID {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return n.shown.Log
}

func (n *namespace) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	return n.setMeta(ctx, "raise the ceiling", func(m *meta) { m.Raise(to) })
}

func (n *namespace) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	return n.setMeta(ctx, "lower the ceiling", func(m *meta) { m.Lower(to) })
}

// setMeta changes the namespace's head between two commits.
func (n *namespace) setMeta(ctx context.Context, what string, set func(*meta)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.life.Enter(what, n.id); err != nil {
		return err
	}
	defer n.life.Leave()
	return n.store.committer.do(ctx, func() error {
		m := n.meta
		set(&m)
		if m == n.meta {
			return nil
		}
		txn := n.store.db.Begin()
		defer txn.Discard()
		return n.putMeta(txn, m)
	})
}

// putMeta adds the namespace's head to a transaction, commits it and shows it. It
// runs on the committer's goroutine.
func (n *namespace) putMeta(txn kv.Txn, m meta) error {
	c := &n.store.committer
	if err := txn.Set(metaKey(n.number), m.encode(n.number)); err != nil {
		return err
	}
	if err := c.finish(txn); err != nil {
		return err
	}
	n.meta = m
	c.publish(n.show)
	return nil
}

// show lets callers see the head as of the last commit. The store's lock is held.
func (n *namespace) show() { n.shown = n.meta }

func (n *namespace) Close() error {
	if n.life.Close() {
		n.store.life.Release(n.id)
	}
	return nil
}
