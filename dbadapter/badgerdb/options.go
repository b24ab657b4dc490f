package badgerdb

import (
	"log/slog"
	"time"

	"github.com/syncd-io/syncd/dbadapter/internal/badgerkv"
	"github.com/syncd-io/syncd/dbadapter/internal/kvstore"
)

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
	// Memory is about how many bytes the store may take: tables in memory that commits
	// fill, and pages of files that it holds mapped. 0 means DefaultMemory. With less
	// than 192 MiB commits wait more often for a table to be written; 128 MiB are the
	// least.
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

func (o *Options) engine() badgerkv.Engine {
	memory := o.Memory
	if memory <= 0 {
		memory = DefaultMemory
	}
	return badgerkv.Engine{Logger: o.Logger, NoSync: o.NoSync, Memory: memory, Damaged: o.Damaged, Failed: o.Failed}
}

func (o *Options) store() kvstore.Options {
	return kvstore.Options{Logger: o.Logger, LogLimit: o.LogLimit, MinFree: o.MinFree, Now: o.Now, Damaged: o.Damaged, Failed: o.Failed}
}
