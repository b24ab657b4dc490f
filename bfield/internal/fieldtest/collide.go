package fieldtest

import "encoding/binary"

// Colliding returns two keys with one 64-bit hash under a seed. XXH3 takes 16 bytes as two
// words, XORed with numbers of its own. It adds the first one reversed, the second one and
// their product. Where one of the words becomes 0, only the other one is left.
func Colliding(seed uint64) (a, b []byte) {
	// Bytes 24 to 55 of XXH3's secret, as words.
	const s24, s32, s40, s48 = 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8
	first, second := uint64(s24^s32)+seed, uint64(s40^s48)-seed
	const left = 0x0102030405060708
	key := func(x, y uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, x^first), y^second)
	}
	return key(0, left), key(0x0807060504030201, 0)
}
