package kvstore

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

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
