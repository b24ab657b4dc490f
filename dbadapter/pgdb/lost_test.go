package pgdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/internal/pgserver"
)

// link stands between a store and its server, and can be cut where a COMMIT passes.
type link struct {
	t        *testing.T
	listener net.Listener
	server   *pgserver.Server
	all      sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns map[net.Conn]bool
	cut   cut
	down  bool // connections are closed at once
}

// cut says what happens when the next COMMIT passes.
type cut struct {
	armed   bool
	forward bool // the server gets it, and its answer is lost
	stay    bool // the link stays down
}

func newLink(t *testing.T, server *pgserver.Server) (l *link, url string) {
	dir, err := os.MkdirTemp("", "pgl") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l = &link{t: t, server: server, conns: make(map[net.Conn]bool)}
	if l.listener, err = net.Listen("unix", filepath.Join(dir, pgserver.SocketName)); err != nil {
		t.Fatal(err)
	}
	l.all.Go(l.accept)
	t.Cleanup(func() {
		l.listener.Close()
		l.set(cut{}, true)
		l.all.Wait()
	})
	return l, pgserver.URL(dir)
}

// set arms the link, and closes all connections if it is down.
func (l *link) set(c cut, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.down = c, down
	if down {
		for conn := range l.conns {
			conn.Close()
		}
	}
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", l.server.Socket())
		l.mu.Lock()
		if err != nil || l.down {
			client.Close()
			if err == nil {
				server.Close()
			}
			l.mu.Unlock()
			continue
		}
		l.conns[client], l.conns[server] = true, true
		l.mu.Unlock()
		dropping := make(chan struct{})
		l.all.Go(func() { l.toServer(client, server, dropping) })
		l.all.Go(func() { l.toClient(client, server, dropping) })
	}
}

// toServer copies what the client says, up to a COMMIT that is cut.
func (l *link) toServer(client, server net.Conn, dropping chan struct{}) {
	defer server.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if bytes.Contains(b[:n], []byte("COMMIT\x00")) {
			l.mu.Lock()
			c := l.cut
			l.cut = cut{}
			l.down = l.down || c.armed && c.stay
			l.mu.Unlock()
			switch {
			case c.armed && c.forward:
				close(dropping) // toClient closes once the answer is there
			case c.armed:
				client.Close()
				return
			}
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

// toClient copies what the server says, up to an answer that is thrown away.
func (l *link) toClient(client, server net.Conn, dropping chan struct{}) {
	defer client.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		select {
		case <-dropping:
			return
		default:
		}
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}

// TestAnswerLost loses the answer to a COMMIT, before or after the server had it. If
// the server can be reached again, the truth is told; if not, the outcome is unknown,
// and no more is taken.
func TestAnswerLost(t *testing.T) {
	server := pgserver.Start(t)
	for name, c := range map[string]cut{
		"the server has it":           {armed: true, forward: true},
		"the server has it not":       {armed: true},
		"the server has it, and away": {armed: true, forward: true, stay: true},
		"has it not, and away":        {armed: true, stay: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, url := newLink(t, server)
			options := pgdb.Options{Schema: "lost " + name, Patience: 5 * time.Minute} // a busy machine takes long to connect anew
			if c.stay {
				options.Patience = 300 * time.Millisecond
			}
			store, err := pgdb.Open(t.Context(), url, options)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { store.Close() }()
			var seen []dbadapter.Change
			n, err := store.Namespace(t.Context(), id, hasher, func(changes []dbadapter.Change) { seen = append(seen, changes...) })
			if err != nil {
				t.Fatal(err)
			}
			apply := func(number int) error {
				_, err := n.Apply(context.Background(), batchOf(t, 0, number))
				return err
			}
			if err := apply(1); err != nil {
				t.Fatal(err)
			}
			l.set(c, false)
			err = apply(2)
			want, there := 1, 1
			if c.forward {
				there = 2
			}
			switch {
			case !c.stay && c.forward:
				want = 2
				if err != nil {
					t.Errorf("a commit that the server has: %v", err)
				}
			case !c.stay:
				if err == nil || !nothingWritten(err) {
					t.Errorf("a commit that the server has not: %v", err)
				}
			default:
				if err == nil || nothingWritten(err) || !strings.Contains(err.Error(), "unknown") {
					t.Errorf("a commit of which nothing can be known: %v", err)
				}
				l.set(cut{}, false)
				if err := apply(3); err == nil || !strings.Contains(err.Error(), "open the store again") {
					t.Errorf("the write after it: %v", err)
				}
				if _, err := n.Snapshot(); err == nil {
					t.Error("a snapshot is opened, of which the observer may not have been told")
				}
			}
			if len(seen) != want*keysOfWriter {
				t.Errorf("the observer was told of %d changes, want %d", len(seen), want*keysOfWriter)
			}
			if !c.stay {
				if err := apply(want + 1); err != nil {
					t.Errorf("the store does not go on: %v", err)
				}
				there = want + 1
			}
			store.Close()
			if store, err = pgdb.Open(t.Context(), url, options); err != nil {
				t.Fatal(err)
			}
			if got, err := foundIn(namespaceOf(t, store), 0); err != nil || got != there {
				t.Errorf("batch %d is there (%v), want %d", got, err, there)
			}
		})
	}
}

// onceBack does what a server that is back does, again where a busy machine takes longer than the store's patience.
func onceBack(do func() error) (err error) {
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); {
		if err = do(); !errors.Is(err, dbadapter.ErrAway) {
			return err
		}
	}
	return err
}

