package pebblekv

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// patientFS stands between Pebble and a system that refuses what it asks for. Pebble tries
// to write a table again at once, and ends the process where it cannot write a log or the
// list of tables. So the refusal of a table is handed on after a pause, and all else is
// tried again, with pauses, until the system grants it.
//
// A sync that has failed is not tried again: what it was to write may be lost by then,
// and the next sync would not say so. The database then goes no further.
type patientFS struct {
	vfs.FS
	*patience
}

type patience struct {
	log    *slog.Logger
	failed func(error) // nil: a failed sync is Pebble's to see
	opened atomic.Bool // an opening returns what it meets
	end    sync.Once
	closed chan struct{}
	wait   time.Duration
	// waiting is how many files wait that cannot be left out: a close would, too.
	waiting atomic.Int32
}

// pause waits, but not for a database that is being closed.
func (p *patience) pause() {
	select {
	case <-time.After(p.wait):
	case <-p.closed:
	}
}

func isTable(name string) bool { return filepath.Ext(name) == ".sst" }

// ask does what the system may refuse.
func (p *patience) ask(name string, do func() error) error {
	for {
		err := do()
		if err == nil || !p.opened.Load() || damage.Refusal(err) == nil {
			return err
		}
		if isTable(name) {
			p.pause()
			return err
		}
		p.log.Error("pebble: the system refuses what cannot be left out, and is asked again", slog.String("err", err.Error())) // without its stack
		p.waiting.Add(1)
		time.Sleep(p.wait)
		p.waiting.Add(-1)
	}
}

// synced takes the outcome of a sync.
func (p *patience) synced(name string, err error) error {
	switch {
	case err == nil || !p.opened.Load():
	case isTable(name):
		p.pause()
	case p.failed != nil:
		p.failed(fmt.Errorf("sync %s: %w", filepath.Base(name), err))
		select {} // Pebble would end the process
	}
	return err
}

func (fs patientFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = fs.ask(name, func() error {
		if err = leaves(name); err == nil {
			f, err = fs.FS.Create(name, c)
		}
		return err
	})
	return fs.file(f, name, err)
}

func (fs patientFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = fs.ask(to, func() error { f, err = fs.FS.ReuseForWrite(from, to, c); return err })
	return fs.file(f, to, err)
}

func (fs patientFS) Open(name string, o ...vfs.OpenOption) (f vfs.File, err error) {
	err = fs.ask(name, func() error { f, err = fs.FS.Open(name, o...); return err })
	return f, err
}

func (fs patientFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return fs.file(f, name, err)
}

func (fs patientFS) Rename(from, to string) error {
	return fs.ask(to, func() error { return fs.FS.Rename(from, to) })
}

func (fs patientFS) file(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &patientFile{File: f, name: name, patience: fs.patience}, nil
}

type patientFile struct {
	vfs.File
	name    string
	written int // since the last look at the disk
	*patience
}

func (f *patientFile) Write(p []byte) (n int, err error) {
	err = f.ask(f.name, func() error {
		if f.written += len(p) - n; f.written >= lookAfter {
			f.written = 0
			if err := leaves(f.name); err != nil {
				return err
			}
		}
		more, err := f.File.Write(p[n:])
		n += more
		return err
	})
	return n, err
}

func (f *patientFile) Sync() error     { return f.synced(f.name, f.File.Sync()) }
func (f *patientFile) SyncData() error { return f.synced(f.name, f.File.SyncData()) }

func (f *patientFile) SyncTo(length int64) (whole bool, err error) {
	whole, err = f.File.SyncTo(length)
	return whole, f.synced(f.name, err)
}
