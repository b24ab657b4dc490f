package badgerdb

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// diskGuard refuses writes before the disk is full: the files are mapped into
// memory and sparse, and a write to a mapped page that finds no room ends the
// process with SIGBUS. It asks the file system once in checkEvery or
// checkCommits, whichever comes first; what is written between, and in the
// background, must fit below min. It is the committer's own.
type diskGuard struct {
	dir     string
	min     int64
	commits int
	asked   time.Time
	last    error
}

const (
	checkEvery   = time.Second
	checkCommits = 16 // of at most 4 MiB each
)

func (d *diskGuard) check() error {
	if d.min < 0 {
		return nil
	}
	d.commits++
	if d.last == nil && d.commits < checkCommits && time.Since(d.asked) < checkEvery {
		return nil
	}
	d.commits, d.asked, d.last = 0, time.Now(), nil
	free, err := freeBytes(d.dir)
	switch {
	case err != nil:
		d.last = fmt.Errorf("ask how much room the disk has: %w", err)
	case free < d.min:
		d.last = fmt.Errorf("write to %s: %w: the disk is nearly full: %d MiB are free, and %d must stay so; make room, or set a lower bound",
			d.dir, dbadapter.ErrLimit, free>>20, d.min>>20)
	}
	return d.last
}
