package kvstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/lifecycle"
	"github.com/syncd-io/syncd/internal/durable"
)

// Store is a database in a folder. Make it with Open.
type Store struct {
	engine  kv.Engine
	dir     string
	options Options
	db      kv.DB
	life    lifecycle.Store[*namespace]
	lock    *dirLock
	disk    *diskGuard
	log     *slog.Logger

	committer committer
	eraser    *lifecycle.Eraser
	compactor autoCompactor

	waking     sync.Mutex // held while the store is opened for writing; taken before compacting
	compacting sync.Mutex // held while Compact runs

	mu   sync.Mutex // guards last, and what namespaces show
	last *readTxn   // as of the last commit; nil while the files are opened anew

	closeOnce func() error
}

// Open opens the store in a folder, and makes a new one in an empty folder.
//
// ErrLocked: another process, or this one, has it open. ErrFormat: it was
// written by a program of another disk format, or by another program
// altogether. ErrCorrupt: its files are damaged.
func Open(dir string, engine kv.Engine, o Options) (_ *Store, err error) {
	o.setDefaults()
	s := &Store{dir: dir, engine: engine, options: o, log: o.Logger, disk: &diskGuard{dir: dir, min: o.MinFree}}
	s.closeOnce = sync.OnceValue(s.close)
	if s.lock, err = lockDir(dir); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open store %s: %w", dir, err)
			s.lock.release()
		}
	}()
	if err := checkFormat(dir, engine); err != nil {
		return nil, err
	}
	clean, err := readClean(dir)
	if err != nil {
		return nil, err
	}
	if err := engine.Probe(dir, clean.there, true); err != nil {
		return nil, err
	}
	h, err := s.openFiles(clean)
	if err != nil {
		return nil, err
	}
	s.disk.need = s.need
	s.last = newReadTxn(s.db)
	s.committer.start(s, h)
	if !s.disk.closed.Load() {
		s.startWork()
	}
	return s, nil
}

// openNew makes a database in a folder that is empty, or not there. release ends the hold on
// the folder, once the database is closed.
func openNew(dir string, engine kv.Engine, o *Options) (db kv.DB, disk *diskGuard, release func(), err error) {
	if entries, err := os.ReadDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil, err
	} else if len(entries) > 0 {
		return nil, nil, nil, fmt.Errorf("%w: the folder is not empty", dbadapter.ErrLocked)
	}
	o.setDefaults()
	lock, err := lockDir(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	disk = &diskGuard{dir: dir, min: o.MinFree}
	if err = disk.opening(engine); err == nil {
		err = checkFormat(dir, engine)
	}
	if err == nil {
		db, err = engine.Open(dir)
	}
	if err != nil {
		lock.release()
	}
	return db, disk, lock.release, err
}

// startWork starts the work in the background.
func (s *Store) startWork() {
	s.eraser = s.startEraser()
	s.compactor.start(s)
}

// endWork ends it, if it has been started.
func (s *Store) endWork() {
	if s.eraser != nil {
		s.compactor.close()
		s.eraser.Close()
	}
}

func (s *Store) startEraser() *lifecycle.Eraser {
	return lifecycle.StartEraser(dropped{s}, s.log.With(slog.String("dir", s.dir)))
}

// openFiles opens the database and reads the store's head. From here on the engine
// writes, so the note of the clean close goes first; it comes back if the store
// is refused. Where the disk has no room for that, the database is opened for reading.
func (s *Store) openFiles(clean cleanNote) (h head, err error) {
	if full := s.disk.opening(s.engine); full != nil && s.engine.Holds(s.dir) {
		s.log.Warn("the store is opened for reading: writes are refused until there is room", slog.String("dir", s.dir), slog.Any("err", full))
		s.disk.closed.Store(true)
		s.db, err = s.engine.OpenReadOnly(s.dir)
	} else if err = errors.Join(full, clean.take(s.dir)); err == nil {
		s.db, err = s.engine.Open(s.dir)
	} else {
		return head{}, err
	}
	if err == nil {
		if h, err = s.readHead(); err == nil {
			err = clean.check(h.commits)
		}
		if err != nil {
			err = errors.Join(err, s.db.Close())
		}
	}
	if err != nil && !s.disk.closed.Load() {
		err = errors.Join(err, clean.putBack(s.dir))
	}
	return h, err
}

// background hands on damage that work in the background has met, and returns the error.
func (s *Store) background(err error) error {
	if errors.Is(err, dbadapter.ErrCorrupt) {
		s.options.Damaged(err)
	}
	return err
}

