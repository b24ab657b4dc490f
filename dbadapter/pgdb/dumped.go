package pgdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// A schema that was restored goes on from numbers of changes that were given before, so
// that its change logs need new ids (dbadapter.LogID). The server tells, since each
// opening writes a row that holds the number of its own transaction. PostgreSQL notes
// that number in the row itself, too (xmin, which vacuuming keeps). A dump, or another
// way to copy rows, writes the row in another transaction. The row also has the timeline
// of the server, of which a recovery to a point in time, or a standby that takes over,
// begins another.
//
// What it does not tell: files of the server that were copied back as they were. An
// engine that has no xmin tells nothing.

// renew gives the change logs new ids where the schema was restored since its last
// opening, and notes this opening. The lock is held.
func renew(ctx context.Context, conn *pgx.Conn) error {
	var at, written int64
	var timeline, was string
	err := conn.QueryRow(ctx, `SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM (SELECT pg_current_xact_id(), max(xmin::text::bigint) FROM opened) AS told`).Scan(&timeline)
	if isState(err, "42703", "42883", "42501", "0A000", "42846") { // an undefined column or function, a right, a feature, a cast
		return nil // this engine does not tell
	}
	if err != nil {
		return fmt.Errorf("ask for the server's timeline: %w", err)
	}
	err = conn.QueryRow(ctx, `SELECT xmin::text::bigint, written, timeline FROM opened`).Scan(&at, &written, &was)
	fresh := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !fresh {
		return fmt.Errorf("read when the store was opened: %w", err)
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if !fresh && (at != written || timeline != was) {
			if err := renewLogs(ctx, tx); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM opened`)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO opened (written, timeline) VALUES ((pg_current_xact_id()::text::numeric % 4294967296)::bigint, $1)`, timeline)
		}
		if err != nil {
			return fmt.Errorf("note that the store is opened: %w", err)
		}
		return nil
	})
}

// renewLogs gives each namespace's change log a new id. A head that is damaged stays as
// it is: the namespace cannot be opened.
func renewLogs(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT number, head FROM namespaces WHERE id IS NOT NULL`)
	if err != nil {
		return fmt.Errorf("read the namespaces: %w", err)
	}
	heads := map[uint32][]byte{}
	var number uint32
	var head []byte
	if _, err = pgx.ForEachRow(rows, []any{&number, &head}, func() error {
		var m layout.Meta
		if m.Decode(head, number) == nil {
			m.Log = dbadapter.NewLogID()
			heads[number] = m.Encode(number)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("read the namespaces: %w", err)
	}
	for number, head := range heads {
		if _, err := tx.Exec(ctx, `UPDATE namespaces SET head = $2 WHERE number = $1`, number, head); err != nil {
			return fmt.Errorf("give a change log a new id: %w", err)
		}
	}
	return nil
}
