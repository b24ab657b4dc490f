package pebblekv

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/syncd-io/syncd/internal/durable"
)

// Tables leave leastRoom on the disk. Pebble undoes a table that finds no room,
// and tries again; its log and its list of tables have to wait for room, where they find none.
const (
	leastRoom = 4 << 20
	// lookAfter is how much of a table is written between two looks at the disk.
	lookAfter = 1 << 20
)

// leaves reports whether a file, if it is a table, leaves room for the log and the list of tables.
func leaves(name string) error {
	if !isTable(name) {
		return nil
	}
	if free, err := durable.Free(filepath.Dir(name)); err == nil && free < leastRoom {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	return nil
}
