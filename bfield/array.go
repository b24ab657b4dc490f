package bfield

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// array is one bit array of the cascade. Bit i is bit i mod 8 of byte i/8. So
// eight bytes from byte i/8 on, read as a little-endian number and shifted
// right by i mod 8, begin with bit i. One load gives 57 bits of a window.
type array struct {
	bytes  []byte // the bits, padded
	bits   uint64 // m·κ
	places uint64 // m·κ − ν + 1: windows begin at 0 to places−1
	keys   uint64 // inserted
}

// padding lets the load at the last place stay inside. A byte less would do, but it is
// part of the format.
const padding = 9

// bytesFor returns the length of the bytes of an array.
func bytesFor(bits uint64) uint64 { return (bits+7)/8 + padding }

func newArray(bits uint64, nu int) array {
	return array{bytes: make([]byte, bytesFor(bits)), bits: bits, places: bits - uint64(nu) + 1}
}

// set puts a code at a place.
func (a *array) set(place, code uint64) {
	b := a.bytes[place>>3:]
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)|code<<(place&7))
}

// insert puts a code at all places of a key.
func (a *array) insert(k key, code uint64, hashes int) {
	for i := range hashes {
		a.set(k.place(i, a.places), code)
	}
}

// common returns the AND of a key's windows and the bits of acc. It may stop
// as soon as less than kappa ones are left.
func (a *array) common(k key, acc uint64, p *Plan) uint64 {
	// The ones are counted once, when few are left of a stranger's. A branch that
	// goes either way costs as much as three windows.
	acc = and(acc, a.bytes, a.places, k, multipliers[:p.unasked])
	if fewer(acc, p.Kappa) {
		return acc
	}
	return and(acc, a.bytes, a.places, k, multipliers[p.unasked:p.Hashes])
}

// and is the loop of look-ups. It is a function of its own so that all of it stays
// in registers. It loads without bounds checks, which would take a seventh of a
// look-up's time. That is safe: a place is below places, the array's bits less ν
// plus one, and padding follows the bits. Only newArray and parse make an array,
// and both ensure this.
//
//go:noinline
func and(acc uint64, array []byte, places uint64, k key, multipliers []uint64) uint64 {
	first := unsafe.Pointer(unsafe.SliceData(array))
	for _, m := range multipliers {
		at, _ := bits.Mul64(k.b+k.a*m, places)
		acc &= binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(first, at>>3))[:]) >> (at & 7)
	}
	return acc
}
