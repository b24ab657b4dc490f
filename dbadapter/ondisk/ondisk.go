// Package ondisk is the store on disk, over the Badger or the Pebble key-value database.
//
//	store, err := ondisk.Open("/var/lib/syncd/store", ondisk.Badger, ondisk.Options{})
//	namespace, err := store.Namespace(ctx, id, hasher, nil)
//	outcomes, err := namespace.Apply(ctx, []dbadapter.Write{{Record: record}})
//
// Both kinds keep the same entries, and read each other's copies. Package
// dbadapter/internal/kvstore makes the store of a key-value database; badgerkv and pebblekv
// beside it are the databases. They say how each is opened, what must be looked at in its
// files before, and how it is made to free space. Pebble takes less memory, since it maps no
// files, and less time to write.
//
// A folder is stamped with the kind of its store: one of another kind is ErrFormat, and
// stays as it is.
//
// What is not promised: if the disk acknowledges what it has not stored, a power cut loses
// it. Damage to the files while the store is open is found when the damaged entry is read.
// Where Pebble's list of tables cannot be written, the process ends.
package ondisk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/badgerkv"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/dbadapter/internal/pebblekv"
)

// Kind names a store on disk; the zero Kind stands for the one that a folder holds
// already, and for Badger in a new one.
type Kind string

// The kinds.
const (
	Badger Kind = badgerkv.Name
	Pebble Kind = pebblekv.Name
)

// Format is the number of the disk format that this program reads and writes.
const Format = kvstore.Format

// OnDisk reports whether it is one of the kinds.
func (k Kind) OnDisk() bool { return k == Badger || k == Pebble }

// Options are the settings of a store. The zero value is good.
type Options struct {
	// Logger gets the failures of work in the background, which no call
	// returns; nil discards them.
	Logger *slog.Logger
	// NoSync leaves it to the operating system when to write to the disk. A
	// power cut then loses acknowledged writes, and only tests may want that.
	NoSync bool
	// LogLimit is how many changes of a namespace the log keeps, at least; 0 means
	// 1<<16. Of a namespace with more than eight times as many records it keeps an
	// eighth of their number. So the next copy need not hold all of them. A reader that
	// falls further behind scans the records.
	LogLimit int
	// MinFree is how many bytes of the disk writes leave free, besides what the database
	// needs for its own work; removals leave half of it. A write that would not is
	// ErrNoRoom. 0 means 64 MiB, less than 0 switches the check off: a full disk then ends
	// the process.
	MinFree int64
	// Memory is about how many bytes the store may take; 0 means DefaultMemory.
	//
	// Badger takes it for tables in memory that commits fill, and for pages of files that it
	// holds mapped. With less than 192 MiB commits wait more often for a table to be written;
	// 128 MiB are the least. Pebble caches indices and filters in an eighth of it; its tables
	// in memory take up to 64 MiB while much is written, whatever Memory is.
	Memory int64
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
	// Damaged is told of damage (dbadapter.ErrCorrupt) that work in the background meets,
	// which no call returns. It may be told of the same more than once, and must not call the
	// store. nil: it is logged.
	Damaged func(error)
	// Failed is told, once or more, that the system has refused what the store cannot do
	// without. The store takes no more writes, may read no more, and may not even close.
	// What was acknowledged is on the disk, and the program is to be started again. It must
	// not call the store. nil: it is logged.
	Failed func(error)
}

// DefaultMemory is what Options.Memory says.
const DefaultMemory = 256 << 20

// engine is the database of a kind.
func (o *Options) engine(kind Kind) (kv.Engine, error) {
	memory := o.Memory
	if memory <= 0 {
		memory = DefaultMemory
	}
	switch kind {
	case Badger:
		return badgerkv.Engine{Logger: o.Logger, NoSync: o.NoSync, Memory: memory, Damaged: o.Damaged, Failed: o.Failed}, nil
	case Pebble:
		return pebblekv.Engine{Logger: o.Logger, NoSync: o.NoSync, Cache: memory / 8, Damaged: o.Damaged, Failed: o.Failed}, nil
	}
	return nil, fmt.Errorf("%w: there is no store over %q: it is %s or %s", dbadapter.ErrFormat, kind, Badger, Pebble)
}

func (o *Options) store() kvstore.Options {
	return kvstore.Options{Logger: o.Logger, LogLimit: o.LogLimit, MinFree: o.MinFree, Now: o.Now, Damaged: o.Damaged, Failed: o.Failed}
}

