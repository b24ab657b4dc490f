package kvstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

var _ dbadapter.Salvager = (*Store)(nil)

// Salvage makes the files of the store anew; see dbadapter.Salvager. The namespaces
// that are neither open nor known are taken over as they are, as far as they can be read.
func (s *Store) Salvage(ctx context.Context, known map[dbadapter.NamespaceID]dbadapter.Hasher, keep func(dir string) error) (*dbadapter.Salvaged, error) {
	var done *dbadapter.Salvaged
	err := s.alone(func() error {
		return s.committer.do(ctx, func() (err error) {
			done, err = s.salvage(ctx, known, keep)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("salvage store %s: %w", s.dir, err)
	}
	return done, nil
}

// alone runs a function while nothing else of the store works in the background. Close
// waits for it.
func (s *Store) alone(run func() error) error {
	s.salvaging.Lock()
	defer s.salvaging.Unlock()
	if err := s.life.Err(); err != nil {
		return err
	}
	if err := s.disk.small(); err != nil {
		return err
	}
	s.endWork()
	defer s.startWork()
	s.compacting.Lock()
	defer s.compacting.Unlock()
	return run()
}

// salvage runs on the committer's goroutine.
func (s *Store) salvage(ctx context.Context, known map[dbadapter.NamespaceID]dbadapter.Hasher, keep func(dir string) error) (*dbadapter.Salvaged, error) {
	r := newRescue(s.dir, s.engine, s.options)
	r.closed = true
	maps.Copy(r.known, known)
	open, last, err := s.quiet()
	if err != nil {
		return nil, err
	}
	for _, n := range open {
		r.known[n.id] = n.hasher
		r.numbers[n.number] = &rescued{id: n.id, hasher: n.hasher, meta: n.meta, sure: true}
	}
	r.head, r.headKnown = s.committer.head, true
	last.release()
	closing := closeDamaged(s.db)       // what it could not write is in its log, or was not acknowledged
	if errors.Is(closing, kv.ErrLeft) { // it may write yet
		s.db = nil
		s.committer.failed = fmt.Errorf("salvage the database: %w; make room, and start the program again", closing)
		return nil, s.committer.failed
	}
	var done *dbadapter.Salvaged
	var failed error
	if keep != nil {
		failed = keep(s.dir)
	}
	if failed == nil {
		done, failed = r.run(ctx)
	}
	if closing != nil {
		s.log.Warn("the damaged store was closed with an error", slog.String("dir", s.dir), slog.Any("err", closing))
	}
	if err := s.reopen(open); err != nil {
		s.db = nil
		s.committer.failed = fmt.Errorf("open the database again: %w; no more writes are taken: start the program again", err)
		return nil, errors.Join(failed, s.committer.failed)
	}
	return done, failed
}

// quiet ends all snapshots, and lets no other be opened. It returns the open namespaces,
// and the last transaction, which nothing else holds.
func (s *Store) quiet() (open []*namespace, last *readTxn, err error) {
	for _, n := range s.life.Open() {
		if n.number != 0 { // else it is being opened
			open = append(open, n)
		}
	}
	s.mu.Lock()
	last, s.last = s.last, nil
	s.mu.Unlock()
	// A call of Snapshot may be about to add one.
	for range 1000 {
		for _, n := range open {
			n.life.EndSnapshots()
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

// closeDamaged makes an error of a panic over damage.
func closeDamaged(db kv.DB) (err error) {
	defer damage.Recovered("database", &err)
	return db.Close()
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
	for _, lock := range []*sync.Mutex{&s.salvaging, &s.compacting} {
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
		b, err := kv.Get(view, metaKey(n.number))
		if err == nil {
			err = n.meta.decode(b, n.number)
		}
		if err != nil {
			view.Close()
			return errors.Join(err, s.db.Close())
		}
		n.summary, _ = readKeeps(view, n.number) // one that is damaged is of no use
		n.looked.restart(n.meta.Seq)
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

// Salvage makes the files of a store anew that is not open, and perhaps cannot be. known
// returns the hashers of its namespaces; it is called when the store is locked. note is
// told what is missing before the old files go.
func Salvage(ctx context.Context, dir string, engine kv.Engine, o Options,
	known func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error), note func(*dbadapter.Salvaged) error,
) (_ *dbadapter.Salvaged, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("salvage store %s: %w", dir, err)
		}
	}()
	o.setDefaults()
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer lock.release()
	if err := checkFormat(dir, engine); err != nil {
		return nil, err
	}
	if err := finishSalvage(dir); err != nil {
		return nil, err
	}
	r := newRescue(dir, engine, o)
	clean, err := readClean(dir) // damage to it says as much
	r.closed = clean.there || errors.Is(err, dbadapter.ErrCorrupt)
	if r.known, err = known(); err != nil {
		return nil, err
	}
	r.note = note
	return r.run(ctx)
}

// The new files are made in a folder within that of the store:
//
//	salvage.new     they are being made; an opening removes it
//	salvage         they are complete; an opening removes the old files
//	salvage.moving  the old files are gone; an opening moves the new ones up
const (
	salvageNew    = "salvage.new"
	salvageWhole  = "salvage"
	salvageMoving = "salvage.moving"
)

// finishSalvage finishes a salvage that was cut short.
func finishSalvage(dir string) error {
	for _, unfinished := range []string{salvageNew, kv.SalvageDir} {
		if err := os.RemoveAll(filepath.Join(dir, unfinished)); err != nil {
			return err
		}
	}
	if exists(filepath.Join(dir, salvageWhole)) {
		if err := removeOld(dir); err != nil {
			return err
		}
		if err := rename(dir, salvageWhole, salvageMoving); err != nil {
			return err
		}
	}
	if !exists(filepath.Join(dir, salvageMoving)) {
		return nil
	}
	moving := filepath.Join(dir, salvageMoving)
	files, err := os.ReadDir(moving)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(filepath.Join(moving, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	if err := errors.Join(durable.SyncDir(moving), durable.SyncDir(dir)); err != nil {
		return err
	}
	return errors.Join(os.Remove(moving), durable.SyncDir(dir))
}

// removeOld removes the files of the database that was salvaged.
func removeOld(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		switch f.Name() {
		case salvageWhole, formatFile, lockFile:
		default:
			if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
				return err
			}
		}
	}
	return durable.SyncDir(dir)
}

func rename(dir, from, to string) error {
	return errors.Join(os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)), durable.SyncDir(dir))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
