package pgdb

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"
)

// eraser removes the rows of dropped namespaces in the background, piece by piece.
// Its queue is the namespaces without an id: Close, or a crash, pauses it, and it
// goes on when the store is opened next.
type eraser struct {
	store *Store
	wake  chan struct{} // holds one call to look for what was dropped
	done  chan struct{} // closed when the goroutine has ended
}

// erasePiece is how many rows one transaction removes. A write that comes meanwhile
// waits for one of them.
const erasePiece = 1024

func (e *eraser) start(s *Store) {
	*e = eraser{store: s, wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.look()
	go e.loop(s.ctx)
}

// close waits until the goroutine has ended, once the store's context has.
func (e *eraser) close() { <-e.done }

// look makes the eraser look for what was dropped.
func (e *eraser) look() {
	select {
	case e.wake <- struct{}{}:
	default: // it is about to look
	}
}

func (e *eraser) loop(ctx context.Context) {
	defer close(e.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		if err := e.sweep(ctx); err != nil && ctx.Err() == nil {
			e.store.log.Error("a dropped namespace still takes up room: erasing it failed; the next drop, or opening the store again, tries it again",
				slog.String("store", e.store.name), slog.Any("err", err))
		}
	}
}

// sweep erases all that was dropped, one number after another.
func (e *eraser) sweep(ctx context.Context) error {
	var failed error
	for number := uint32(0); ctx.Err() == nil; {
		var next uint32
		err := e.store.queue.Do(ctx, func() error {
			return e.store.writer.query(func(rows pgx.Rows) error { return rows.Scan(&next) },
				`SELECT number FROM namespaces WHERE id IS NULL AND number > $1 ORDER BY number LIMIT 1`, number)
		})
		if err != nil || next == 0 {
			return errors.Join(failed, err)
		}
		number = next
		failed = errors.Join(failed, e.erase(ctx, number))
	}
	return failed
}

// erase removes all rows of a number, and then its name. Each piece of the records
// begins after the one before: the server steps over each row that was deleted, and
// from the first one on, the time would grow with the square of their number.
func (e *eraser) erase(ctx context.Context, number uint32) error {
	from, last := []byte{}, false
	for !last {
		to := []byte(nil)
		err := e.store.queue.Do(ctx, func() error {
			w := &e.store.writer
			err := w.query(func(rows pgx.Rows) error { return rows.Scan(&to) },
				`SELECT key FROM records WHERE namespace = $1 AND key >= $2 ORDER BY key OFFSET $3 LIMIT 1`, number, from, erasePiece)
			if err != nil {
				return err
			}
			last = to == nil
			return w.transact(func(b *pgx.Batch, _ *head) {
				if last {
					b.Queue(`DELETE FROM records WHERE namespace = $1 AND key >= $2`, number, from)
				} else {
					b.Queue(`DELETE FROM records WHERE namespace = $1 AND key >= $2 AND key < $3`, number, from, to)
				}
			}, nil)
		})
		if err != nil {
			return err
		}
		from = to
	}
	for _, rows := range [...]string{
		`DELETE FROM log WHERE namespace = $1`, `DELETE FROM kept WHERE namespace = $1`,
		`DELETE FROM summaries WHERE namespace = $1`, `DELETE FROM namespaces WHERE number = $1`,
	} {
		err := e.store.queue.Do(ctx, func() error {
			return e.store.writer.transact(func(b *pgx.Batch, _ *head) { b.Queue(rows, number) }, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
