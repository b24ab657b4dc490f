package pgdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/layout"
)

// view is a transaction that reads the store as of one commit, over a connection of
// its own. All snapshots that are opened before the next commit share it; it ends
// with the last of them.
type view struct {
	views *views
	refs  atomic.Int64 // 0: it has ended

	mu   sync.Mutex // held while a query runs; guards what follows
	conn *pgx.Conn
	err  error // why the transaction is of no use any more
}

// retain keeps the view open for one more snapshot, if it has not ended.
func (v *view) retain() bool {
	for {
		refs := v.refs.Load()
		if refs == 0 {
			return false
		}
		if v.refs.CompareAndSwap(refs, refs+1) {
			return true
		}
	}
}

func (v *view) release() {
	if v.refs.Add(-1) > 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), hangUpWait)
		defer cancel()
		_, v.err = v.conn.Exec(ctx, `ROLLBACK`)
	}
	v.views.give(v.conn, v.err == nil)
	v.conn = nil
}

// query reads rows in the transaction.
func (v *view) query(row func(pgx.Rows) error, sql string, arguments ...any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return v.err
	}
	var stopped error // by row itself: the transaction goes on
	err := readRows(v.conn, func(rows pgx.Rows) error {
		stopped = row(rows)
		return stopped
	}, sql, arguments...)
	if err != nil && stopped == nil {
		v.err = fmt.Errorf("the snapshot is lost: %w; open another one", err)
		if !refused(err) {
			v.err = fmt.Errorf("%w: %w", dbadapter.ErrAway, v.err)
		}
		return v.err
	}
	return err
}

func (v *view) isLost() bool {
	if !v.mu.TryLock() {
		return false // a query runs, and will tell
	}
	defer v.mu.Unlock()
	return v.err != nil
}

// views are the connections of views.
type views struct {
	store *Store

	mu     sync.Mutex // guards what follows
	idle   []*pgx.Conn
	inUse  int
	closed bool
}

// mostIdle is how many connections are kept for the views to come: a node that
// serves a few peers needs no more at a time.
const mostIdle = 4

// take returns an idle connection, or opens one.
func (p *views) take() (conn *pgx.Conn, fresh bool, err error) {
	p.mu.Lock()
	most := p.store.options.Snapshots
	if p.inUse >= most {
		p.mu.Unlock()
		return nil, true, fmt.Errorf("%w: snapshots of %d commits are open; close some, or let the store open more (Options.Snapshots)", dbadapter.ErrLimit, most)
	}
	p.inUse++
	if last := len(p.idle) - 1; last >= 0 {
		conn = p.idle[last]
		p.idle = p.idle[:last]
	}
	p.mu.Unlock()
	if conn != nil {
		return conn, false, nil
	}
	if conn, err = p.store.connect(p.store.ctx); err != nil {
		p.give(nil, false)
	}
	return conn, true, err
}

// give takes a connection back.
func (p *views) give(conn *pgx.Conn, sound bool) {
	p.mu.Lock()
	p.inUse--
	if sound && !p.closed && len(p.idle) < mostIdle {
		p.idle = append(p.idle, conn)
		conn = nil
	}
	p.mu.Unlock()
	hangUp(conn)
}

func (p *views) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, conn := range idle {
		hangUp(conn)
	}
}

// begin begins a view. The lock publishing is held.
func (p *views) begin() (*view, error) {
	for {
		conn, fresh, err := p.take()
		if err != nil {
			return nil, err
		}
		err = p.start(conn)
		if err == nil {
			v := &view{views: p, conn: conn}
			v.refs.Store(1)
			return v, nil
		}
		p.give(conn, false)
		if fresh || errors.Is(err, errTaken) { // one that was idle may have been lost
			return nil, err
		}
	}
}

// start begins the transaction, and checks that it shows the last commit.
func (p *views) start(conn *pgx.Conn) error {
	ctx, cancel := bounded()
	defer cancel()
	b := &pgx.Batch{}
	b.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	b.Queue(`SELECT commits, owner FROM store WHERE single`)
	results := conn.SendBatch(ctx, b)
	_, err := results.Exec()
	var commits int64
	var owner []byte
	if err == nil {
		err = results.QueryRow().Scan(&commits, &owner)
	}
	if err = errors.Join(err, results.Close()); err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	return p.store.writer.owns(commits, owner)
}

// acquire returns a view as of the last commit, and the head that the namespace has
// in it.
func (s *Store) acquire(n *namespace) (*view, layout.Meta, error) {
	if v, m := s.shared(n); v != nil {
		return v, m, nil
	}
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if v, m := s.shared(n); v != nil { // begun meanwhile
		return v, m, nil
	}
	v, err := s.views.begin()
	if err != nil {
		return nil, layout.Meta{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = v
	return v, n.Shown, nil
}

// shared is the view that others have open as of the last commit, if there is one.
func (s *Store) shared(n *namespace) (*view, layout.Meta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.view; v != nil && !v.isLost() && v.retain() {
		return v, n.Shown
	}
	return nil, layout.Meta{}
}
