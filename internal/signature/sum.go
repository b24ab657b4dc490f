package signature

import (
	"encoding/binary"
	"math/bits"

	"github.com/oasisprotocol/curve25519-voi/curve/scalar"
)

// factor is a random number of 128 bits, its low half first.
type factor [2]uint64

// digits are those of an integer of up to 512 bits, its lowest 64 first.
type digits [8]uint64

// read sets an integer that is little-endian, of a multiple of 8 bytes.
func (n *digits) read(b []byte) {
	for i := 0; len(b) > 0; i, b = i+1, b[8:] {
		n[i] = binary.LittleEndian.Uint64(b)
	}
}

// sum is Σ of factors times integers, as an integer. It is reduced by the order of the
// base point once, and not for each product. To reduce takes several times as long as
// to multiply. It has room for 2^64 products of 640 bits.
type sum [11]uint64

// add adds the product of a factor and the lowest words of an integer.
func (s *sum) add(z factor, n *digits, words int) {
	for i, f := range z {
		var carry uint64
		for j, w := range n[:words] {
			high, low := bits.Mul64(f, w)
			var c uint64
			low, c = bits.Add64(low, carry, 0)
			high += c
			s[i+j], c = bits.Add64(s[i+j], low, 0)
			carry = high + c // f·w + carry + s[i+j] is below 2^128
		}
		for j := i + words; carry != 0; j++ {
			s[j], carry = bits.Add64(s[j], carry, 0)
		}
	}
}

// beyond is 2^512 by the order of the base point.
var beyond = func() *scalar.Scalar {
	var b [scalar.ScalarWideSize]byte
	b[32] = 1
	var half scalar.Scalar
	wide(&half, b[:])
	return half.Mul(&half, &half)
}()

// scalar is the sum by the order of the base point.
func (s *sum) scalar() *scalar.Scalar {
	var b [scalar.ScalarWideSize + 32]byte
	for i, w := range s {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	var low, high scalar.Scalar
	wide(&low, b[:scalar.ScalarWideSize])
	if _, err := high.SetBytesModOrder(b[scalar.ScalarWideSize:]); err != nil {
		panic(err) // it has the right length
	}
	return low.Add(&low, high.Mul(&high, beyond))
}
