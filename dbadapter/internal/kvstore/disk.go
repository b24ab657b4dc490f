package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// diskGuard refuses writes before the disk is full. An engine may map its files into
// memory, and there a page that finds no room ends the process with SIGBUS; so room must
// be there before the engine is given anything. What must stay free is the reserve and
// what the engine needs to bring what it has taken into its tables, and to merge these.
type diskGuard struct {
	dir string
	min int64 // the reserve; less than 0: nothing is ever refused
	// need asks the engine; nil before there is one.
	need func() int64

	// closed: the database was opened for reading, and is to be opened again.
	closed atomic.Bool

	mu    sync.Mutex // guards what follows
	known int64      // what the engine has answered last
	asked time.Time  // when, and with how much room
	with  int64
}

// An answer of the engine serves for that long, and while the room changes by no more.
const (
	needAge  = 20 * time.Millisecond
	needRoom = 1 << 20
)

// removing is the part of the reserve that removals may not use, nor small notes: what is
// removed makes room, once the tables have been merged.
const removing = 2

// write asks for the room that a write needs, remove for that of a removal.
func (d *diskGuard) write() error  { return d.ask(d.min, d.needed) }
func (d *diskGuard) remove() error { return d.ask(d.min/removing, d.needed) }

// small asks for what a commit needs that is no write of records.
func (d *diskGuard) small() error {
	err := d.remove()
	if err == nil && d.closed.Load() {
		err = fmt.Errorf("%w: the store was opened for reading; the next write opens it anew", dbadapter.ErrNoRoom)
	}
	return err
}

// opening asks for the room that opening the files takes.
func (d *diskGuard) opening(e kv.Engine) error {
	return d.require(d.min/removing + e.NeedToOpen(d.dir))
}

// needed is what the engine needs, while that much is free.
func (d *diskGuard) needed(free int64) int64 {
	if d.need == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.asked) > needAge || max(free, d.with)-min(free, d.with) > needRoom {
		d.known, d.asked, d.with = d.need(), now, free
	}
	return d.known
}

// require asks for at least that many free bytes.
func (d *diskGuard) require(least int64) error {
	return d.ask(least, func(int64) int64 { return 0 })
}

// ask asks for that many free bytes and what is needed, and whether the system lets files be made.
func (d *diskGuard) ask(least int64, needed func(free int64) int64) error {
	switch err := durable.Writable(d.dir); {
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("write to %s: %w: %w", d.dir, dbadapter.ErrLimit, err)
	case err != nil:
		return fmt.Errorf("write to %s: %w: %w", d.dir, dbadapter.ErrAway, err)
	}
	if d.min < 0 {
		return nil
	}
	free, err := durable.Free(d.dir)
	if err != nil {
		return fmt.Errorf("ask how much room the disk has: %w", err)
	}
	if least += needed(free); free < least {
		return &dbadapter.NoRoom{Dir: d.dir, Free: free, Need: least}
	}
	return nil
}

// loader writes in bulk what need not be whole. It commits in pieces, and asks for room before
// each. What it has taken is on the disk once Flush returns.
type loader struct {
	db    kv.DB
	disk  *diskGuard
	txn   kv.Txn // nil: there is nothing to commit
	taken int    // by the transaction
}

const (
	loadPiece = kv.MaxTxn / 2
	// loadEntry is what an entry counts for beside its bytes: Badger bounds the entries of a
	// commit, too, to some 52,000.
	loadEntry = 64
)

func (d *diskGuard) load(db kv.DB) *loader {
	d.need = func() int64 { return db.Need(false) }
	return &loader{db: db, disk: d}
}

// Set and Delete: the slices stay as they are until Flush.
func (l *loader) Set(key, value []byte) error {
	if err := l.take(len(key) + len(value)); err != nil {
		return err
	}
	return l.txn.Set(key, value)
}

func (l *loader) Delete(key []byte) error {
	if err := l.take(len(key)); err != nil {
		return err
	}
	return l.txn.Delete(key)
}

// take makes sure that there is a transaction, and that it has room for an entry.
func (l *loader) take(bytes int) error {
	if l.taken >= loadPiece {
		if err := l.Flush(); err != nil {
			return err
		}
	}
	l.taken += bytes + loadEntry
	if l.txn != nil {
		return nil
	}
	l.txn = l.db.Begin()
	return l.disk.write()
}

func (l *loader) Flush() error {
	defer l.Cancel()
	if l.txn == nil {
		return nil
	}
	if err := l.txn.Commit(); err != nil {
		return fmt.Errorf("write to the database: %w", err)
	}
	return nil
}

// Cancel gives up what has not been committed. Idempotent.
func (l *loader) Cancel() {
	if l.txn != nil {
		l.txn.Discard()
	}
	l.txn, l.taken = nil, 0
}

// need asks the engine, while it is open.
func (s *Store) need() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return 0
	}
	if s.disk.closed.Load() {
		return s.engine.NeedToOpen(s.dir)
	}
	return s.db.Need(false)
}

// Able implements dbadapter.Able.
func (s *Store) Able(context.Context) error { return s.disk.write() }

var _ dbadapter.Able = (*Store)(nil)
