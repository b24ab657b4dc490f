package signature

import (
	"unsafe"

	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"
)

// coordinates are those of a point as curve25519-voi has them in memory, and exports no
// way to them. The point is x = X/Z, y = Y/Z, and Z is never 0.
type coordinates struct{ X, Y, Z, T element }

// readable reports whether points are in memory as coordinates says. On machines of 32
// bits, and perhaps in another version, they are not. Signatures are then made one by one.
func readable() bool {
	if unsafe.Sizeof(curve.EdwardsPoint{}) != unsafe.Sizeof(coordinates{}) {
		return false
	}
	var (
		points  [3]curve.EdwardsPoint
		encoded [len(points)]curve.CompressedEdwardsY
		same    = true
	)
	for i := range points {
		points[i].MulBasepoint(curve.ED25519_BASEPOINT_TABLE, scalar.NewFromUint64(1<<40+uint64(i)))
	}
	encodeAll(points[:], encoded[:])
	for i := range points {
		var one curve.CompressedEdwardsY
		same = same && encoded[i] == *one.SetEdwardsPoint(&points[i])
	}
	return same
}

// encodeAll sets the encodings of points, of which there is at least one. An encoding is
// y, and the sign of x, its lowest bit, in front of it.
func encodeAll(points []curve.EdwardsPoint, encoded []curve.CompressedEdwardsY) {
	at := func(i int) *coordinates { return (*coordinates)(unsafe.Pointer(&points[i])) }
	products := make([]element, len(points)) // of all Z up to each
	products[0] = at(0).Z
	for i := 1; i < len(points); i++ {
		products[i] = products[i-1].times(&at(i).Z)
	}
	rest := products[len(points)-1].inverse() // of the product of all Z up to i
	for i := len(points) - 1; i >= 0; i-- {
		p, inverse := at(i), rest
		if i > 0 {
			inverse = rest.times(&products[i-1])
			rest = rest.times(&p.Z)
		}
		x, y := inverse.times(&p.X), inverse.times(&p.Y)
		sign := x.bytes()[0] & 1
		encoded[i] = y.bytes()
		encoded[i][31] |= sign << 7
	}
}
