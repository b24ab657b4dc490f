// Package examiner reads the tables of a database through in the background: new ones,
// and each one again after a day. A block that has gone bad on the disk is otherwise
// found when something reads it, which may be never. Or it is found when a record is
// missing or old, where the database takes what a bad block holds for absent.
package examiner

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// Tables are those of a database: files that are written once.
type Tables interface {
	// Tables are the numbers of those that are in use.
	Tables() ([]uint64, error)
	// Path is the file of one.
	Path(id uint64) string
	// Read reads one through and compares all of its checksums. ErrCorrupt names it; what
	// matches fs.ErrNotExist says that it is not there.
	Read(ctx context.Context, id uint64) error
}

// Examiner examines the tables of one database. Make it with Start.
type Examiner struct {
	tables  Tables
	dir     string
	log     *slog.Logger
	damaged func(error)
	stop    context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended

	mu sync.Mutex // held while a look runs; guards what follows
	// read are the tables that were found whole.
	read  map[uint64]Reading
	bad   map[uint64]error // the damaged tables
	saved time.Time        // when the note was written
}

// Reading is when a table was found whole, and what it was then.
type Reading struct {
	Stat
	At time.Time
}

const (
	// every is how often the examiner looks for tables, and age how old a table must be.
	// Many live for seconds only, until a compaction merges them.
	every = 10 * time.Second
	age   = 30 * time.Second
	// again is after how long a table is read again.
	again = 24 * time.Hour
	// rate bounds how many bytes a second are read: a tenth of what a disk gives, and a
	// thirtieth of a processor.
	rate = 32 << 20
	// saveEvery is how often a long round is noted, so that a process that ends in its
	// midst reads little twice.
	saveEvery = 30 * time.Second
)

// Start starts the examiner of the tables in a folder. It goes on where the note there
// says that the last one has ended, in order or not. damaged is told of each damaged
// table, once; nil: it is logged. alone: nothing is read in the background.
func Start(t Tables, dir string, log *slog.Logger, damaged func(error), alone bool) *Examiner {
	ctx, stop := context.WithCancel(context.Background())
	e := &Examiner{tables: t, dir: dir, log: log, damaged: damaged, stop: stop, done: make(chan struct{}), read: Load(dir), bad: map[uint64]error{}, saved: time.Now()}
	if damaged == nil {
		e.damaged = func(err error) {
			log.Error("the store is damaged: its tables were read through", slog.String("dir", dir), slog.Any("err", err))
		}
	}
	if alone {
		close(e.done)
		return e
	}
	go e.loop(ctx)
	return e
}

// Close ends the goroutine, and notes what was read.
func (e *Examiner) Close() {
	e.stop()
	<-e.done
}

func (e *Examiner) loop(ctx context.Context) {
	defer close(e.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := e.Look(ctx, false)
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, dbadapter.ErrCorrupt):
			e.damaged(err)
		default:
			e.log.Error("the tables of the store could not be read through", slog.String("dir", e.dir), slog.Any("err", err))
		}
	}
}

// Look reads the tables that are due, or all of them at once, and returns what is found
// damaged now.
func (e *Examiner) Look(ctx context.Context, all bool) (found error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids, err := e.tables.Tables()
	if err != nil {
		return err
	}
	before := len(e.read)
	maps.DeleteFunc(e.read, func(id uint64, _ Reading) bool { return !slices.Contains(ids, id) })
	maps.DeleteFunc(e.bad, func(id uint64, _ error) bool { return !slices.Contains(ids, id) })
	changed := len(e.read) < before
	defer func() {
		if changed {
			e.save()
		}
	}()
	// Those that were read last come last: a process that is started often comes to all.
	slices.SortFunc(ids, func(a, b uint64) int {
		return cmp.Or(e.read[a].At.Compare(e.read[b].At), cmp.Compare(a, b))
	})
	for _, id := range ids {
		stat, err := StatOf(e.tables.Path(id))
		if err == nil && !all && !e.due(id, stat) {
			continue
		}
		begun := time.Now()
		if err == nil {
			err = e.tables.Read(ctx, id)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if used, failed := e.tables.Tables(); failed != nil {
				return failed
			} else if !slices.Contains(used, id) {
				continue // a compaction has merged it meanwhile
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = damage.File(e.tables.Path(id), "it is missing")
		}
		switch {
		case errors.Is(err, dbadapter.ErrCorrupt):
			if all || e.bad[id] == nil {
				found = errors.Join(found, err)
			}
		case err != nil:
			return err
		}
		e.note(id, stat, err)
		if changed = true; time.Since(e.saved) >= saveEvery {
			e.save()
		}
		if !all {
			rest(ctx, time.Duration(stat.Size)*time.Second/rate-time.Since(begun))
		}
	}
	return found
}

// rest waits, or ends with the context.
func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// due reports whether a table is to be read.
func (e *Examiner) due(id uint64, stat Stat) bool {
	if e.bad[id] != nil {
		return false // it has been reported
	}
	if last, ok := e.read[id]; ok && last.Stat == stat {
		since := time.Since(last.At)
		return since >= again || since < 0 // the clock was set
	}
	return time.Since(time.Unix(0, stat.Changed)) >= age
}

// note takes the result of a reading.
func (e *Examiner) note(id uint64, stat Stat, err error) {
	if err != nil {
		e.bad[id] = err
		delete(e.read, id)
		return
	}
	delete(e.bad, id)
	e.read[id] = Reading{stat, time.Now()}
}

func (e *Examiner) save() {
	e.saved = time.Now()
	if err := Save(e.dir, e.read); err != nil {
		e.log.Warn("tables that were read through will be read again", slog.String("dir", e.dir), slog.Any("err", err))
	}
}
