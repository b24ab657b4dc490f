package badgerkv

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Badger writes into mapped, sparse files: where a page finds no room on the disk the
// process ends with SIGBUS, in a goroutine of Badger's, and nothing can catch it. So room
// must be there before. A store refuses its writes in time (Need), but another program may
// take the room of the compactions that follow. Badger writes a line to its log right
// before it makes a table of a compaction; there the gate lets it wait until there is room.
type gate struct {
	dir string

	mu    sync.Mutex       // guards what follows
	need  func() int64     // nil until Badger is open
	begun map[any]struct{} // compactions that have made a table, by compactor
	shut  bool             // for good: the database is left as it is
}

const (
	// tableRoom is what must be there before a compaction makes another table.
	tableRoom = 16 << 20
	// startRoom is what an opening, or an orderly close, needs beside tables.
	startRoom = 4 << 20
	gatePause = 100 * time.Millisecond
	// With less than plenty of room a table waits for that long without a fall of the room:
	// who fills a disk does so at a gigabyte a second, and a table is made in milliseconds.
	plenty = 256 << 20
	calm   = 50 * time.Millisecond
	fallen = 1 << 20
)

// The lines of Badger's log, of which the first argument is the compactor.
const (
	tableLine = "[%d] LOG Compact. Added"
	doneLine  = "[Compactor: %d]"
)

// logged is told of each line, on the goroutine that compacts. It holds no lock then.
func (g *gate) logged(format string, args []any) {
	switch {
	case strings.HasPrefix(format, tableLine):
		for !g.pass(args[0]) {
			time.Sleep(gatePause)
		}
	case strings.HasPrefix(format, doneLine):
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.begun, args[0])
	}
}

// pass reports whether a compaction may make a table: the first one if there is room for
// all of them.
func (g *gate) pass(compactor any) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	least := int64(tableRoom)
	if _, begun := g.begun[compactor]; !begun && g.need != nil {
		least = g.need() + startRoom
	}
	// Badger drops an error of a table that a compaction makes, and the table with it.
	free, err := durable.Free(g.dir)
	if err == nil && free < plenty { // is another program filling the disk now?
		before := free - fallen
		time.Sleep(calm)
		if free, err = durable.Free(g.dir); err == nil && free < max(least, before) {
			return false
		}
	}
	if durable.Writable(g.dir) != nil {
		return false
	}
	g.begun[compactor] = struct{}{}
	return true
}

// open lets the first table of a compaction wait for room for all.
func (g *gate) open(need func() int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.need = need
}

// close reports whether there is room to close the database in order, and shuts the gate
// for good if there is not.
func (g *gate) close(need int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	free, err := durable.Free(g.dir)
	g.shut = err == nil && free < need+startRoom
	return !g.shut
}

// Need counts what is in memory twice: its table is merged with those of the first level.
func (d *db) Need(bool) int64 {
	memory, _ := logged(d.gate.dir)
	return memory + d.working()
}

// working is what the flushes and compactions that are due may write: what is in memory; the
// first level, with the level below it; and of the largest of the other levels one table
// with those that it lies over, or all. Two compactions run at once at most.
func (d *db) working() int64 {
	memory, _ := logged(d.gate.dir)
	var first, other int64
	levels := d.badger.Levels()
	for i, l := range levels {
		if i == 0 || l.IsBaseLevel {
			first += l.Size
		} else if l.Size > 0 {
			other = max(other, min(levels[i-1].Size+l.Size, mergedTables*l.TargetFileSize))
		}
	}
	return memory + first + other
}

// mergedTables is how many tables of a level and of the next one Badger merges at a time: it
// ends a table that lies over ten of the next level.
const mergedTables = 12

// logged is how much the logs in a folder take, all of which Badger makes tables of when
// it opens it.
func logged(dir string) (bytes int64, err error) {
	logs, err := logsIn(dir)
	for _, name := range logs {
		if info, err := os.Stat(name); err == nil { // Badger may have removed it
			bytes += occupied(info)
		}
	}
	return bytes, err
}

// logsIn are the logs of the tables in memory, by age.
func logsIn(dir string) ([]string, error) { return filepath.Glob(filepath.Join(dir, "*.mem")) }

// NeedToOpen counts the tables that Badger makes of its logs.
func (e Engine) NeedToOpen(dir string) int64 {
	bytes, _ := logged(dir)
	return bytes + startRoom
}

// OpenReadOnly opens the files for reading. Badger reads its logs into memory then, and
// makes no tables of them; it wants them to end behind the last commit, and none to be empty.
func (e Engine) OpenReadOnly(dir string) (kv.DB, error) {
	logs, err := logsIn(dir)
	for _, name := range logs {
		b, whole, failed := readLog(name)
		switch {
		case failed != nil:
			err = failed
		case whole == logHeader:
			err = os.Remove(name)
		case whole < len(b):
			err = os.Truncate(name, int64(whole))
		}
		if err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	d, err := e.open(dir, true)
	if err != nil {
		return nil, err
	}
	return d, nil
}
