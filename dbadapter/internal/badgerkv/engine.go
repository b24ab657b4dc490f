// Package badgerkv is an engine of dbadapter/ondisk: the Badger key-value
// database, with a look at its files before Badger opens them (probe.go). The kernel
// is told how tables are read, and the process holds few of their pages (pages.go).
package badgerkv

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/examiner"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
)

// Engine opens Badger.
type Engine struct {
	// Logger gets Badger's failures in the background.
	Logger *slog.Logger
	// NoSync leaves it to the operating system when to write to the disk.
	NoSync bool
	// Memory is about how many bytes Badger may take; see sizes.
	Memory int64
	// Damaged is told of damage that the examiner finds. nil: it is logged.
	Damaged func(error)
	// Failed is told, once or more, that the database can go no further; see
	// kvstore.Options.
	Failed func(error)
}

// Name is what Badger is called in the stamp of a folder.
const Name = "badger"

// manifest is the file that Badger writes first.
const manifest = "MANIFEST"

// Name returns the constant.
func (e Engine) Name() string { return Name }

// Holds looks for Badger's list of tables.
func (e Engine) Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifest))
	return err == nil
}

// Open opens the database and makes an error of a panic.
func (e Engine) Open(dir string) (kv.DB, error) {
	d, err := e.open(dir, false)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (e Engine) open(dir string, readOnly bool) (_ *db, err error) {
	defer damage.Recovered("database files", &err)
	d := &db{dir: dir, tell: e.Failed, pause: time.Second}
	d.badger, err = e.openFiles(dir, readOnly, d)
	switch {
	case err == nil:
		d.times.start(d.badger)
		d.pages.start(d.badger, dir, e.sizes().mapped)
		d.examiner = examiner.Start(tables{d.badger, dir}, dir, e.log(), e.Damaged, readOnly)
		return d, nil
	case isLockError(err):
		return nil, fmt.Errorf("%w (%v)", dbadapter.ErrLocked, err)
	case damage.Is(err):
		return nil, damage.Corrupt("the database files", "%v", err)
	}
	return nil, fmt.Errorf("open the database files: %w", err)
}

// openFiles opens Badger's files. Badger empties the log of a table in memory before it
// deletes it, and makes a new one empty; where the process was killed in between, it takes
// the empty file for one that it has just made, makes it one, and refuses to go on. The next
// attempt reads it as a log without entries.
func (e Engine) openFiles(dir string, readOnly bool, d *db) (*badger.DB, error) {
	for tries := 0; ; tries++ {
		files, err := badger.OpenManaged(e.options(dir, d).WithReadOnly(readOnly))
		if err == nil || !strings.HasSuffix(err.Error(), z.NewFile.Error()) || tries > e.sizes().waiting+1 {
			return files, err
		}
	}
}

const (
	// memTable must be so large that 15 % of it take a transaction.
	memTable = 32 << 20
	txnBytes = memTable * 15 / 100
)

// sizes is how Badger's memory is divided.
type sizes struct {
	memTable int64 // bytes of a table in memory
	waiting  int   // how many full ones may wait to be written
	mapped   int64 // bytes of mapped pages of tables
}

// A table in memory takes its size twice, once in its log, which is mapped. Tables
// are made while one is filled, so that there is one more than may wait. There are no
// caches: nothing is compressed, and the kernel's serves.
func (e Engine) sizes() sizes {
	s := sizes{memTable: memTable, waiting: 1, mapped: max(e.Memory/4, leastMapped)}
	if e.Memory >= 6*memTable {
		s.waiting = 2
	}
	if e.Memory >= 24*memTable {
		s.memTable = 2 * memTable // fewer and larger tables in the first level
	}
	return s
}

// firstLevel is how many tables the first level takes before they are merged with the next
// one, and firstLevelMost how many before writes wait for that. Badger merges from 5 on, and
// lets writes wait from 15 on: of a million records of 256 bytes that were imported at one
// go, 2.2 µs each of 11.5 of a processor went into merging again what had been merged
// already. A look-up of what is not there asks the filter of each table in the first level.
const (
	firstLevel     = 8
	firstLevelMost = 20
)

// leastMapped lets a look-up among some thousand find its page mapped.
const leastMapped = 16 << 20

// kv.MaxTxn fits, or this does not compile.
const _ = uint(txnBytes - kv.MaxTxn)

func (e Engine) options(dir string, d *db) badger.Options {
	sizes := e.sizes()
	return badger.DefaultOptions(dir).
		WithSyncWrites(!e.NoSync).
		WithDetectConflicts(false). // there is one writer
		WithMemTableSize(sizes.memTable).
		WithNumMemtables(sizes.waiting).
		WithNumLevelZeroTables(firstLevel).
		WithNumLevelZeroTablesStall(firstLevelMost).
		WithValueThreshold(kv.MaxEntry). // the largest that Badger takes: all values stand among the keys
		WithValueLogFileSize(64 << 20).
		WithBlockCacheSize(0). // nothing is compressed: the page cache is enough
		WithIndexCacheSize(0). // indices stay mapped
		WithCompression(options.None).
		WithBloomFalsePositive(0.001). // most look-ups for a write find nothing
		WithMetricsEnabled(false).
		WithNumCompactors(2).
		WithLogger(logger{e.log(), d})
}

func (e Engine) log() *slog.Logger {
	if e.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Logger
}

// isLockError recognizes Badger's refusal to share a folder, which has no name, and another
// text on each system.
func isLockError(err error) bool {
	return slices.ContainsFunc([]string{
		"Cannot acquire directory lock", "Cannot create lock file", "Another process is using",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}
