package pgdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/grouped"
	"github.com/syncd-io/syncd/dbadapter/internal/lifecycle"
	"github.com/syncd-io/syncd/dbadapter/internal/queue"
)

// Options are the settings of a store. The zero value is good.
type Options struct {
	// Schema is the schema of the database that holds the store; "" means syncd.
	// Open makes it if it is absent.
	Schema string
	// Folder, if not "", is tied to the schema: Open makes it, notes there which schema
	// it is, and refuses another one from then on, or a schema that another folder is
	// tied to.
	Folder string
	// LogLimit is how many changes of a namespace are kept, at least; 0 means
	// 1<<16.
	LogLimit int
	// Snapshots is how many transactions may be open for snapshots, each on a
	// connection of its own; 0 means 32. Snapshots that are opened between two
	// commits share one. The server's max_connections must leave room for them.
	Snapshots int
	// Patience is how long a write waits for a server that is away; 0 means 30
	// seconds. Those after it fail at once, until the server is back.
	Patience time.Duration
	// Logger receives what happens in the background; nil discards it.
	Logger *slog.Logger
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
}

// Store is a schema of a database. Make it with Open.
type Store struct {
	options Options
	config  *pgx.ConnConfig
	name    string // of schema and database, for errors
	log     *slog.Logger
	life    lifecycle.Store[*namespace]
	ctx     context.Context // of work that Close ends
	cancel  context.CancelFunc

	queue  *queue.Queue[*batch]
	writer writer
	views  views
	eraser *lifecycle.Eraser

	compacting sync.Mutex // held while Compact runs

	// publishing is held from before a COMMIT until observers have been told of it, and
	// while a view is opened. So a view shows either all of that or nothing. It guards
	// writer.head and writer.owner, together with the writer's goroutine. It is taken
	// before mu.
	publishing sync.Mutex

	mu   sync.Mutex // guards view, and what namespaces show
	view *view      // as of the last commit; nil, or ended, before it is opened

	closeOnce func() error
}

var _ dbadapter.Able = (*Store)(nil)

// Open opens the store that a connection string names, in the forms that libpq takes (a
// URL, or "host=… user=…"). What it leaves out comes from the environment, as libpq
// reads it (PGHOST, PGUSER, PGPASSFILE …). The context bounds the opening.
//
// ErrLocked: another process, or this one, has it open. ErrFormat: it was written
// by a program of another format.
func Open(ctx context.Context, connection string, o Options) (_ *Store, err error) {
	if o.Schema == "" {
		o.Schema = "syncd"
	}
	if o.LogLimit <= 0 {
		o.LogLimit = 1 << 16
	}
	if o.Snapshots <= 0 {
		o.Snapshots = 32
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	config, err := pgx.ParseConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err) // which pgx shows without the password
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "syncd"
	}
	s := &Store{options: o, config: config, log: o.Logger}
	s.name = fmt.Sprintf("schema %s of database %s on %s", o.Schema, config.Database, config.Host)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.views.store, s.writer.store = s, s
	s.closeOnce = sync.OnceValue(s.close)
	if err := s.writer.open(ctx); err != nil {
		s.cancel()
		return nil, fmt.Errorf("open %s: %w", s.name, err)
	}
	s.queue = queue.Start(s.writer.commit)
	s.eraser = lifecycle.StartEraser(dropped{s}, s.log.With(slog.String("store", s.name)))
	return s, nil
}

// Namespace opens a namespace; see dbadapter.Store. It must not be open.
func (s *Store) Namespace(ctx context.Context, id dbadapter.NamespaceID, hasher dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	n := &namespace{store: s}
	n.Namespace = grouped.Namespace[*namespace]{
		Self: n, ID: id, Hasher: hasher, Observe: observe, Submit: s.queue.Submit, Do: s.queue.Do, Lock: &s.mu,
	}
	if err := s.life.Make(ctx, id, n, func() error { return s.queue.Do(ctx, n.load) }); err != nil {
		return nil, err
	}
	return n, nil
}

// Drop deletes a namespace, in one small transaction that takes its name away.
// The eraser removes its rows afterwards.
func (s *Store) Drop(ctx context.Context, id dbadapter.NamespaceID) error {
	err := s.life.Drop(ctx, id, func() error {
		return s.queue.Do(ctx, func() error {
			return s.writer.transact(func(b *pgx.Batch, _ *head) {
				b.Queue(`UPDATE namespaces SET id = NULL WHERE id = $1`, id[:])
			}, nil)
		})
	})
	if err == nil {
		s.eraser.Look()
	}
	return err
}

// Compact lets the server use the room of what was removed again (VACUUM). It does
// not give it back to the disk: that would keep commits waiting.
func (s *Store) Compact(ctx context.Context) error {
	if err := s.compact(ctx); err != nil {
		return fmt.Errorf("compact %s: %w", s.name, err)
	}
	return nil
}

func (s *Store) compact(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.compacting.Lock()
	defer s.compacting.Unlock()
	if s.ctx.Err() != nil {
		return fmt.Errorf("the store is %w", dbadapter.ErrClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	for _, table := range tables {
		_, err := conn.Exec(ctx, "VACUUM "+table)
		switch {
		case s.ctx.Err() != nil:
			return fmt.Errorf("the store has been %w", dbadapter.ErrClosed)
		case isState(err, "0A000", "42601"): // an engine that frees the room by itself
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// Able implements dbadapter.Able: it asks the server over a connection of the views.
func (s *Store) Able(ctx context.Context) error {
	if s.publishing.TryLock() { // else the writer is at work, and will tell
		failed := cmp.Or(s.writer.failed, s.writer.noRoom)
		s.publishing.Unlock()
		if failed != nil {
			return failed
		}
	}
	for {
		conn, fresh, err := s.views.take()
		if err == nil {
			err = conn.Ping(ctx)
			s.views.give(conn, err == nil)
		}
		switch {
		case err == nil || errors.Is(err, dbadapter.ErrLimit): // all connections read
			return nil
		case errors.Is(err, dbadapter.ErrAway):
			return err
		case fresh: // one that was idle may have been lost
			return fmt.Errorf("%w: %w", dbadapter.ErrAway, err)
		}
	}
}

// Close finishes the running commits, ends all snapshots and disconnects. Idempotent.
func (s *Store) Close() error { return s.closeOnce() }

func (s *Store) close() error {
	s.life.Close()
	s.cancel()
	s.eraser.Close()
	s.queue.Stop()
	s.compacting.Lock()
	defer s.compacting.Unlock()
	var failed error
	for _, n := range s.life.Open() {
		failed = errors.Join(failed, n.Close())
	}
	s.views.close()
	s.writer.close()
	return failed
}
