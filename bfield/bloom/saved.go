package bloom

import (
	"errors"

	"github.com/syncd-io/syncd/bfield/internal/saved"
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
var format = saved.Format{Magic: "BLOM\x01", Err: ErrFormat}

// ErrFormat is wrapped by the errors of UnmarshalBinary.
var ErrFormat = errors.New("bloom: not a saved filter")

// maxKeys is more than can be inserted.
const maxKeys = 1 << 62

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (f *Filter) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, len(format.Magic)+3+8*(2+f.size)+saved.SumSize)
	b = append(append(b, format.Magic...), byte(f.kind), byte(f.hashes), 0)
	b = saved.Append(b, f.seed, uint64(f.keys))
	return saved.Sealed(saved.Append(b, f.words...)), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else with an
// error that wraps ErrFormat, without more memory than data has. It keeps no part of data.
func (f *Filter) UnmarshalBinary(data []byte) error { return saved.Unmarshal(f, data, parse) }

func parse(data []byte) (*Filter, error) {
	in := format.Read(data)
	f := &Filter{kind: Kind(in.Byte()), hashes: int(in.Byte())}
	zero := in.Byte()
	f.seed = in.Word()
	keys := in.Word()
	f.words = in.Words(in.Left() / 8)
	f.keys, f.size = int(keys), len(f.words)
	switch {
	case f.kind >= kinds:
		in.Refuse("kind %d", f.kind)
	case f.hashes < 1 || f.hashes > maxHashes || zero != 0:
		in.Refuse("%d hashes, and %d behind", f.hashes, zero)
	case keys > maxKeys || f.size == 0:
		in.Refuse("%d keys in %d words", keys, f.size)
	case f.kind == Blocked && f.size%blockWords != 0:
		in.Refuse("%d words are no whole blocks", f.size)
	}
	return f, in.End()
}
