package badgerkv

import (
	"os"
	"strings"
	"time"

	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Badger writes into mapped, sparse files: where a page finds no room on the disk the
// process ends with SIGBUS, in a goroutine of Badger's, and nothing can catch it. So room
// must be there before. Commits go into a log for which a store sees that there is room; a
// table gets its blocks before it is mapped (allocate_linux.go).

const (
	// startRoom is what an opening, or an orderly close, needs beside tables.
	startRoom = 4 << 20
	roomPause = 100 * time.Millisecond
)

// tableLine begins the line that Badger writes before it makes a table of a compaction.
const tableLine = "[%d] LOG Compact. Added"

// makesTable waits until a file can be made. Badger drops the error of a compaction's table,
// and with it the table and its records.
func (d *db) makesTable(format string) {
	if !strings.HasPrefix(format, tableLine) {
		return
	}
	for {
		free, err := durable.Free(d.dir)
		if (err != nil || free >= startRoom) && durable.Writable(d.dir) == nil {
			return
		}
		time.Sleep(roomPause)
	}
}

// leaves reports whether there is no room to close the database in order.
func (d *db) leaves() bool {
	free, err := durable.Free(d.dir)
	memory, _ := logged(d.dir)
	return !d.badger.Opts().ReadOnly && err == nil && free < d.working(memory)+startRoom
}

// Need counts what is in memory twice: its table is merged with those of the first level.
func (d *db) Need(bool) int64 {
	memory, _ := logged(d.dir)
	return memory + d.working(memory)
}

// working is what the flushes and compactions that are due may write: what is in memory; the
// first level, with the level below it; and of the largest of the other levels one table
// with those that it lies over, or all. Two compactions run at once at most.
func (d *db) working(memory int64) int64 {
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
			bytes += durable.Occupied(info)
		}
	}
	return bytes, err
}

// logsIn are the logs of the tables in memory, by age.
func logsIn(dir string) ([]string, error) { return durable.Files(dir, "*.mem") }

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
