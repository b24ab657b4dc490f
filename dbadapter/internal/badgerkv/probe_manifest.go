package badgerkv

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// castagnoli is the polynomial of all of Badger's CRC-32 checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// probeManifest reads the list of tables, a log of changes:
//
//	"Bdgr" version(4)  { length(4) crc(4) change }…
//
// A power cut may leave half a change at its end, and Badger cuts it off. But
// damage to a length looks the same, and what Badger cuts off then are whole
// changes. These are told apart: a change is written only after the one before
// it is on the disk, and after a clean close there is no half one.
func (e Engine) probeManifest(dir string, closed bool) (tables map[uint64]badger.TableManifest, err error) {
	path := filepath.Join(dir, manifest)
	defer damage.Recovered(path, &err)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, noTables(dir)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, end, err := badger.ReplayManifestFile(f, 0, e.options(dir, new(db)))
	if err != nil {
		return nil, damage.File(path, "%v", err)
	}
	rest := b[end:]
	if len(rest) == 0 {
		return list.Tables, nil
	}
	if closed {
		return nil, damage.File(path, "it ends in the midst of a change, though the store was closed in order")
	}
	for at := 0; at+8 < len(rest); at++ {
		sum := binary.BigEndian.Uint32(rest[at+4:])
		n := uint64(binary.BigEndian.Uint32(rest[at:]))
		if at == 0 { // the change itself, whatever its length says
			n = uint64(len(rest) - 8)
		}
		if n > 0 && n <= uint64(len(rest)-at-8) && crc32.Checksum(rest[at+8:at+8+int(n)], castagnoli) == sum {
			return nil, damage.File(path, "a change at %d is damaged, and others follow it", end)
		}
	}
	return list.Tables, nil
}

// noTables makes sure that a folder without a list is one without tables.
func noTables(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, ok := parseTableName(f.Name()); ok {
			return damage.File(filepath.Join(dir, manifest), "it is missing, and there are tables")
		}
	}
	return nil
}
