package pgdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/syncd-io/syncd/dbadapter"
)

// Bounds of what the network may take. A query that reads a page of records or commits
// a batch takes milliseconds. A server that has not answered after so long is not going
// to.
const (
	connectWait = 10 * time.Second
	queryWait   = time.Minute
	hangUpWait  = time.Second
)

// settings are made in each session, where the server knows them. A commit is durable
// when it is acknowledged, whatever the role's defaults say; no view ends because it is
// idle. All queries go by an index. Plans are made when the tables are small; a scan of
// the whole would be chosen then, and stay. The session of a machine that is gone ends,
// and its lock with it, within a minute.
const settings = `
SELECT set_config(s.name, v.setting, false)
FROM (VALUES
	('search_path', $1::text),
	('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),
	('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),
	('default_transaction_read_only', 'off'),
	('plan_cache_mode', 'force_generic_plan'), ('jit', 'off'),
	('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'),
	('tcp_keepalives_idle', '20'), ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '4')
) v (name, setting) JOIN pg_settings s ON s.name = v.name`

// connect opens a session.
func (s *Store) connect(ctx context.Context) (_ *pgx.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.config.Copy())
	if err != nil {
		return nil, fmt.Errorf("%w: %w; is the server running, and may this user connect?", dbadapter.ErrAway, err)
	}
	defer func() {
		if err != nil {
			hangUp(conn)
		}
	}()
	if _, err := conn.Exec(ctx, settings, pgx.Identifier{s.options.Schema}.Sanitize()); err != nil {
		return nil, fmt.Errorf("set up the session: %w", err)
	}
	syncs, err := setting(ctx, conn, "synchronous_commit")
	if err == nil && syncs == "off" {
		_, err = conn.Exec(ctx, `SET synchronous_commit = on`)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the session: %w", err)
	}
	return conn, nil
}

// checkDurable refuses a server that acknowledges what it has not stored.
func checkDurable(ctx context.Context, conn *pgx.Conn) error {
	fsync, err := setting(ctx, conn, "fsync")
	if err == nil && fsync == "off" {
		err = errors.New("the server runs with fsync = off, so that a power cut would take acknowledged writes with it: set fsync = on in its configuration and reload it")
	}
	return err
}

// setting is a setting of the server; "" where the engine has none of that name, since it
// always waits for the disk.
func setting(ctx context.Context, conn *pgx.Conn, name string) (value string, err error) {
	err = conn.QueryRow(ctx, `SELECT setting FROM pg_settings WHERE name = $1`, name).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return value, err
}

// hangUp ends a session.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangUpWait)
	defer cancel()
	_ = conn.Close(ctx) // the session is of no use any more
}

// bounded is the time that one exchange with the server may take. The contexts of
// callers do not end one: pgx would close the connection, which others share.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), queryWait)
}

// isState reports whether the server has answered with one of these SQLSTATEs.
func isState(err error, states ...string) bool {
	var answered *pgconn.PgError
	return errors.As(err, &answered) && slices.Contains(states, answered.Code)
}

// refused reports whether the server itself has answered that it did not do what it
// was asked to, and goes on: then that is known.
func refused(err error) bool {
	var answered *pgconn.PgError
	if !errors.As(err, &answered) || answered.SeverityUnlocalized != "ERROR" && answered.Severity != "ERROR" {
		return false
	}
	// 40003: the engine itself does not know. 08, 57, 58: it is about to be gone.
	class := answered.Code[:min(2, len(answered.Code))]
	return answered.Code != "40003" && class != "08" && class != "57" && class != "58"
}
