package bodies

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Pointer says where the value of a record is, and what it is.
type Pointer struct {
	Shard placement.Shard
	Salt  [16]byte            // of the body's key, drawn anew for each write
	Size  uint32              // of the value in bytes
	Sent  dbadapter.Timestamp // when the writer sent the body
	Sum   [32]byte            // SHA-256 of the value
}

// The first byte of a record's value by placement writer.
const (
	inline  = 0 // the value follows
	pointer = 1 // a pointer follows
)

const pointerSize = 1 + 2 + 16 + 4 + 8 + 32

// ErrValue is returned for what is no value of placement writer.
var ErrValue = errors.New("neither a value nor a pointer to one")

// ErrLost is returned for a value that stayed with its writer, and that none of the members that may
// hold it has; all of them have answered.
var ErrLost = errors.New("lost: no host has the value any more")

// Inline is the value of a record that has its value in itself.
func Inline(value []byte) []byte { return append([]byte{inline}, value...) }

// AppendBinary is the value of a record that points to a body.
func (p *Pointer) AppendBinary(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(append(b, pointer), uint16(p.Shard))
	b = binary.BigEndian.AppendUint32(append(b, p.Salt[:]...), p.Size)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Sent))
	return append(b, p.Sum[:]...)
}

// Read reads the value of a record: the value itself, or a pointer. It keeps b's memory. ErrValue.
func Read(b []byte) (value []byte, p *Pointer, err error) {
	switch {
	case len(b) > 0 && b[0] == inline:
		return b[1:], nil, nil
	case len(b) != pointerSize || b[0] != pointer:
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrValue, len(b))
	}
	p = &Pointer{
		Shard: placement.Shard(binary.BigEndian.Uint16(b[1:])), Salt: [16]byte(b[3:]), Size: binary.BigEndian.Uint32(b[19:]),
		Sent: dbadapter.Timestamp(binary.BigEndian.Uint64(b[23:])), Sum: [32]byte(b[31:]),
	}
	return nil, p, nil
}

// Of is where the value of a record is. It is nil where the record holds its value, or has none.
func Of(r *dbadapter.Record) *Pointer {
	if r == nil || r.Deleted {
		return nil
	}
	_, p, err := Read(r.Value)
	if err != nil {
		return nil
	}
	return p
}

// Size is the size of the value that a record's value stands for; 0 of none.
func Size(b []byte) int {
	switch value, p, err := Read(b); {
	case err != nil:
		return 0
	case p != nil:
		return int(p.Size)
	default:
		return len(value)
	}
}

// Proves reports whether a value is the one that the pointer names.
func (p *Pointer) Proves(value []byte) bool {
	return len(value) == int(p.Size) && sha256.Sum256(value) == p.Sum
}

// Keys of bodies and hints. Users' keys do not begin so by placement writer.
const (
	reserved = 0
	body     = 'b'
	hint     = 'h'

	// KeyRoom is by how much the key of a body is longer than the key of its record.
	KeyRoom = 2 + 2 + 16
)

// Key is the key of the body of a key's value.
func (p *Pointer) Key(key []byte) []byte {
	return append(append(Prefix(p.Shard), p.Salt[:]...), key...)
}

// Prefix is that of the keys of bodies in a shard.
func Prefix(shard placement.Shard) []byte {
	return binary.BigEndian.AppendUint16([]byte{reserved, body}, uint16(shard))
}

// HintPrefix is that of the keys of hints in a shard.
func HintPrefix(shard placement.Shard) []byte { return HintKey(shard, nil) }

// Names is what the key of a body names: its shard and salt, and the key of its record.
func Names(key []byte) (p Pointer, of []byte, is bool) {
	shard, is := Shard(key)
	if !is || key[1] != body {
		return Pointer{}, nil, false
	}
	return Pointer{Shard: shard, Salt: [16]byte(key[4:])}, key[KeyRoom:], true
}

// HintKey is the key of the hint in a shard.
func HintKey(shard placement.Shard, key []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{reserved, hint}, uint16(shard)), key...)
}

// Reserved reports whether users' keys may not be so.
func Reserved(key []byte) bool { return len(key) > 0 && key[0] == reserved }

// Last is behind all reserved keys, and before all others: a scan of users' keys begins behind it.
func Last() []byte {
	return append([]byte{reserved}, bytes.Repeat([]byte{0xff}, dbadapter.MaxKey-1)...)
}

// Shard is the shard that a reserved key names.
func Shard(key []byte) (placement.Shard, bool) {
	if !Reserved(key) || len(key) < 5 || key[1] != body && key[1] != hint || key[1] == body && len(key) <= KeyRoom {
		return 0, false
	}
	return placement.Shard(binary.BigEndian.Uint16(key[2:])), true
}
