package ribbon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// The saved format. All numbers are little-endian.
//
//	4 bytes  "RIBN"
//	1        version: 1
//	1        kind: 1 or 2 a filter of the Kind one below, 3 a Retrieval, 4 a Map;
//	         0 was a homogeneous filter, which a standard one beats
//	1        value bits (0 for a filter)
//	1        fingerprint bits (0 for a Retrieval)
//	8        seed
//	8        keys
//	then the table, or the two of a Map whose entries are wider than 64 bits:
//	  8      levels: 0 if there are no keys
//	  for each level:
//	    8    buckets
//	    8 each  codes if this level bumps, the numbers of its salts if not
//	    8 each  words
//	8        XXH3 of all that is before
//
// The lengths of codes and words follow from buckets and the bits. So a file
// has one form, and nothing is allocated that the data does not fill.
const (
	magic      = "RIBN"
	version    = 1
	headerSize = 24
	sumSize    = 8

	kindRetrieval = byte(kinds) + 1
	kindMap       = byte(kinds) + 2
)

// ErrFormat is wrapped by the errors of UnmarshalBinary.
var ErrFormat = errors.New("not a saved ribbon")

func formatError(format string, args ...any) error {
	return fmt.Errorf("ribbon: %w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// header is what comes before the tables.
type header struct {
	kind                 byte
	values, fingerprints int
	seed                 uint64
	keys                 int
}

func marshal(h header, tables ...*table) []byte {
	size := headerSize + sumSize
	for _, t := range tables {
		size += 8
		for _, l := range t.levels {
			size += 8 * (1 + len(l.codes) + len(l.salts) + len(l.words))
		}
	}
	b := make([]byte, 0, size)
	b = append(b, magic...)
	b = append(b, version, h.kind, byte(h.values), byte(h.fingerprints))
	b = binary.LittleEndian.AppendUint64(b, h.seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.keys))
	for _, t := range tables {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(t.levels)))
		for _, l := range t.levels {
			b = binary.LittleEndian.AppendUint64(b, l.buckets)
			for _, w := range l.codes {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
			for _, s := range l.salts {
				b = binary.LittleEndian.AppendUint64(b, s.number)
			}
			for _, w := range l.words {
				b = binary.LittleEndian.AppendUint64(b, w)
			}
		}
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

// parseHeader checks everything but the tables, and returns their bytes.
func parseHeader(data []byte) (h header, tables []byte, err error) {
	if len(data) < headerSize+sumSize {
		return h, nil, formatError("%d bytes are too few", len(data))
	}
	if string(data[:4]) != magic {
		return h, nil, formatError("it begins with %q", data[:4])
	}
	if data[4] != version {
		return h, nil, formatError("version %d is unknown; this is version %d", data[4], version)
	}
	body, sum := data[:len(data)-sumSize], binary.LittleEndian.Uint64(data[len(data)-sumSize:])
	if xxh3.Hash(body) != sum {
		return h, nil, formatError("the checksum does not match")
	}
	h = header{kind: data[5], values: int(data[6]), fingerprints: int(data[7]), seed: binary.LittleEndian.Uint64(data[8:])}
	if h.kind == 0 {
		return h, nil, formatError("a homogeneous filter is no longer read: build a standard one")
	}
	if h.kind > kindMap {
		return h, nil, formatError("kind %d is unknown", h.kind)
	}
	if hasValues := h.kind >= kindRetrieval; hasValues != (h.values > 0) || h.values > 64 {
		return h, nil, formatError("kind %d with values of %d bits", h.kind, h.values)
	}
	if hasFingerprints := h.kind != kindRetrieval; hasFingerprints != (h.fingerprints > 0) || h.fingerprints > maxFingerprint {
		return h, nil, formatError("kind %d with fingerprints of %d bits", h.kind, h.fingerprints)
	}
	keys := binary.LittleEndian.Uint64(data[16:])
	if keys > 1<<62 {
		return h, nil, formatError("%d keys", keys)
	}
	h.keys = int(keys)
	return h, body[headerSize:], nil
}

// parseTable reads a table of the given widths, and returns the bytes after it.
func parseTable(h header, values, fingerprints int, data []byte, words wordsOf) (*table, []byte, error) {
	t := &table{values: values, fingerprints: fingerprints}
	if len(data) < 8 {
		return nil, nil, formatError("it ends before a table")
	}
	levels := binary.LittleEndian.Uint64(data)
	data = data[8:]
	single := h.kind == byte(Standard)+1
	if (levels == 0) != (h.keys == 0) || levels > maxLevels || single && levels > 1 {
		return nil, nil, formatError("%d levels for %d keys", levels, h.keys)
	}
	for i := range levels {
		l, rest, err := parseLevel(data, uint64(t.width()), i+1 < levels, words)
		if err != nil {
			return nil, nil, fmt.Errorf("%w (level %d)", err, i)
		}
		t.levels, data = append(t.levels, l), rest
	}
	return t, data, nil
}

func parseLevel(data []byte, width uint64, bumps bool, of wordsOf) (l level, rest []byte, err error) {
	if len(data) < 8 {
		return l, nil, formatError("it ends before a level")
	}
	l.buckets, data = binary.LittleEndian.Uint64(data), data[8:]
	left := uint64(len(data)) / 8
	// A bucket has two words a column or more; this also keeps the products
	// below from overflowing.
	if l.buckets == 0 || l.buckets > left {
		return l, nil, formatError("%d buckets in %d bytes", l.buckets, len(data))
	}
	words, before := l.slots()/64*width, uint64(l.shards())
	if bumps {
		before = codeWords(l.buckets)
	}
	if before+words > left {
		return l, nil, formatError("%d buckets in %d bytes", l.buckets, len(data))
	}
	numbers, data := of(data[:8*before]), data[8*before:]
	l.words, data = of(data[:8*words]), data[8*words:]
	if !bumps {
		l.salts = l.newSalts()
		for i, n := range numbers {
			if n > maxSalt {
				return l, nil, formatError("salt %d", n)
			}
			l.salts[i].number = n
		}
		return l, data, nil
	}
	l.codes = numbers
	if used := l.buckets % codesPerWord * 2; used != 0 && l.codes[before-1]>>used != 0 {
		return l, nil, formatError("codes of buckets that do not exist")
	}
	return l, data, nil
}

// wordsOf returns the words that bytes are.
type wordsOf func(data []byte) []uint64

func copiedWords(data []byte) []uint64 {
	words := make([]uint64, len(data)/8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
	return words
}

// wordsInPlace are the bytes themselves, where the processor has their order
// and they lie as words must.
func wordsInPlace(data []byte) []uint64 {
	first := unsafe.Pointer(unsafe.SliceData(data))
	if len(data) == 0 || binary.NativeEndian.Uint16([]byte{1, 0}) != 1 || uintptr(first)%8 != 0 {
		return copiedWords(data)
	}
	return unsafe.Slice((*uint64)(first), len(data)/8)
}
