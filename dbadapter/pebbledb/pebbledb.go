package pebbledb

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
	"github.com/syncd-io/syncd/dbadapter/internal/pebblekv"
)

// Format is the number of the disk format that this program reads and writes.
const Format = kvstore.Format

// Options are the settings of a store. The zero value is good.
type Options struct {
	// Logger gets the failures of work in the background, which no call
	// returns; nil discards them.
	Logger *slog.Logger
	// NoSync leaves it to the operating system when to write to the disk. A
	// power cut then loses acknowledged writes, and only tests may want that.
	NoSync bool
	// LogLimit is how many changes of a namespace the log keeps, at least; 0
	// means 1<<16. Of a namespace with more than eight times as many records it keeps
	// an eighth of their number. A reader that falls further behind scans the records.
	LogLimit int
	// MinFree is how many bytes of the disk writes leave free, besides what the database
	// needs for its own work; removals leave half of it. A write that would not is
	// ErrNoRoom. 0 means 64 MiB, less than 0 switches the check off: a full disk then ends
	// the process.
	MinFree int64
	// Memory is about how much memory the store may take, in bytes; 0 means 256 MiB. An
	// eighth of it caches indices and filters; the tables in memory take up to 64 MiB
	// while much is written, whatever Memory is.
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

func (o *Options) parts() (pebblekv.Engine, kvstore.Options) {
	return pebblekv.Engine{Logger: o.Logger, NoSync: o.NoSync, Cache: o.Memory / 8, Damaged: o.Damaged, Failed: o.Failed},
		kvstore.Options{Logger: o.Logger, LogLimit: o.LogLimit, MinFree: o.MinFree, Now: o.Now, Damaged: o.Damaged, Failed: o.Failed}
}

// Open opens the store in a folder, and makes a new one in an empty folder.
//
// ErrLocked: another process, or this one, has it open. ErrFormat: it was
// written by a program of another disk format, over another engine, or by another
// program altogether. ErrCorrupt: its files are damaged.
func Open(dir string, o Options) (dbadapter.Backuper, error) {
	engine, options := o.parts()
	s, err := kvstore.Open(dir, engine, options)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Restore makes a store of copies; see badgerdb.Restore.
func Restore(ctx context.Context, dir string, o Options, copies iter.Seq2[io.Reader, error]) error {
	engine, options := o.parts()
	return kvstore.Restore(ctx, dir, engine, options, copies)
}