// KindOf returns the kind of the store in a folder, "" if there is no store; it may be
// one of another package that stamps its folder (dbadapter/pgdb).
// ErrFormat: another program's, or another version's, stamp is there. ErrCorrupt: the stamp
// is damaged; or, with ErrFormat, it is missing.
func KindOf(dir string) (Kind, error) {
	name, err := kvstore.EngineOf(dir)
	if err == nil && name == "" {
		err = errors.Join(kvstore.Unstamped(dir, badgerkv.Engine{}), kvstore.Unstamped(dir, pebblekv.Engine{}))
	}
	if err != nil {
		return "", fmt.Errorf("look at the store %s: %w", dir, err)
	}
	return Kind(name), nil
}

// pick is the kind to open a folder as.
func pick(dir string, kind Kind) (Kind, error) {
	held, err := KindOf(dir)
	switch {
	case kind != "" && !errors.Is(err, dbadapter.ErrCorrupt):
		return kind, nil
	case err == nil && held == "":
		return Badger, nil
	case err == nil && !held.OnDisk():
		err = fmt.Errorf("open store %s: %w: it is a store over %s; open it as what it is", dir, dbadapter.ErrFormat, held)
	}
	return held, err
}

// Open opens the store in a folder, and makes a new one in an empty folder.
//
// ErrLocked: another process, or this one, has it open. ErrFormat: it was
// written by a program of another disk format, over another engine, or by another
// program altogether. ErrCorrupt: its files are damaged.
func Open(dir string, kind Kind, o Options) (dbadapter.Backuper, error) {
	kind, err := pick(dir, kind)
	if err != nil {
		return nil, err
	}
	engine, err := o.engine(kind)
	if err != nil {
		return nil, err
	}
	s, err := kvstore.Open(dir, engine, o.store())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckCopy looks at how a copy of a store begins. ErrFormat: this program cannot restore it.
func CheckCopy(r io.Reader) error { return kvstore.CheckCopy(r) }

// Restore makes a store in a folder that is empty, or not there, of copies that
// Checkpoint.Copy of a store on disk wrote, whatever its kind. They are a whole one
// and those that follow it, oldest first. Each is read to its end before the next one
// is asked for. The records are verified when the store is opened and scanned; a copy's
// framing is verified here. After an error the folder holds a part of a store, and is
// of no use.
func Restore(ctx context.Context, dir string, kind Kind, o Options, copies iter.Seq2[io.Reader, error]) error {
	engine, err := o.engine(cmp.Or(kind, Badger))
	if err != nil {
		return err
	}
	return kvstore.Restore(ctx, dir, engine, o.store(), copies)
}

// Moved says what Copy has copied.
type Moved struct {
	Entries uint64 // records, and what a store keeps beside them
	Bytes   int64  // of their keys and values
	Digest  [32]byte
}

// Copy makes a store of a kind in a folder that is empty, or not there, with all that
// an open store of this package holds, as of one moment: nothing is made anew, so that
// sequence numbers, ceilings, the change log, the kept log and the lines of backups go
// on. When it returns, the copy is durable, and was read and compared with what was
// written by a digest of all entries (SHA-256); the records themselves are verified by
// a scan of the namespaces. After an error the folder is of no use. progress, if not
// nil, is told how many bytes of entries have been read; each is read twice.
func Copy(ctx context.Context, from dbadapter.Store, dir string, kind Kind, o Options, progress func(read int64)) (Moved, error) {
	s, ok := from.(*kvstore.Store)
	if !ok {
		return Moved{}, fmt.Errorf("copy a store: %w: it is no store of dbadapter/ondisk; export its records and import them", dbadapter.ErrFormat)
	}
	engine, err := o.engine(kind)
	if err != nil {
		return Moved{}, err
	}
	m, err := s.CopyTo(ctx, dir, engine, o.store(), progress)
	return Moved(m), err
}

// Rescued says what Rescue has left behind.
type Rescued kvstore.Rescued

// Rescue makes a new store of the same kind in the folder to, with what the database of a
// damaged store, which is not open, still reads: the records that are as their index says,
// and the kept logs. If the database does not open, the new store is empty.
//
// known returns the hashers of the namespaces to be carried over; it is called when the
// damaged store is locked. done is called under the same lock, when the new store is complete.
// ErrFormat: the store is another program's, or another version's.
func Rescue(ctx context.Context, dir, to string, o Options,
	known func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error), done func(Rescued) error,
) error {
	kind, err := pick(dir, "")
	if errors.Is(err, dbadapter.ErrCorrupt) && !errors.Is(err, dbadapter.ErrFormat) { // the stamp is damaged
		if kind, err = Badger, nil; (pebblekv.Engine{}).Holds(dir) {
			kind = Pebble
		}
	}
	if err != nil {
		return err
	}
	engine, err := o.engine(kind)
	if err != nil {
		return err
	}
	return kvstore.Rescue(ctx, dir, to, engine, o.store(), known,
		func(r kvstore.Rescued) error { return done(Rescued(r)) })
}
