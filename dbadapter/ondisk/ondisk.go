// Package ondisk chooses among the stores on disk by name, and moves the records of
// one into another.
//
//	kind, err := ondisk.KindOf(dir)                 // "" if there is no store yet
//	store, err := ondisk.Open(dir, kind, options)   // what is there; a badgerdb in a new folder
//
// A folder is stamped with the kind of its store: one of another kind is ErrFormat, and
// stays as it is.
package ondisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
	"github.com/syncd-io/syncd/dbadapter/internal/badgerkv"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/dbadapter/internal/pebblekv"
	"github.com/syncd-io/syncd/dbadapter/pebbledb"
)

// Kind names a store on disk; the zero Kind stands for the one that a folder holds
// already, and for Badger in a new one.
type Kind string

// The kinds.
const (
	Badger Kind = badgerkv.Name // dbadapter/badgerdb
	Pebble Kind = pebblekv.Name // dbadapter/pebbledb
)

// OnDisk reports whether it is one of the kinds.
func (k Kind) OnDisk() bool { return k == Badger || k == Pebble }

// Options are the settings of a store.
type Options struct {
	// Logger gets the failures of work in the background; nil discards them.
	Logger *slog.Logger
	// Memory is about how much memory the store may take, in bytes; 0: what the store
	// takes by itself.
	Memory int64
	// LogLimit is how many changes of a namespace the log keeps, at least; see
	// badgerdb.Options. 0: 1<<16.
	LogLimit int
	// MinFree is how many bytes of the disk writes leave free; see badgerdb.Options. 0: 64 MiB.
	MinFree int64
	// Now tells the time for the kept log; nil means time.Now.
	Now func() time.Time
	// Damaged is told of damage that work in the background meets; see badgerdb.Options.
	Damaged func(error)
	// Failed is told that the store goes no further; see badgerdb.Options.
	Failed func(error)
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

// Open opens the store in a folder, and makes a new one in an empty folder; see
// badgerdb.Open.
func Open(dir string, kind Kind, o Options) (dbadapter.Backuper, error) {
	kind, err := pick(dir, kind)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Badger:
		return badgerdb.Open(dir, badgerdb.Options{Logger: o.Logger, Now: o.Now, Memory: o.Memory, LogLimit: o.LogLimit, MinFree: o.MinFree, Damaged: o.Damaged, Failed: o.Failed})
	case Pebble:
		return pebbledb.Open(dir, pebbledb.Options{Logger: o.Logger, Now: o.Now, Memory: o.Memory, LogLimit: o.LogLimit, MinFree: o.MinFree, Damaged: o.Damaged, Failed: o.Failed})
	}
	return nil, unknown(kind)
}

// CheckCopy looks at how a copy of a store begins. ErrFormat: this program cannot restore it.
func CheckCopy(r io.Reader) error { return kvstore.CheckCopy(r) }

// Restore makes a store of copies, whatever the kind of the store that they are of; see
// badgerdb.Restore.
func Restore(ctx context.Context, dir string, kind Kind, o Options, copies iter.Seq2[io.Reader, error]) error {
	switch kind {
	case Badger, "":
		return badgerdb.Restore(ctx, dir, badgerdb.Options{Logger: o.Logger, Now: o.Now}, copies)
	case Pebble:
		return pebbledb.Restore(ctx, dir, pebbledb.Options{Logger: o.Logger, Now: o.Now}, copies)
	}
	return unknown(kind)
}

func unknown(kind Kind) error {
	return fmt.Errorf("%w: there is no store over %q: it is %s or %s", dbadapter.ErrFormat, kind, Badger, Pebble)
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
	var engine kv.Engine
	switch kind {
	case Badger:
		engine = badgerkv.Engine{Logger: o.Logger}
	case Pebble:
		engine = pebblekv.Engine{Logger: o.Logger}
	default:
		return Moved{}, unknown(kind)
	}
	m, err := s.CopyTo(ctx, dir, engine, kvstore.Options{Logger: o.Logger, Now: o.Now}, progress)
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
	var engine kv.Engine = badgerkv.Engine{Logger: o.Logger}
	if kind == Pebble {
		engine = pebblekv.Engine{Logger: o.Logger}
	}
	return kvstore.Rescue(ctx, dir, to, engine, kvstore.Options{Logger: o.Logger, Now: o.Now}, known,
		func(r kvstore.Rescued) error { return done(Rescued(r)) })
}
