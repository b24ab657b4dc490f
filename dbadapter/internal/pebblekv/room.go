package pebblekv

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/internal/durable"
)

// roomFS lets tables leave leastRoom on the disk. Pebble undoes a table that finds no room,
// and tries again; its log and its list of tables have to wait for room, where they find none.
type roomFS struct{ vfs.FS }

const (
	leastRoom = 4 << 20
	// lookAfter is how much of a table is written between two looks at the disk.
	lookAfter = 1 << 20
)

// Create implements vfs.FS.
func (r roomFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !isTable(name) {
		return r.FS.Create(name, c)
	}
	if err := leaves(name); err != nil {
		return nil, err
	}
	f, err := r.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &madeTable{File: f, name: name}, nil
}

// leaves reports whether a table leaves room for the log and the list of tables.
func leaves(name string) error {
	if free, err := durable.Free(filepath.Dir(name)); err == nil && free < leastRoom {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
	}
	return nil
}

// madeTable is a table that is written.
type madeTable struct {
	vfs.File
	name    string
	written int
}

func (t *madeTable) Write(p []byte) (int, error) {
	if t.written += len(p); t.written >= lookAfter {
		t.written = 0
		if err := leaves(t.name); err != nil {
			return 0, err
		}
	}
	return t.File.Write(p)
}
