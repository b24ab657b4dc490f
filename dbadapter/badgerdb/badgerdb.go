package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/syncd-io/syncd/dbadapter"
)

// Options are the settings of a store. The zero value is good.
type Options struct {
	// Logger gets the failures of work in the background, which no call
	// returns; nil discards them.
	Logger *slog.Logger
	// NoSync leaves it to the operating system when to write to the disk. A
	// power cut then loses acknowledged writes, and only tests may want that.
	NoSync bool
	// LogLimit is how many changes of a namespace the log keeps, at least; 0
	// means 1<<20. An observer that falls further behind scans the records.
	LogLimit int
	// MinFree is how many bytes must be free on the disk for a write to be
	// taken; 0 means 64 MiB, less than 0 switches the check off. The files are
	// mapped into memory, and a full disk would kill the process.
	MinFree int64
	// TrustFiles skips reading all tables through when the store is opened,
	// which takes about a second for 1 GB. A flipped bit in a table may then
	// make a record disappear, or show an older one.
	TrustFiles bool
}

// Store is a database in a folder. Make it with Open.
type Store struct {
	dir     string
	options Options
	db      *badger.DB
	lock    *dirLock
	disk    *diskGuard
	log     *slog.Logger

	committer committer
	eraser    eraser

	mu     sync.Mutex // guards what follows
	last   *readTxn   // as of the last commit
	open   map[dbadapter.NamespaceID]*namespace
	closed bool

	closeOnce sync.Once
	closeErr  error
}

var _ dbadapter.Store = (*Store)(nil)

const (
	// memTable must be so large that one transaction, 15 % of it, takes a
	// batch at both bounds with nothing but keys: each key stands in its record
	// and in its bucket, and a write adds up to 171 bytes to that (key
	// prefixes, version, seal, signature, checksum, log entry and Badger's own
	// account of 12 bytes an entry).
	memTable = 32 << 20
	// inline is the size from which Badger would put values into files of
	// their own; it is the largest that Badger takes. See cut.
	inline = 1 << 20
)

const txnBytes = memTable * 15 / 100

// The bounds fit, or this does not compile.
const _ = uint(txnBytes - 2*dbadapter.MaxBatchBytes - 171*dbadapter.MaxBatch - 4<<10)

func (o *Options) badger(dir string) badger.Options {
	return badger.DefaultOptions(dir).
		WithSyncWrites(!o.NoSync).
		WithDetectConflicts(false). // there is one writer
		WithMemTableSize(memTable).
		WithNumMemtables(2).
		WithValueThreshold(inline).
		WithValueLogFileSize(64 << 20).
		WithBlockCacheSize(0). // nothing is compressed: the page cache is enough
		WithIndexCacheSize(0). // indices stay mapped
		WithCompression(options.None).
		WithBloomFalsePositive(0.001). // most look-ups for a write find nothing
		WithMetricsEnabled(false).
		WithNumCompactors(2).
		WithLogger(logger{o.Logger})
}

// Open opens the store in a folder, and makes a new one in an empty folder.
//
// ErrLocked: another process, or this one, has it open. ErrFormat: it was
// written by a program of another disk format, or by another program
// altogether. ErrCorrupt: its files are damaged.
func Open(dir string, o Options) (_ *Store, err error) {
	if o.LogLimit <= 0 {
		o.LogLimit = 1 << 20
	}
	if o.MinFree == 0 {
		o.MinFree = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{dir: dir, options: o, log: o.Logger, open: make(map[dbadapter.NamespaceID]*namespace)}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open store %s: %w", dir, err)
			s.lock.release()
		}
	}()
	if err := checkFormat(dir); err != nil {
		return nil, err
	}
	clean, err := readClean(dir)
	if err != nil {
		return nil, err
	}
	if err := probe(dir, clean.there, &o); err != nil {
		return nil, err
	}
	h, err := s.openFiles(clean)
	if err != nil {
		return nil, err
	}
	s.disk = &diskGuard{dir: dir, min: o.MinFree}
	s.last = newReadTxn(s.db)
	s.committer.start(s, h)
	s.eraser.start(s)
	return s, nil
}

// openFiles opens the database and reads the store's head. From here on Badger
// writes, so the note of the clean close goes first; it comes back if the store
// is refused.
func (s *Store) openFiles(clean cleanNote) (h head, err error) {
	if err := clean.take(s.dir); err != nil {
		return head{}, err
	}
	s.db, err = openBadger(s.options.badger(s.dir))
	if err == nil {
		if h, err = s.readHead(); err == nil {
			err = clean.check(h.commits)
		}
		if err != nil {
			err = errors.Join(err, s.db.Close())
		}
	}
	if err != nil {
		err = errors.Join(err, clean.putBack(s.dir))
	}
	return h, err
}

// openBadger opens the database and makes an error of a panic.
func openBadger(o badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, corrupt("the database files", "%v", p)
		}
	}()
	db, err = badger.Open(o)
	switch {
	case err == nil:
		return db, nil
	case isLockError(err):
		return nil, fmt.Errorf("%w (%v)", dbadapter.ErrLocked, err)
	case isDamage(err):
		return nil, corrupt("the database files", "%v", err)
	}
	return nil, fmt.Errorf("open the database files: %w", err)
}

// readHead reads the store's own entry; the zero head with next 1 if the store
// is new.
func (s *Store) readHead() (head, error) {
	h := head{next: 1}
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	b, err := get(txn, appendPrefix(nil, 0, kindMeta))
	if err != nil || b == nil {
		return h, err
	}
	return h, h.decode(b)
}

// get returns the value under a key of Badger, nil if the key is not there. It
// is the caller's. Badger panics over some kinds of damage.
func get(txn *badger.Txn, key []byte) (_ []byte, err error) {
	defer recovered("database", &err)
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the database: %w", err)
	}
	b, err := item.ValueCopy(nil)
	if err != nil {
		return nil, fmt.Errorf("read the database: %w", err)
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// Namespace opens a namespace; see dbadapter.Store. It must not be open.
func (s *Store) Namespace(ctx context.Context, id dbadapter.NamespaceID, hasher dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := &namespace{store: s, id: id, hasher: hasher, observe: observe, snapshots: make(map[*snapshot]struct{})}
	if err := s.reserve(id, n); err != nil {
		return nil, fmt.Errorf("open namespace %x: %w", id, err)
	}
	if err := s.committer.do(ctx, n.load); err != nil {
		s.release(id)
		return nil, fmt.Errorf("open namespace %x: %w", id, err)
	}
	return n, nil
}

// reserve keeps others from opening or dropping a namespace until it is
// released.
func (s *Store) reserve(id dbadapter.NamespaceID, n *namespace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("the store is %w", dbadapter.ErrClosed)
	}
	if s.open[id] != nil {
		return fmt.Errorf("%w; close it first", dbadapter.ErrLocked)
	}
	s.open[id] = n
	return nil
}

func (s *Store) release(id dbadapter.NamespaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// Close finishes the running commits, ends all snapshots, closes the database
// and notes on disk that it was closed in order. Idempotent.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.eraser.close()
	s.committer.stop()
	s.mu.Lock()
	var open []*namespace
	for _, n := range s.open {
		open = append(open, n)
	}
	s.mu.Unlock()
	for _, n := range open {
		n.Close()
	}
	s.mu.Lock()
	s.last.release()
	s.last = nil
	s.mu.Unlock()
	err := s.db.Close()
	if err == nil && s.committer.failed == nil {
		err = markClean(s.dir, s.committer.head.commits)
	}
	s.lock.release()
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}
