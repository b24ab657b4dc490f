package kvstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Format is the number of the disk format that this program reads and writes.
const Format = 9

const (
	formatFile = "FORMAT"
	lockFile   = "SYNCD.LOCK"
)

// checkFormat reads the stamp before anything else is read, and writes it into
// a new folder.
func checkFormat(dir string, engine kv.Engine) error {
	name, number, err := readStamp(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := Unstamped(dir, engine); err != nil {
			return err
		}
		return durable.WriteFile(filepath.Join(dir, formatFile), Stamp(engine.Name(), Format))
	case err != nil:
		return err
	case name != engine.Name():
		return fmt.Errorf("%w: it is a store over %s, not over %s; open it as what it is, or move its records to the other kind", dbadapter.ErrFormat, name, engine.Name())
	case number > Format:
		return fmt.Errorf("%w: it was written by format %d, this program reads format %d; use a newer program", dbadapter.ErrFormat, number, Format)
	case number < Format:
		return fmt.Errorf("%w: it was written by format %d, this program reads format %d; export it with the older program and import it with this one", dbadapter.ErrFormat, number, Format)
	}
	return nil
}

// Unstamped is an error where a folder holds a database of the engine. It is ErrCorrupt and
// ErrFormat: what the format is, no repair can tell.
func Unstamped(dir string, engine kv.Engine) error {
	if !engine.Holds(dir) {
		return nil
	}
	return fmt.Errorf("%w, or has another format (%w): the file %s is missing, and a database over %s is there: put the file back from a copy; if this version of the program has written the store last, the file is the line: %s",
		dbadapter.ErrCorrupt, dbadapter.ErrFormat, filepath.Join(dir, formatFile), engine.Name(), bytes.TrimSpace(Stamp(engine.Name(), Format)))
}

// EngineOf returns the name of the engine that wrote the store in a folder, "" if
// there is no store.
func EngineOf(dir string) (string, error) {
	name, _, err := readStamp(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return name, err
}
