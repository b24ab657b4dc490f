package kvstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/kv"
	"github.com/syncd-io/syncd/internal/durable"
)

// Format is the number of the disk format that this program reads and writes.
const Format = 7

const (
	formatFile = "FORMAT"
	lockFile   = "SYNCD.LOCK"
	formatText = "syncd store over %s, disk format %d\n"
)

// checkFormat reads the stamp before anything else is read, and writes it into
// a new folder.
func checkFormat(dir string, engine kv.Engine) error {
	name, number, err := readStamp(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && engine.Holds(dir):
		return fmt.Errorf("%w: it holds a database, but no %s file; was it written by another program?", dbadapter.ErrFormat, formatFile)
	case errors.Is(err, os.ErrNotExist):
		return durable.WriteFile(filepath.Join(dir, formatFile), fmt.Appendf(nil, formatText, engine.Name(), Format))
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

// readStamp reads which engine wrote the folder, and in what format.
func readStamp(dir string) (engine string, number int, err error) {
	b, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return "", 0, err
	}
	rest, ok := strings.CutPrefix(string(b), "syncd store over ")
	engine, rest, _ = strings.Cut(rest, ", disk format ")
	number, err = strconv.Atoi(strings.TrimSuffix(rest, "\n"))
	if !ok || err != nil || number < 1 {
		return "", 0, fmt.Errorf("%w: its %s file says %q; this program reads format %d", dbadapter.ErrFormat, formatFile, b[:min(len(b), 64)], Format)
	}
	return engine, number, nil
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
