package kvstore

import (
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
)

// diskGuard refuses writes before the disk is full: the files are mapped into
// memory and sparse, and a write to a mapped page that finds no room ends the
// process with SIGBUS. It asks the file system before each commit, which takes
// about a microsecond. What one commit and the engine's work in the background need
// must fit below min; compacting a large store may need more than the default.
type diskGuard struct {
	dir string
	min int64
}

func (d *diskGuard) check() error { return d.require(d.min) }

// require asks for at least that many free bytes; less than 0 asks for nothing.
func (d *diskGuard) require(least int64) error {
	if least < 0 {
		return nil
	}
	free, err := freeBytes(d.dir)
	switch {
	case err != nil:
		return fmt.Errorf("ask how much room the disk has: %w", err)
	case free < least:
		return fmt.Errorf("write to %s: %w: the disk is nearly full: %d MiB are free, and %d must stay so; make room, or set a lower bound",
			d.dir, dbadapter.ErrLimit, free>>20, least>>20)
	}
	return nil
}
