package kvstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
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

// The stamp of a folder is a line for people and programs. Its checksum tells damage from
// another program's stamp. Programs of the formats before summedFormat wrote none.
const (
	stampText    = "syncd store over %s, disk format %d"
	stampSum     = ", checksum %08x\n" // CRC-32C of what stands before it
	summedFormat = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Stamp is the content of the file FORMAT of a store over an engine.
func Stamp(engine string, number int) []byte {
	b := fmt.Appendf(nil, stampText, engine, number)
	return fmt.Appendf(b, stampSum, crc32.Checksum(b, castagnoli))
}

// PlainStamp is the stamp that programs of the formats before 8 wrote.
func PlainStamp(engine string, number int) []byte {
	return fmt.Appendf(nil, stampText+"\n", engine, number)
}

// readStamp reads which engine wrote the folder, and in what format.
func readStamp(dir string) (engine string, number int, err error) {
	path := filepath.Join(dir, formatFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return "", 0, err
	}
	engine, number, summed := parseStamp(b)
	if plain := number > 0 && number < summedFormat && bytes.Equal(b, PlainStamp(engine, number)); !summed && !plain {
		return "", 0, damage.File(path, "it says %q, which does not have the checksum of what was written", b[:min(len(b), 100)])
	}
	if number < 1 {
		return "", 0, fmt.Errorf("%w: its %s file says %q; this program reads format %d", dbadapter.ErrFormat, formatFile, b, Format)
	}
	return engine, number, nil
}

// parseStamp reads a stamp; summed: it has the checksum of what was written.
func parseStamp(b []byte) (engine string, number int, summed bool) {
	rest, ok := strings.CutPrefix(string(b), "syncd store over ")
	if !ok {
		return "", 0, false
	}
	engine, rest, _ = strings.Cut(rest, ", disk format ")
	digits, _, _ := strings.Cut(strings.TrimSuffix(rest, "\n"), ",")
	number, err := strconv.Atoi(digits)
	return engine, number, err == nil && bytes.Equal(b, Stamp(engine, number))
}
