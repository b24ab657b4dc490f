package pgdb

import (
	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// The own number of a namespace's head (layout.Meta.Own) is 0 if no summary is kept, else
// its sequence number and 1.
type namespace struct {
	grouped.Namespace[*namespace]
	store *Store
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
		return rows.Scan(&n.Number, &encoded)
	}, `SELECT number, head FROM namespaces WHERE id = $1`, n.ID[:])
	switch {
	case err != nil:
		return err
	case found:
		if err := n.Meta.Decode(encoded, n.Number); err != nil {
			return err
		}
		n.store.mu.Lock()
		defer n.store.mu.Unlock()
		n.show(n.Meta)
		return nil
	}
	n.Number, n.Meta = w.head.next, layout.Meta{First: 1, Log: dbadapter.NewLogID()}
	return w.transact(func(b *pgx.Batch, h *head) {
		h.next++
		b.Queue(`INSERT INTO namespaces (number, id, head) VALUES ($1, $2, $3)`, n.Number, n.ID[:], n.Meta.Encode(n.Number))
	}, func() { n.show(n.Meta) })
}

// show makes a head the one that the writer goes on from and that callers see. The
// store's lock is held.
func (n *namespace) show(m layout.Meta) { n.Meta, n.Shown = m, m }

// Put commits another head of the namespace.
func (n *namespace) Put(m layout.Meta) error { return n.change(m, func(*pgx.Batch) {}) }

// change commits another head of the namespace, with what stage queues.
// It runs on the queue's goroutine.
func (n *namespace) change(m layout.Meta, stage func(*pgx.Batch)) error {
	return n.store.writer.transact(func(b *pgx.Batch, _ *head) {
		stage(b)
		b.Queue(putMeta, n.Number, m.Encode(n.Number))
	}, func() { n.show(m) })
}

// Release lets the namespace be opened again.
func (n *namespace) Release() { n.store.life.Release(n.ID) }
