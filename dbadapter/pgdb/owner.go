package pgdb

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
)

// A schema belongs to one process at a time, since a node keeps sums of all records in
// memory, and since it alone numbers the changes. The writer's session holds an
// advisory lock, which the server releases when the session ends. A token of the owner
// and the number of commits stand in the table of the store, too. Each commit counts on
// from both, and takes effect only if they are as this process left them. That also
// holds on engines whose advisory locks do nothing, and where a pool has changed the
// session under us.
//
// The same numbers tell the outcome of a COMMIT whose answer was lost. Once the server
// is back, the token is replaced, so that whatever is left of the old session can no
// longer commit. Then the number of commits says whether it had.

// head is what the store knows of itself.
type head struct {
	commits int64
	next    uint32 // the number that the next new namespace gets
}

// lockWait is how long an opening waits for the lock: the server notices within it
// that a process which was killed is gone.
const lockWait = 2 * time.Second

// pause is how long to wait before trying again what depends on the server.
const pause = 100 * time.Millisecond

// sleep waits, or until a context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lock takes the advisory lock of the schema.
func (s *Store) lock(ctx context.Context, conn *pgx.Conn) error {
	key := int64(xxh3.HashString("syncd store\x00" + s.options.Schema))
	for until := time.Now().Add(lockWait); ; {
		var got bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, key).Scan(&got); err != nil {
			return fmt.Errorf("lock the schema: %w", err)
		}
		if got {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: another process has it open%s; stop that one, or use another schema: each node has its own",
				dbadapter.ErrLocked, holder(ctx, conn, key))
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// holder says which session has the lock, as far as the server tells.
func holder(ctx context.Context, conn *pgx.Conn, key int64) string {
	var pid int32
	var from string
	err := conn.QueryRow(ctx, `
		SELECT a.pid, coalesce(host(a.client_addr), 'the same machine')
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
		AND l.classid::bigint = ($1::bigint >> 32) & 4294967295 AND l.objid::bigint = $1::bigint & 4294967295 LIMIT 1`, key).Scan(&pid, &from)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (session %d of the server, from %s)", pid, from)
}

// writer is the session that writes. Its fields are used by the queue's goroutine
// only; head, owner, failed and noRoom are changed under the store's lock publishing.
type writer struct {
	store  *Store
	conn   *pgx.Conn // nil while no session is open
	head   head
	owner  []byte
	tokens [][]byte // that may stand in the table: owner, and those of attempts that were cut
	failed error    // set for good when it is unknown what the database holds
	noRoom error    // the server took the last write for none: its disk is full, or it only reads
	away   bool     // a write has waited for the server in vain
}

// open makes the store's first session, and the schema where it is absent.
func (w *writer) open(ctx context.Context) error {
	s := w.store
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err = s.lock(ctx, conn); err == nil {
		err = checkDurable(ctx, conn)
	}
	if err == nil {
		err = setUp(ctx, conn, s.options.Schema)
	}
	if err == nil {
		err = renew(ctx, conn)
	}
	if err == nil && s.options.Folder != "" {
		var id string
		var next uint32
		if err = conn.QueryRow(ctx, `SELECT id, next FROM store WHERE single`).Scan(&id, &next); err == nil {
			err = bind(s.options.Folder, id, next > 1)
		}
	}
	if err == nil {
		err = w.own(ctx, conn, `UPDATE store SET owner = $1 WHERE single RETURNING commits, next`)
	}
	if err != nil {
		hangUp(conn)
	}
	return err
}

// own puts a new token into the table, and makes the session the one that writes.
func (w *writer) own(ctx context.Context, conn *pgx.Conn, update string, more ...any) error {
	token := make([]byte, 16)
	rand.Read(token) // never fails (crypto/rand)
	w.tokens = append(w.tokens, token)
	var h head
	if err := conn.QueryRow(ctx, update, append([]any{token}, more...)...).Scan(&h.commits, &h.next); err != nil {
		return err
	}
	w.conn, w.head, w.owner, w.tokens = conn, h, token, [][]byte{token}
	return nil
}

// reconnect makes a new session in place of one that is lost, and returns the head
// that the database has.
func (w *writer) reconnect(ctx context.Context) error {
	s := w.store
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if err = s.lock(ctx, conn); err == nil {
		err = w.own(ctx, conn, `UPDATE store SET owner = $1 WHERE single AND owner = ANY($2) RETURNING commits, next`, w.tokens)
		if errors.Is(err, pgx.ErrNoRows) {
			err = errTaken
		}
	}
	if err != nil {
		hangUp(conn)
	}
	return err
}

// errTaken: the schema has changed hands.
var errTaken = errors.New("another process has taken the schema over, or it was restored; whether the last write was kept is unknown, and no more are taken: stop the other one and open the store again")

// wait makes a new session, and tries again for as long as the options say. The
// head of the store is then that of the database. The lock publishing is held.
func (w *writer) wait() error {
	s := w.store
	hangUp(w.conn)
	w.conn = nil
	ctx, cancel := context.WithTimeout(s.ctx, s.options.Patience)
	defer cancel()
	for {
		err := w.reconnect(ctx)
		if err == nil {
			w.away = false
			return nil
		}
		if errors.Is(err, errTaken) {
			return err
		}
		if w.away || sleep(ctx, pause) != nil {
			if s.ctx.Err() != nil {
				return fmt.Errorf("the store has been %w", dbadapter.ErrClosed)
			}
			w.away = true
			return err
		}
	}
}

// ready makes sure that there is a session, and that the database is as this process
// left it.
func (w *writer) ready() error {
	if w.failed != nil {
		return w.failed
	}
	if w.conn != nil && !w.conn.IsClosed() {
		return nil
	}
	w.store.publishing.Lock()
	defer w.store.publishing.Unlock()
	was := w.head
	switch err := w.wait(); {
	case errors.Is(err, errTaken):
		w.failed = err
		return err
	case err != nil:
		return notWritten(err)
	case w.head != was:
		w.failed = w.behind(was)
		return w.failed
	}
	return nil
}

func (w *writer) behind(was head) error {
	return fmt.Errorf("the database has %d commits, and %d were acknowledged; was it restored, or did a standby take over that lacked them? No more writes are taken: open the store again to go on with what is there", w.head.commits, was.commits)
}

// settle finds out what became of a COMMIT whose answer was lost. The lock publishing
// is held.
func (w *writer) settle(after head, lost error) (landed bool, err error) {
	was := w.head
	err = w.wait()
	switch {
	case err != nil: // its text alone: ErrAway would vouch that nothing was written
		w.failed = fmt.Errorf("commit: %w, and then: %v; whether the last write was kept is unknown, and no more are taken: see to the database and open the store again", lost, err)
	case w.head == after:
		return true, nil
	case w.head != was:
		w.failed = w.behind(was)
	}
	return false, w.failed
}

// close ends the session, and with it the lock: at once, so that the next opening
// need not wait until the server has noticed.
func (w *writer) close() {
	if w.conn == nil || w.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangUpWait)
	defer cancel()
	_, _ = w.conn.Exec(ctx, `SELECT pg_advisory_unlock_all()`) // the end of the session does the same
	hangUp(w.conn)
}

// owns reports whether the head and the token that a view has read are ours.
func (w *writer) owns(commits int64, owner []byte) error {
	if w.failed != nil {
		return w.failed
	}
	if commits != w.head.commits || !bytes.Equal(owner, w.owner) {
		return errTaken
	}
	return nil
}
