package badgerkv

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter"
)

// examiner reads the tables through in the background: new ones, so that the next
// opening need not, and each one again after a day. A block that has gone bad is
// otherwise found only when a record is missing or old, since Badger takes what a bad
// block holds for absent.
type examiner struct {
	badger *badger.DB
	dir    string
	log    *slog.Logger
	stop   context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	looking sync.Mutex // one look runs at a time

	mu sync.Mutex // guards what follows
	// read are the tables that were found whole, and when; zero for those that a
	// process before this one has read.
	read map[uint64]reading
	bad  map[uint64]error // the damaged tables
}

// reading is when a table was found whole, and what it was then.
type reading struct {
	tableStat
	at time.Time
}

const (
	// examineEvery is how often the examiner looks for tables, and examineAge how old
	// a table must be: many live for seconds only, until a compaction merges them.
	examineEvery = 10 * time.Second
	examineAge   = 30 * time.Second
	// examineAgain is after how long a table is read again.
	examineAgain = 24 * time.Hour
	// examineRate bounds how many bytes a second are read: a tenth of what a disk
	// gives, and a thirtieth of a processor.
	examineRate = 32 << 20
)

// start starts the examiner. alone: nothing is read in the background.
func (e *examiner) start(db *badger.DB, dir string, log *slog.Logger, alone bool) {
	ctx, stop := context.WithCancel(context.Background())
	*e = examiner{badger: db, dir: dir, log: log, stop: stop, done: make(chan struct{}), read: map[uint64]reading{}, bad: map[uint64]error{}}
	for id, stat := range loadRead(dir) {
		e.read[id] = reading{tableStat: stat}
	}
	if alone {
		close(e.done)
		return
	}
	go e.loop(ctx)
}

func (e *examiner) close() {
	e.stop()
	<-e.done
}

func (e *examiner) loop(ctx context.Context) {
	defer close(e.done)
	tick := time.NewTicker(examineEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.look(ctx, false); err != nil && ctx.Err() == nil {
			e.log.Error("the store is damaged: its tables were read through", slog.String("dir", e.dir), slog.Any("err", err))
		}
	}
}

// look reads the tables that are due, or all of them at once, and returns what is
// found damaged now.
func (e *examiner) look(ctx context.Context, all bool) error {
	e.looking.Lock()
	defer e.looking.Unlock()
	var found error
	changed := e.forget()
	for _, t := range e.badger.Tables() {
		stat, err := statTable(e.dir, t.ID)
		if isGone(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !all && !e.due(t.ID, stat) {
			continue
		}
		begun := time.Now()
		err = probeTable(e.dir, t.ID, true)
		if _, gone := statTable(e.dir, t.ID); isGone(gone) {
			continue // a compaction has merged it meanwhile
		}
		switch {
		case errors.Is(err, dbadapter.ErrCorrupt):
			found = errors.Join(found, err)
		case err != nil:
			return err
		}
		changed = e.note(t.ID, stat, err) || changed
		if !all {
			rest(ctx, time.Duration(stat.size)*time.Second/examineRate-time.Since(begun))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if changed {
		if err := e.save(); err != nil {
			e.log.Warn("the next opening reads all tables through", slog.String("dir", e.dir), slog.Any("err", err))
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
func (e *examiner) due(id uint64, stat tableStat) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.bad[id] != nil {
		return false // it has been reported
	}
	if last, ok := e.read[id]; ok && last.tableStat == stat {
		return time.Since(last.at) >= examineAgain
	}
	return time.Since(time.Unix(0, stat.changed)) >= examineAge
}

// note takes the result of a reading, and reports whether the file READ changes.
func (e *examiner) note(id uint64, stat tableStat, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, ok := e.read[id]
	if err != nil {
		e.bad[id] = err
		delete(e.read, id)
		return ok
	}
	e.read[id] = reading{stat, time.Now()}
	return !ok || last.tableStat != stat
}

// forget drops the tables that are gone, and reports whether there were any.
func (e *examiner) forget() (any bool) {
	here := map[uint64]bool{}
	for _, t := range e.badger.Tables() {
		here[t.ID] = true
	}
	gone := func(id uint64) bool { return !here[id] }
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.read)
	maps.DeleteFunc(e.read, func(id uint64, _ reading) bool { return gone(id) })
	maps.DeleteFunc(e.bad, func(id uint64, _ error) bool { return gone(id) })
	return len(e.read) < before
}

func (e *examiner) save() error {
	e.mu.Lock()
	read := make(map[uint64]tableStat, len(e.read))
	for id, r := range e.read {
		read[id] = r.tableStat
	}
	e.mu.Unlock()
	return saveRead(e.dir, read)
}

// Examine implements kv.Examiner.
func (d *db) Examine(ctx context.Context) error { return d.examiner.look(ctx, true) }
