package examiner

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/syncd-io/syncd/internal/durable"
)

// File names the tables that were read through and found whole. Each has its size, the
// time of its last change, and when it was read: a table is written once. An engine
// that must read tables when it opens them need read only those that are not named, or
// that are not what they were. What goes bad on the disk by itself changes neither: the
// examiner finds it. Nothing is lost with this file.
const File = "READ"

// Stat tells a table from one that was changed since.
type Stat struct {
	Size, Changed int64
}

// StatOf is that of a file.
func StatOf(path string) (Stat, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Stat{}, err
	}
	return Stat{info.Size(), info.ModTime().UnixNano()}, nil
}

// The file has id(8) size(8) changed(8) read(8) for each table, the times in nanoseconds
// since 1970.
const noteEach = 4 * 8

func file(dir string) durable.File {
	return durable.File{Path: filepath.Join(dir, File), Kind: "tables-read"}
}

// Load reads the note in a folder. Where it is not there, or damaged, no table was read.
func Load(dir string) map[uint64]Reading {
	read := map[uint64]Reading{}
	b, owner, err := file(dir).Load()
	if err != nil || owner == "" || len(b)%noteEach != 0 { // programs before the envelope had another form
		return read
	}
	for ; len(b) > 0; b = b[noteEach:] {
		read[binary.BigEndian.Uint64(b)] = Reading{
			Stat: Stat{int64(binary.BigEndian.Uint64(b[8:])), int64(binary.BigEndian.Uint64(b[16:]))},
			At:   time.Unix(0, int64(binary.BigEndian.Uint64(b[24:]))),
		}
	}
	return read
}

// Save writes the note.
func Save(dir string, read map[uint64]Reading) error {
	b := make([]byte, 0, noteEach*len(read))
	for _, id := range slices.Sorted(maps.Keys(read)) {
		r := read[id]
		for _, n := range [...]uint64{id, uint64(r.Size), uint64(r.Changed), uint64(r.At.UnixNano())} {
			b = binary.BigEndian.AppendUint64(b, n)
		}
	}
	return file(dir).Save(b)
}
