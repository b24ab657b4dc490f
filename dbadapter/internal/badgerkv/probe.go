package badgerkv

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sync/errgroup"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/dbadapter/internal/examiner"
	"github.com/syncd-io/syncd/internal/durable"
)

// Probe reads the files before Badger opens them, since Badger answers
// damage in ways that a store must not:
//
//	a table whose end is damaged     the process ends, or the table is left out
//	a block of a table               its keys are taken for absent, and an older
//	                                 record may show; a compaction makes it so
//	the log of the last commits      cut short at the damage, without a word
//	the list of tables               cut short, and unlisted tables are deleted
//
// After a clean close, closed, there is nothing half written at all. What the
// probe finds is ErrCorrupt, and leaves the files as they are. It knows
// their format from badger/v4@v4.9.6: table/builder.go, memtable.go, manifest.go.
//
// Of a table that was read through before (see examiner.File), it reads the end only, and
// so it does of all where through is not set.
func (e Engine) Probe(dir string, closed, through bool) error {
	if err := removeUnused(dir); err != nil {
		return err
	}
	tables, err := e.probeManifest(dir, closed)
	if err != nil {
		return err
	}
	if err := probeTables(dir, tables, through); err != nil {
		return err
	}
	if e.NoSync {
		return nil // a power cut leaves holes in such a log: it is cut short
	}
	logs, err := durable.Files(dir, "*.mem")
	if err != nil {
		return err
	}
	for _, path := range logs {
		if err := probeLog(path); err != nil {
			return err
		}
	}
	return nil
}

// removeUnused deletes the files of Badger's value log. Values stand in the
// tables, and nothing is ever written there; Badger makes them anew.
func removeUnused(dir string) error {
	unused, err := durable.Files(dir, "*.vlog")
	if err != nil {
		return err
	}
	for _, path := range append(unused, filepath.Join(dir, "DISCARD")) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// probeTables reads the tables, several at a time, and notes which ones are whole.
func probeTables(dir string, tables map[uint64]badger.TableManifest, through bool) error {
	var (
		all    errgroup.Group
		before = examiner.Load(dir)

		mu   sync.Mutex // guards what follows
		errs []error
		read = map[uint64]examiner.Reading{}
	)
	probe := func(id uint64) error {
		stat, err := examiner.StatOf(tableFile(dir, id))
		if errors.Is(err, fs.ErrNotExist) {
			return damage.File(tableFile(dir, id), "it is missing")
		}
		if err != nil {
			return err
		}
		last, known := before[id]
		known = known && last.Stat == stat
		err = probeTable(dir, id, !known && through)
		if err == nil && (known || through) {
			if !known {
				last = examiner.Reading{Stat: stat, At: time.Now()}
			}
			mu.Lock()
			read[id] = last
			mu.Unlock()
		}
		return err
	}
	all.SetLimit(min(4, runtime.GOMAXPROCS(0)))
	for id := range tables {
		all.Go(func() error {
			if err := probe(id); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = all.Wait() // errs has all
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if through && !maps.EqualFunc(read, before, func(a, b examiner.Reading) bool { return a.Stat == b.Stat }) {
		return examiner.Save(dir, read)
	}
	return nil
}

// tableName is the name of a table's file, as Badger gives it.
func tableName(id uint64) string { return fmt.Sprintf("%06d.sst", id) }

// parseTableName is the inverse of tableName.
func parseTableName(name string) (id uint64, ok bool) {
	id, err := strconv.ParseUint(strings.TrimSuffix(name, ".sst"), 10, 64)
	return id, err == nil && tableName(id) == name
}

// tableFile is the file of a table.
func tableFile(dir string, id uint64) string { return filepath.Join(dir, tableName(id)) }
