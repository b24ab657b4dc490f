package pebblekv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
	"github.com/syncd-io/syncd/internal/durable"
)

// Probe reads the logs before Pebble opens them. Tables are in no need of it: each of
// their blocks has a checksum that is compared when it is read, and one that is
// missing, or has another length, is missed. But Pebble takes damage to a log for its
// end where it may be one:
//
//	the list of tables (MANIFEST)   cut short, and unlisted tables are deleted
//	the log of the last commits     cut short, within its last 32 KiB
//	which list is the newest        if that is lost, the folder is taken for a new one
//
// What was torn by a power cut is told from damage by what follows (log.go). After a
// clean close, closed, there is no torn record at all.
func (e Engine) Probe(dir string, closed, _ bool) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d, err := pebble.Peek(dir, vfs.Default)
	if err != nil {
		return named(err)
	}
	if !d.Exists {
		return noDatabase(dir)
	}
	if err := probeLog(d.ManifestFilename, form{}, closed); err != nil {
		return err
	}
	if e.NoSync {
		return nil // a power cut leaves holes in such a log: it is cut short
	}
	return probeLogs(dir, closed)
}

// probeLogs reads the logs of commits.
func probeLogs(dir string, closed bool) error {
	logs, err := durable.Files(dir, "*.log")
	if err != nil {
		return err
	}
	for _, path := range logs {
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), ".log"), 10, 64)
		if err != nil {
			continue // it is not Pebble's
		}
		if err := probeLog(path, form{commits: true, number: uint32(number)}, closed); err != nil {
			return err
		}
	}
	return nil
}

// noDatabase makes sure that a folder of which Pebble knows nothing is a new one.
func noDatabase(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext == ".sst" || ext == ".log" || strings.HasPrefix(f.Name(), "MANIFEST-") {
			return damage.File(filepath.Join(dir, "marker.manifest"), "it is missing, and there are tables or logs")
		}
	}
	return nil
}
