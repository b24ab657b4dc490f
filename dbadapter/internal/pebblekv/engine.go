// Package pebblekv is an engine of dbadapter/ondisk: the Pebble key-value
// database, with a look at its logs before Pebble opens them (probe.go).
package pebblekv

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/examiner"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Engine opens Pebble.
type Engine struct {
	// Logger gets Pebble's failures in the background.
	Logger *slog.Logger
	// NoSync leaves it to the operating system when to write to the disk.
	NoSync bool
	// Cache is how many bytes the cache of blocks takes; 0 means defaultCache, and less
	// than leastCache means that.
	Cache int64
	// Damaged is told of damage that the examiner and compactions find. nil: it is logged.
	Damaged func(error)
	// Failed is told, once or more, that the database can go no further; see
	// kvstore.Options.
	Failed func(error)

	files vfs.FS        // nil: those of the system; tests give others
	pause time.Duration // before what was refused is asked for again; 0: a second
}

// Name is what Pebble is called in the stamp of a folder.
const Name = "pebble"

// Name returns the constant.
func (e Engine) Name() string { return Name }

// Holds looks for a list of tables.
func (e Engine) Holds(dir string) bool {
	lists, _ := durable.Files(dir, "MANIFEST-*")
	return len(lists) > 0
}

// Open opens the database and makes an error of a panic.
func (e Engine) Open(dir string) (kv.DB, error) { return e.open(dir, false) }

// OpenReadOnly opens the database for reading.
func (e Engine) OpenReadOnly(dir string) (kv.DB, error) { return e.open(dir, true) }

func (e Engine) open(dir string, readOnly bool) (_ kv.DB, err error) {
	defer damage.Recovered("database", &err)
	write := pebble.Sync
	if e.NoSync {
		write = pebble.NoSync
	}
	d := &db{dir: dir, write: write, patience: &patience{log: e.log(), failed: e.Failed, closed: make(chan struct{}), wait: cmp.Or(e.pause, time.Second)}}
	o := e.options()
	o.FS = patientFS{o.FS, d.patience}
	o.ReadOnly = readOnly
	o.Cache = pebble.NewCache(max(cmp.Or(e.Cache, defaultCache), leastCache) + memTables*memTable)
	defer o.Cache.Unref() // the database keeps it
	room := newSpare(o.Cache)
	o.EventListener.WALCreated = func(pebble.WALCreateInfo) { room.note(1) } // each table has a log
	o.EventListener.FlushEnd = func(i pebble.FlushInfo) {
		if i.Err == nil {
			room.note(-i.Input)
		}
	}
	o.EventListener.BackgroundError = func(err error) { d.failed(e, err) }
	if d.pebble, err = pebble.Open(dir, o); err != nil {
		return nil, named(err)
	}
	d.patience.opened.Store(true)
	room.note(-1) // the first table is written to, and waits for nothing
	d.examiner = examiner.Start(tables{d}, dir, e.log(), e.Damaged, readOnly)
	return d, nil
}

const (
	// memTable is a fourth of what an import leaves in memory at most, and about what a
	// store at rest has in its log. A transaction that takes more than half of it would be
	// a table of its own.
	memTable  = 16 << 20
	memTables = 4
	// stopWrites is with how many tables over one another in the first level writes wait.
	stopWrites = 24
	// defaultCache holds the index and filter blocks of 10^7 records, 2.5 bytes a key,
	// and little else: the kernel caches the files.
	defaultCache = 32 << 20
	leastCache   = 4 << 20
	// filterBits a key: one look-up in a hundred for a new key reads a table.
	filterBits = 10
)

// A transaction fits, or this does not compile.
const _ = uint(memTable/2 - kv.MaxTxn)

func (e Engine) options() *pebble.Options {
	o := &pebble.Options{
		// The newest formats check each table's end, and find damage within a log.
		FormatMajorVersion:          pebble.FormatNewest,
		FS:                          boundedFS{cmp.Or(e.files, vfs.Default)},
		MemTableSize:                memTable,
		MemTableStopWritesThreshold: memTables,
		// A look-up asks up to eight filters more, and entries are merged less often: of
		// 10^6 records that are imported, with a level less below them, at a fifth less
		// of the processor. A commit would wait for compactions only where they fall
		// behind by far.
		L0CompactionThreshold: 8,
		L0StopWritesThreshold: stopWrites,
		LBaseMaxBytes:         256 << 20,
		Logger:                logger{e.log()},
		EventListener: &pebble.EventListener{
			// Without it, damage that is met in the background ends the process. It also
			// speaks of what a read has met, which returns it.
			DataCorruption: func(pebble.DataCorruptionInfo) {},
		},
	}
	o.CompactionConcurrencyRange = func() (lower, upper int) { return 1, 2 }
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(filterBits)
	}
	return o
}

// NeedToOpen counts the tables that Pebble makes of its logs.
func (e Engine) NeedToOpen(dir string) (bytes int64) {
	logs, _ := durable.Files(dir, "*.log")
	for _, name := range logs {
		if info, err := os.Stat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes + leastRoom
}

func (e Engine) log() *slog.Logger {
	if e.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Logger
}

// named tells damage from a failure of the system.
func named(err error) error {
	switch {
	case err == nil, errors.Is(err, dbadapter.ErrCorrupt):
		return err
	case damage.Is(err) || errors.Is(err, fs.ErrNotExist): // a file is missing
		return damage.Corrupt("the database files", "%v", err)
	}
	return fmt.Errorf("use the database: %w", err)
}
