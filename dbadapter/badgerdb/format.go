package badgerdb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/durable"
)

// Format is the number of the disk format that this program reads and writes.
const Format = 5

const (
	formatFile = "FORMAT"
	formatText = "syncd store, disk format "
	manifest   = "MANIFEST"
)

// checkFormat reads the stamp before anything else is read, and writes it into
// a new folder.
func checkFormat(dir string) error {
	path := filepath.Join(dir, formatFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, manifest)); err == nil {
			return fmt.Errorf("%w: it holds a database, but no %s file; was it written by another program?", dbadapter.ErrFormat, formatFile)
		}
		return durable.WriteFile(path, []byte(formatText+strconv.Itoa(Format)+"\n"))
	}
	if err != nil {
		return err
	}
	rest, ok := bytes.CutPrefix(b, []byte(formatText))
	number, err := strconv.Atoi(string(bytes.TrimSuffix(rest, []byte("\n"))))
	switch {
	case !ok || err != nil || number < 1:
		return fmt.Errorf("%w: its %s file says %q; this program reads format %d", dbadapter.ErrFormat, formatFile, b[:min(len(b), 64)], Format)
	case number > Format:
		return fmt.Errorf("%w: it was written by format %d, this program reads format %d; use a newer program", dbadapter.ErrFormat, number, Format)
	case number < Format:
		return fmt.Errorf("%w: it was written by format %d, this program reads format %d; export it with the older program and import it with this one", dbadapter.ErrFormat, number, Format)
	}
	return nil
}
