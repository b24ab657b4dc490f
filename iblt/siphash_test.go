package iblt

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// sip is SipHash-c-d of any bytes, as its paper writes it.
func sip(c, d int, key sipKey, m []byte) uint64 {
	v := [4]uint64{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13)
			v[1] ^= v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16)
			v[3] ^= v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21)
			v[3] ^= v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17)
			v[1] ^= v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	length := byte(len(m))
	for m = append([]byte(nil), m...); len(m)%8 != 7; {
		m = append(m, 0)
	}
	for m = append(m, length); len(m) > 0; m = m[8:] {
		block := binary.LittleEndian.Uint64(m)
		v[3] ^= block
		rounds(c)
		v[0] ^= block
	}
	v[2] ^= 0xff
	rounds(d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// TestSipHash checks the twin with vectors of the authors (SipHash-2-4, key
// bytes 0 to 15, messages of bytes 0, 1, 2, …), and the hash with the twin.
func TestSipHash(t *testing.T) {
	key := sipKey{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	message := []byte{0, 1, 2, 3, 4, 5, 6, 7}
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462} {
		if got := sip(2, 4, key, message[:n]); got != want {
			t.Fatalf("SipHash-2-4 of %d bytes is %x, not %x", n, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range 1000 {
		key, x := sipKey{r.Uint64(), r.Uint64()}, r.Uint64()
		if got, want := key.sum(x), sip(1, 3, key, binary.LittleEndian.AppendUint64(nil, x)); got != want {
			t.Fatalf("SipHash-1-3 of %x is %x, not %x", x, got, want)
		}
	}
}
