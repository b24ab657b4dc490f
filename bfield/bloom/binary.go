package bloom

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"
)

// The saved format. All numbers are little-endian.
//
//	4 bytes  "BLOM"
//	1        version: 1
//	1        kind: 0 blocked, 1 classic
//	1        hashes: 1 to 32
//	1        0
//	8        seed
//	8        keys
//	8 each   words
//	8        XXH3 of all that is before
const (
	magic      = "BLOM"
	version    = 1
	headerSize = 24
	sumSize    = 8
)

// ErrFormat is wrapped by the errors of UnmarshalBinary and Open.
var ErrFormat = errors.New("not a saved Bloom filter")

func formatError(format string, args ...any) error {
	return fmt.Errorf("bloom: %w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (f *Filter) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, headerSize+8*f.size+sumSize)
	b = append(b, magic...)
	b = append(b, version, byte(f.kind), byte(f.hashes), 0)
	b = binary.LittleEndian.AppendUint64(b, f.seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(f.keys))
	for _, w := range f.words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b)), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else with an
// error that wraps ErrFormat, without more memory than data has. It keeps no part of data.
func (f *Filter) UnmarshalBinary(data []byte) error {
	if len(data) < headerSize+sumSize || len(data)%8 != 0 {
		return formatError("it has %d bytes", len(data))
	}
	if string(data[:4]) != magic {
		return formatError("it begins with %q", data[:4])
	}
	body, sum := data[:len(data)-sumSize], data[len(data)-sumSize:]
	if xxh3.Hash(body) != binary.LittleEndian.Uint64(sum) {
		return formatError("the checksum is of other bytes")
	}
	read := Filter{
		kind: Kind(data[5]), hashes: int(data[6]),
		seed: binary.LittleEndian.Uint64(data[8:]),
		size: (len(body) - headerSize) / 8,
	}
	keys := binary.LittleEndian.Uint64(data[16:])
	switch {
	case data[4] != version:
		return formatError("version %d", data[4])
	case read.kind >= kinds:
		return formatError("kind %d", read.kind)
	case read.hashes < 1 || read.hashes > maxHashes || data[7] != 0:
		return formatError("%d hashes, and %d behind", read.hashes, data[7])
	case keys > maxKeys || read.size == 0:
		return formatError("%d keys in %d words", keys, read.size)
	case read.kind == Blocked && read.size%blockWords != 0:
		return formatError("%d words are no whole blocks", read.size)
	}
	read.keys = int(keys)
	read.words = make([]uint64, read.size)
	for i := range read.words {
		read.words[i] = binary.LittleEndian.Uint64(body[headerSize+8*i:])
	}
	*f = read
	return nil
}

// maxKeys is more than can be inserted.
const maxKeys = 1 << 62
