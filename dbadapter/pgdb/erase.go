package pgdb

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// dropped are the namespaces without an id, as lifecycle.Dropped.
type dropped struct{ store *Store }

// erasePiece is how many rows one transaction removes. A write that comes meanwhile
// waits for one of them.
const erasePiece = 1024

// Next is the least number above another without an id, 0 if there is no such number.
func (d dropped) Next(ctx context.Context, above uint32) (next uint32, err error) {
	err = d.store.queue.Do(ctx, func() error {
		return d.store.writer.query(func(rows pgx.Rows) error { return rows.Scan(&next) },
			`SELECT number FROM namespaces WHERE id IS NULL AND number > $1 ORDER BY number LIMIT 1`, above)
	})
	return next, err
}

// Erase removes all rows of a number, and then its name. Each piece of the records
// begins after the one before. The server steps over each row that was deleted; from
// the first one on, the time would grow with the square of their number.
func (d dropped) Erase(ctx context.Context, number uint32) error {
	from, last := []byte{}, false
	for !last {
		to := []byte(nil)
		err := d.store.queue.Do(ctx, func() error {
			w := &d.store.writer
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
		err := d.store.queue.Do(ctx, func() error {
			return d.store.writer.transact(func(b *pgx.Batch, _ *head) { b.Queue(rows, number) }, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
