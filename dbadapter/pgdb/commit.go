package pgdb

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/commit"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

type (
	batch = grouped.Batch[*namespace]
	part  = grouped.Part[*namespace]
)

// commit decides and commits a group, and sets what each caller is told.
func (w *writer) commit(group []*queue.Request[*batch], wait func()) (land func()) {
	wait()
	err := w.ready()
	var parts []*part
	if err == nil {
		parts = grouped.Decide(group, func(n *namespace) *commit.Group {
			return commit.NewGroup(n.Hasher, func(indices []dbadapter.Index) []commit.Loaded { return w.load(n, indices) })
		})
		err = w.write(parts)
	}
	if err != nil {
		grouped.Fail(group, err)
		return nil
	}
	for _, p := range parts {
		if err := errors.Join(w.trim(p.Namespace), w.trimKept(p.Namespace)); err != nil {
			w.store.log.Warn("trim the change log and the kept log", slog.String("namespace", fmt.Sprintf("%x", p.Namespace.ID)), slog.Any("err", err))
		}
	}
	return nil
}

// write commits the parts as one transaction, and lets observers and new
// snapshots see it in one step.
func (w *writer) write(parts []*part) error {
	if len(parts) == 0 {
		return nil
	}
	return w.transact(func(b *pgx.Batch, _ *head) {
		for _, p := range parts {
			stage(b, p)
		}
	}, func() {
		for _, p := range parts {
			p.Namespace.show(p.Meta)
			if p.Namespace.Observe != nil {
				p.Namespace.Observe(p.Changes)
			}
		}
	})
}

// transact commits what stage queues as one transaction, and then runs show, if it is
// not nil, under the lock that snapshots take. It runs on the queue's goroutine.
func (w *writer) transact(stage func(*pgx.Batch, *head), show func()) error {
	for attempt := 0; ; attempt++ {
		if err := w.ready(); err != nil {
			return err
		}
		after := w.head
		after.commits++
		b := &pgx.Batch{}
		b.Queue(`BEGIN`)
		stage(b, &after)
		b.Queue(`UPDATE store SET commits = $1, next = $2 WHERE single AND owner = $3 AND commits = $4`, after.commits, after.next, w.owner, w.head.commits)
		err := w.send(b)
		if err == nil {
			return w.finish(after, show)
		}
		w.rollBack()
		switch {
		case errors.Is(err, errTaken):
			w.store.publishing.Lock()
			w.failed = err
			w.store.publishing.Unlock()
			return err
		case attempt == 0 && !refused(err): // nothing was committed: once more, over a new session
			continue
		}
		err = notWritten(err)
		if errors.Is(err, dbadapter.ErrNoRoom) {
			w.store.publishing.Lock()
			w.noRoom = err
			w.store.publishing.Unlock()
		}
		return err
	}
}

// send sends a batch of statements, whose last one must change one row.
func (w *writer) send(b *pgx.Batch) (err error) {
	ctx, cancel := bounded()
	defer cancel()
	results := w.conn.SendBatch(ctx, b)
	var changed int64
	for range b.Len() {
		tag, err := results.Exec()
		if err != nil {
			return errors.Join(err, results.Close())
		}
		changed = tag.RowsAffected()
	}
	if err := results.Close(); err != nil {
		return err
	}
	if changed != 1 {
		return errTaken
	}
	return nil
}

// notWritten vouches that a transaction has left nothing behind.
func notWritten(err error) error {
	if isState(err, "53100", "25006") { // disk full; a server that only reads
		return fmt.Errorf("write to the database: %w: %w; nothing was written", dbadapter.ErrNoRoom, err)
	}
	if refused(err) { // it may well refuse it again
		return fmt.Errorf("write to the database: %w; nothing was written", err)
	}
	if errors.Is(err, dbadapter.ErrAway) || errors.Is(err, dbadapter.ErrClosed) {
		return fmt.Errorf("%w; nothing was written: try again", err)
	}
	return fmt.Errorf("%w: %w; nothing was written: try again", dbadapter.ErrAway, err)
}

// rollBack gives up the transaction that runs; where that fails, the session.
func (w *writer) rollBack() {
	ctx, cancel := bounded()
	defer cancel()
	if w.conn.IsClosed() {
		return
	}
	if _, err := w.conn.Exec(ctx, `ROLLBACK`); err != nil {
		hangUp(w.conn)
	}
}

// finish commits the transaction that runs. Snapshots and observers see it in one
// step.
func (w *writer) finish(after head, show func()) error {
	s := w.store
	s.publishing.Lock()
	defer s.publishing.Unlock()
	ctx, cancel := bounded()
	tag, err := w.conn.Exec(ctx, `COMMIT`)
	cancel()
	landed := true
	switch {
	case err == nil && tag.String() != "COMMIT": // the server had given the transaction up
		landed, err = false, errors.New("the database has rolled the transaction back")
	case err != nil && refused(err):
		landed = false
		w.rollBack()
	case err != nil:
		lost := err
		if landed, err = w.settle(after, lost); err == nil && !landed {
			err = lost
		}
	}
	if w.failed != nil {
		return w.failed
	}
	if !landed {
		return notWritten(err)
	}
	w.head, w.noRoom = after, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = nil // later snapshots begin a new one
	if show != nil {
		show()
	}
	return nil
}

// load reads the records under each of the indices. A session that turns out to be
// lost is replaced: nothing has been written.
func (w *writer) load(n *namespace, indices []dbadapter.Index) []commit.Loaded {
	loaded, err := n.held(w.query, indices)
	if err != nil && !refused(err) && !errors.Is(err, dbadapter.ErrCorrupt) {
		if err = w.ready(); err == nil {
			if loaded, err = n.held(w.query, indices); err != nil {
				err = notWritten(err)
			}
		}
	}
	if err != nil {
		loaded = make([]commit.Loaded, len(indices))
		for i := range loaded {
			loaded[i].Err = err
		}
	}
	return loaded
}

// query reads rows outside of a transaction: this session alone writes.
func (w *writer) query(row func(pgx.Rows) error, sql string, arguments ...any) error {
	if w.conn == nil || w.conn.IsClosed() {
		return errors.New("the connection to the database is lost")
	}
	return readRows(w.conn, row, sql, arguments...)
}

// query is how rows are read: from the last commit, or from a view.
type query func(row func(pgx.Rows) error, sql string, arguments ...any) error

// readRows hands over each row that a query returns.
func readRows(conn *pgx.Conn, row func(pgx.Rows) error, sql string, arguments ...any) error {
	ctx, cancel := bounded()
	defer cancel()
	rows, err := conn.Query(ctx, sql, arguments...)
	if err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	return nil
}
