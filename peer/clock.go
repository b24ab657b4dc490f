package peer

import (
	"crypto/rand"
	"encoding/binary"
)

// newIncarnation draws the 64 bits that tell this opening of a namespace from
// every other, also from one on a restored copy of its data, and from one
// before it was dropped and joined again.
func newIncarnation() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint64(b[:])
}
