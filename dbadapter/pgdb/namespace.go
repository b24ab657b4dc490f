package pgdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
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

	meta meta // used by the queue's goroutine only

	// Guarded by the store's lock.
	shown meta // as of the last commit that snapshots see
}

// load reads the namespace's number and head, or gives it a number. It runs on
// the queue's goroutine.
func (n *namespace) load() error {
	w := &n.store.writer
	if err := w.ready(); err != nil {
		return err
	}
	found := false
	var encoded []byte
	err := w.query(func(rows pgx.Rows) error {
		found = true
		return rows.Scan(&n.number, &encoded)
	}, `SELECT number, head FROM namespaces WHERE id = $1`, n.id[:])
	switch {
	case err != nil:
		return err
	case found:
		if err := n.meta.decode(encoded, n.number); err != nil {
			return err
		}
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		n.show(n.meta)
		return nil
	}
	n.number, n.meta = w.head.next, meta{Meta: layout.Meta{First: 1, Log: dbadapter.NewLogID()}}
	return w.transact(func(b *pgx.Batch, h *head) {
		h.next++
		b.Queue(`INSERT INTO namespaces (number, id, head) VALUES ($1, $2, $3)`, n.number, n.id[:], n.meta.encode(n.number))
	}, func() { n.show(n.meta) })
}

// show makes a head the one that the writer goes on from and that callers see. The
// store's lock is held.
func (n *namespace) show(m meta) { n.meta, n.shown = m, m }

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
	size := prepare(items)
	err = n.store.queue.Submit(ctx, &queue.Request[*batch]{Batch: b, Writes: len(items), Size: size})
	return b.outcomes, err
}

func (n *namespace) Latest() dbadapter.Timestamp { return n.last().Latest }

func (n *namespace) Log() dbadapter.LogID { return n.last().Log }

func (n *namespace) Ceiling() dbadapter.Timestamp {
	m := n.last()
	return m.Ceiling()
}

// last is the head as of the last commit.
func (n *namespace) last() meta {
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	return n.shown
}

func (n *namespace) Raise(ctx context.Context, to dbadapter.Timestamp) error {
	return n.setMeta(ctx, "raise the ceiling", func(m *meta) { m.Raise(to) })
}

func (n *namespace) Lower(ctx context.Context, to dbadapter.Timestamp) error {
	return n.setMeta(ctx, "lower the ceiling", func(m *meta) { m.Lower(to) })
}

// setMeta changes the namespace's head between two commits.
func (n *namespace) setMeta(ctx context.Context, what string, set func(*meta)) error {
	return n.do(ctx, what, func() error {
		m := n.meta
		if set(&m); m == n.meta {
			return nil
		}
		return n.change(m, nil)
	})
}

// do runs a function on the queue's goroutine, between two commits.
func (n *namespace) do(ctx context.Context, what string, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := n.life.Enter(what, n.id); err != nil {
		return err
	}
	defer n.life.Leave()
	if err := n.store.queue.Do(ctx, run); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// change commits another head of the namespace, with what stage queues if it is not
// nil. It runs on the queue's goroutine.
func (n *namespace) change(m meta, stage func(*pgx.Batch)) error {
	return n.store.writer.transact(func(b *pgx.Batch, _ *head) {
		if stage != nil {
			stage(b)
		}
		b.Queue(putMeta, n.number, m.encode(n.number))
	}, func() { n.show(m) })
}

func (n *namespace) Close() error {
	if n.life.Close() {
		n.store.life.Release(n.id)
	}
	return nil
}