// TestIdleLinkLost cuts the link between two commits: the next write, and the next
// snapshot, go over new sessions.
func TestIdleLinkLost(t *testing.T) {
	l, url := newLink(t, pgserver.Start(t))
	store, err := pgdb.Open(t.Context(), url, pgdb.Options{Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := namespaceOf(t, store)
	for number := 1; number <= 3; number++ {
		if got, err := foundIn(n, 0); err != nil || got != number-1 {
			t.Fatalf("batch %d is there, %v", got, err)
		}
		old, err := n.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		l.set(cut{}, true)
		if err := store.Able(t.Context()); !errors.Is(err, dbadapter.ErrAway) {
			t.Errorf("a store whose server is away says %v", err)
		}
		if _, err := old.Get([]byte("k")); err == nil || errors.Is(err, dbadapter.ErrNotFound) {
			t.Errorf("a snapshot whose session is lost says %v", err)
		}
		if _, err := n.Apply(t.Context(), batchOf(t, 0, number)); err == nil || !nothingWritten(err) {
			t.Errorf("a write to a server that is away: %v", err)
		}
		l.set(cut{}, false)
		if err := onceBack(func() error { return store.Able(t.Context()) }); err != nil {
			t.Errorf("a store whose server is back says %v", err)
		}
		if err := onceBack(func() error { _, err := n.Apply(t.Context(), batchOf(t, 0, number)); return err }); err != nil {
			t.Errorf("a write to a server that is back: %v", err)
		}
		if err := old.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestTakenOver lets another process take the schema over, as one does on an engine
// whose advisory locks do nothing: the first one notices with its next commit, and
// hands out no snapshot of what its observer has not been told.
func TestTakenOver(t *testing.T) {
	server := pgserver.Start(t)
	store := open(t, server, pgdb.Options{Schema: "taken"})
	n := namespaceOf(t, store)
	if _, err := n.Apply(t.Context(), batchOf(t, 0, 1)); err != nil {
		t.Fatal(err)
	}
	sql(t, server, `UPDATE taken.store SET owner = 'another'`)
	if _, err := n.Snapshot(); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a snapshot: %v", err)
	}
	for range 2 {
		if _, err := n.Apply(t.Context(), batchOf(t, 0, 2)); err == nil || !strings.Contains(err.Error(), "another process") {
			t.Errorf("a write: %v", err)
		}
	}
	store.Close()
	again := namespaceOf(t, open(t, server, pgdb.Options{Schema: "taken"}))
	if got, err := foundIn(again, 0); err != nil || got != 1 {
		t.Errorf("batch %d is there, %v", got, err)
	}
}

// sql runs a statement over a session of its own.
func sql(t *testing.T, server *pgserver.Server, statement string, arguments ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tag, err := conn.Exec(t.Context(), statement, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	if tag.RowsAffected() == 0 {
		t.Fatalf("%s changes nothing", statement)
	}
}

// TestNoRoom: a server whose disk is full, or that only reads, refuses writes as one that has no
// room. The store says so until a write is taken again, and reads go on.
func TestNoRoom(t *testing.T) {
	url := pgserver.Start(t).URL()
	store, err := pgdb.Open(t.Context(), url, pgdb.Options{Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	n := namespaceOf(t, store)
	if _, err := n.Apply(t.Context(), batchOf(t, 0, 1)); err != nil {
		t.Fatal(err)
	}
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context())
	// A trigger refuses as a full disk does; it stands for a server that only reads, too.
	const function = `CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '%s'; END $$`
	var schema string
	if err := admin.QueryRow(t.Context(), `SELECT schemaname FROM pg_tables WHERE tablename = 'records' AND schemaname <> 'pg_catalog'`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	exec := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for number, state := range []string{"53100", "25006"} {
		exec(fmt.Sprintf(function, state))
		exec(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON ` + schema + `.records FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
		if _, err := n.Apply(t.Context(), batchOf(t, 0, number+2)); !errors.Is(err, dbadapter.ErrNoRoom) || !nothingWritten(err) {
			t.Errorf("%s: a write: %v", state, err)
		}
		if err := store.Able(t.Context()); !errors.Is(err, dbadapter.ErrNoRoom) {
			t.Errorf("%s: the store says %v", state, err)
		}
		if got, err := foundIn(n, 0); err != nil || got != number+1 {
			t.Errorf("%s: batch %d is there, %v", state, got, err)
		}
		exec(`DROP TRIGGER refuse ON ` + schema + `.records`)
		if _, err := n.Apply(t.Context(), batchOf(t, 0, number+2)); err != nil {
			t.Error(err)
		}
		if err := store.Able(t.Context()); err != nil {
			t.Errorf("%s is over, and the store says %v", state, err)
		}
	}
}
