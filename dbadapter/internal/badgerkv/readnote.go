package badgerkv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/syncd-io/syncd/internal/durable"
)

// The file READ names the tables that were read through and found whole, each with
// its size and the time of its last change: a table is written once. When the store
// is opened next, only those are read that are not named, or that are not what they
// were. What goes bad on the disk by itself changes neither: the examiner finds it.
// Nothing is lost with this file.
const readFile = "READ"

// tableStat tells a table from one that was changed since.
type tableStat struct {
	size, changed int64
}

func statTable(dir string, id uint64) (tableStat, error) {
	info, err := os.Stat(tableFile(dir, id))
	if err != nil {
		return tableStat{}, err
	}
	return tableStat{info.Size(), info.ModTime().UnixNano()}, nil
}

// The file is a CRC-32C of what follows it, and id(8) size(8) changed(8) for each
// table.
const (
	readSum  = 4
	readEach = 3 * 8
)

// loadRead reads the note. Where it is not there, or damaged, no table has been read.
func loadRead(dir string) map[uint64]tableStat {
	read := map[uint64]tableStat{}
	b, err := os.ReadFile(filepath.Join(dir, readFile))
	if err != nil {
		return read
	}
	if len(b)%readEach != readSum || crc32.Checksum(b[readSum:], castagnoli) != binary.BigEndian.Uint32(b) {
		return read
	}
	body := b[readSum:]
	for ; len(body) > 0; body = body[readEach:] {
		read[binary.BigEndian.Uint64(body)] = tableStat{int64(binary.BigEndian.Uint64(body[8:])), int64(binary.BigEndian.Uint64(body[16:]))}
	}
	return read
}

func saveRead(dir string, read map[uint64]tableStat) error {
	ids := make([]uint64, 0, len(read))
	for id := range read {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	b := make([]byte, readSum, readSum+readEach*len(ids))
	for _, id := range ids {
		b = binary.BigEndian.AppendUint64(b, id)
		b = binary.BigEndian.AppendUint64(b, uint64(read[id].size))
		b = binary.BigEndian.AppendUint64(b, uint64(read[id].changed))
	}
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[readSum:], castagnoli))
	return durable.WriteFile(filepath.Join(dir, readFile), b)
}

// isGone reports that a table is not there any more, as after a compaction.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
