package signature

import (
	"unsafe"

	"filippo.io/edwards25519/field"
	"github.com/oasisprotocol/curve25519-voi/curve"
	"github.com/oasisprotocol/curve25519-voi/curve/scalar"
)

// coordinates are those of a point as curve25519-voi has them in memory, and exports no
// way to them. The point is x = X/Z, y = Y/Z, and Z is never 0. Both libraries have an
// element of the field in five limbs of 51 bits.
type coordinates struct{ X, Y, Z, T field.Element }

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
	products := make([]field.Element, len(points)) // of all Z up to each
	products[0] = at(0).Z
	for i := 1; i < len(points); i++ {
		products[i].Multiply(&products[i-1], &at(i).Z)
	}
	var rest, inverse, x, y field.Element
	rest.Invert(&products[len(points)-1]) // of the product of all Z up to i
	for i := len(points) - 1; i >= 0; i-- {
		p := at(i)
		if inverse = rest; i > 0 {
			inverse.Multiply(&rest, &products[i-1])
			rest.Multiply(&rest, &p.Z)
		}
		x.Multiply(&inverse, &p.X)
		encoded[i] = curve.CompressedEdwardsY(y.Multiply(&inverse, &p.Y).Bytes())
		encoded[i][31] |= byte(x.IsNegative()) << 7
	}
}
