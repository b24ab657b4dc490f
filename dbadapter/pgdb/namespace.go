package pgdb

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

type namespace struct {
	store   *Store
	id      dbadapter.NamespaceID
	number  uint32
	hasher  dbadapter.Hasher
	observe func([]dbadapter.Change)

	meta meta // used by the queue's goroutine only

	// Guarded by the store's lock.
	shown meta // as of the last commit that snapshots see

	// mu guards what follows. No other lock is taken under it: a caller may
	// close a snapshot while it holds a lock that observe waits for.
	mu        sync.Mutex
	closed    bool
	snapshots map[*snapshot]struct{}
	calls     sync.WaitGroup // running calls; added to under mu, while not closed
}

func (n *namespace) errClosed(what string) error {
	return fmt.Errorf("%s: namespace %x is %w", what, n.id, dbadapter.ErrClosed)
}

// enter begins a call, which Close waits for; calls.Done ends it.
func (n *namespace) enter(what string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return n.errClosed(what)
	}
	n.calls.Add(1)
	return nil
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
	n.number, n.meta = w.head.next, meta{Meta: layout.Meta{First: 1}}
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
	if err := n.enter("apply"); err != nil {
		return nil, err
	}
	defer n.calls.Done()
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
	if err := n.enter(what); err != nil {
		return err
	}
	defer n.calls.Done()
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
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.mu.Unlock()
	n.calls.Wait()
	n.mu.Lock()
	snapshots := n.snapshots
	n.snapshots = nil
	n.mu.Unlock()
	for s := range snapshots {
		s.end()
	}
	n.store.release(n.id)
	return nil
}
