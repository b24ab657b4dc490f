package pebblekv

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// boundedFS reads the large blocks of tables with a look at their checksums. Where one
// does not hold Pebble flips up to 40 KiB of its bytes, bit by bit, each time with a
// checksum of the whole, only to tell in its error which bit it was: milliseconds for a
// usual block of 4 KiB, most of a minute for a value of 700 KB, in each read that meets
// it. A block that is found here is not looked at there.
type boundedFS struct{ vfs.FS }

// boundedFrom is the size from which on blocks are looked at: Pebble's search of a smaller
// one takes a third of a second at most.
const boundedFrom = 32 << 10

// Open implements vfs.FS.
func (fs boundedFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, o...)
	if err != nil || filepath.Ext(name) != ".sst" {
		return f, err
	}
	return boundedFile{f, filepath.Base(name)}, nil
}

type boundedFile struct {
	vfs.File
	name string
}

// ReadAt implements io.ReaderAt. A read that is so large is one of a block:
//
//	data kind(1) crc(4)
func (f boundedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if n != len(p) || n < boundedFrom {
		return n, err
	}
	if sum := masked(crc32.Checksum(p[:n-4], castagnoli)); sum != binary.LittleEndian.Uint32(p[n-4:]) {
		return 0, fmt.Errorf("%w: the block of %d bytes at %d of %s: its checksum does not hold", pebble.ErrCorruption, n, off, f.name)
	}
	return n, err
}

// masked is how a CRC is written: one of data that has CRCs in it would be a weak one.
func masked(sum uint32) uint32 { return (sum>>15 | sum<<17) + 0xa282ead8 }