// readHead reads the store's own entry; the zero head with next 1 if the store
// is new.
func (s *Store) readHead() (head, error) {
	h := head{next: 1}
	view := s.db.View()
	defer view.Close()
	b, err := kv.Get(view, metaKey(0))
	if err != nil || b == nil {
		return h, err
	}
	return h, h.decode(b)
}

// Namespace opens a namespace; see dbadapter.Store. It must not be open.
func (s *Store) Namespace(ctx context.Context, id dbadapter.NamespaceID, hasher dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	n := s.newNamespace(id, hasher, observe)
	if err := s.life.Make(ctx, id, n, func() error { return s.committer.do(ctx, n.load) }); err != nil {
		return nil, err
	}
	return n, nil
}

// Close finishes the running commits, ends all snapshots, closes the database
// and notes on disk that it was closed in order. Idempotent.
func (s *Store) Close() error { return s.closeOnce() }

func (s *Store) close() error {
	s.life.Close()
	s.waking.Lock()
	defer s.waking.Unlock()
	s.endWork()
	s.committer.stop()
	s.compacting.Lock()
	defer s.compacting.Unlock()
	for _, n := range s.life.Open() {
		n.Close()
	}
	var err error
	if s.db != nil { // else it could not be opened for writing
		s.mu.Lock()
		s.last.release()
		s.last = nil
		s.mu.Unlock()
		err = s.db.Close()
	}
	if err == nil && s.committer.failed == nil && !s.disk.closed.Load() {
		err = markClean(s.dir, s.committer.head.commits)
	}
	if errors.Is(err, kv.ErrLeft) || durable.NoRoom(err) {
		s.log.Warn("the store is not closed in order; nothing is lost, and the next start looks at its files", slog.String("dir", s.dir), slog.Any("err", err))
		err = nil
	}
	s.lock.release()
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// Options are the settings of a store, whatever its engine. The zero value is good.
type Options struct {
	// Logger gets the failures of work in the background, which no call
	// returns; nil discards them.
	Logger *slog.Logger
	// LogLimit is how many changes of a namespace the log keeps, at least; 0
	// means 1<<16. Of a namespace with more than eight times as many records it keeps
	// an eighth of their number, so that the next copy need not hold all of them. A
	// reader that falls further behind scans the records.
	LogLimit int
	// MinFree is how many bytes of the disk writes leave free, beside what the engine
	// needs; 0 means 64 MiB, less than 0 switches the check off.
	MinFree int64
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
	// Damaged is told of damage that work in the background meets. nil: it is logged.
	Damaged func(error)
	// Failed is told that the store goes no further; see ondisk.Options. nil: it is logged.
	Failed func(error)
}

// defaultMinFree is what Options.MinFree says.
const defaultMinFree = 64 << 20

func (o *Options) setDefaults() {
	if o.LogLimit <= 0 {
		o.LogLimit = 1 << 16
	}
	if o.MinFree == 0 {
		o.MinFree = defaultMinFree
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Damaged == nil {
		o.Damaged = func(err error) { o.Logger.Error("the store is damaged", slog.Any("err", err)) }
	}
	if o.Failed == nil {
		o.Failed = func(err error) { o.Logger.Error("the store goes no further", slog.Any("err", err)) }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// What a batch takes in one transaction: each key stands in its record, in its bucket
// and in the change log, which is 3/2 of its weight, and a write adds up to putBytes
// to that (key prefixes, version, seal, signature, optional fields, checksum, log
// entry and kv.EntryBytes for each entry). A batch that sets records aside has each
// key in the kept log, in the removal and in the change log, and up to keepBytes more.
// An entry of the kept log that a conflict makes takes no more than keepBytes, key and
// value.
const (
	putBytes  = 123 + 4*kv.EntryBytes + changeMore + dbadapter.MaxOptional
	keepBytes = 192 + 4*kv.EntryBytes + changeMore + dbadapter.MaxOptional
	// changeMore is what the log says of a change beside its index, its checksums
	// and its key: the digest, and two numbers.
	changeMore = dbadapter.DigestSize + 2 + 2
	// conflictBytes bounds the conflicts that a transaction carries beside its
	// batch.
	conflictBytes = 256 << 10
)

// The bounds fit, or this does not compile.
const (
	_ = uint(kv.MaxTxn - 3*dbadapter.MaxBatchBytes/2 - putBytes*dbadapter.MaxBatch - conflictBytes - 4<<10)
	_ = uint(kv.MaxTxn - 3*dbadapter.MaxBatchBytes/2 - keepBytes*dbadapter.MaxBatch - 4<<10)
)

// inline is the size from which an entry is cut in two; see cut.
const inline = kv.MaxEntry
