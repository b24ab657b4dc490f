package kvstore

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// quiet ends all snapshots, and lets no other be opened. It returns the open namespaces,
// and the last transaction, which nothing else holds.
func (s *Store) quiet() (open []*namespace, last *readTxn, err error) {
	for _, n := range s.life.Open() {
		if n.Number != 0 { // else it is being opened
			open = append(open, n)
		}
	}
	s.mu.Lock()
	last, s.last = s.last, nil
	s.mu.Unlock()
	// A call of Snapshot may be about to add one.
	for range 1000 {
		for _, n := range open {
			n.Life.EndSnapshots()
		}
		if last.refs.Load() == 1 {
			return open, last, nil
		}
		runtime.Gosched()
	}
	s.mu.Lock()
	s.last = last
	s.mu.Unlock()
	return nil, nil, fmt.Errorf("%w: a backup of it is being made; try again when that is done", dbadapter.ErrLocked)
}

// awake opens a store for writing that was opened for reading, once there is room. It ends
// all snapshots, and runs on the committer's goroutine. The work in the background begins
// then, unless the store is being closed.
func (s *Store) awake() error {
	if !s.disk.closed.Load() {
		return nil
	}
	if err := s.disk.opening(s.engine); err != nil {
		return err
	}
	for _, lock := range []*sync.Mutex{&s.waking, &s.compacting} {
		if !lock.TryLock() {
			return fmt.Errorf("%w: it is being closed or examined, and not yet opened for writing", dbadapter.ErrAway)
		}
		defer lock.Unlock()
	}
	open, last, err := s.quiet()
	if err != nil {
		return err
	}
	last.release()
	clean, err := readClean(s.dir)
	if err = errors.Join(err, s.db.Close(), clean.take(s.dir)); err == nil {
		err = s.reopen(open)
	}
	if err != nil {
		s.db = nil
		s.committer.failed = fmt.Errorf("open the database for writing: %w; no writes are taken: start the program again", err)
		return s.committer.failed
	}
	s.disk.closed.Store(false)
	s.startWork()
	s.log.Info("there is room on the disk: writes are taken", slog.String("dir", s.dir))
	return nil
}

// reopen opens the files as they are now, and takes up the namespaces' heads.
func (s *Store) reopen(open []*namespace) error {
	db, err := s.engine.Open(s.dir)
	if err != nil {
		return err
	}
	s.db = db
	view := s.db.View()
	for _, n := range open {
		b, err := kv.Get(view, metaKey(n.Number))
		if err == nil {
			err = n.Meta.Decode(b, n.Number)
		}
		if err != nil {
			view.Close()
			return errors.Join(err, s.db.Close())
		}
		n.summary, _ = readKeeps(view, n.Number) // one that is damaged is of no use
		n.cache.restart(n.Meta.Seq)
	}
	view.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = newReadTxn(s.db)
	for _, n := range open {
		n.show()
	}
	return nil
}
