package signature

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oasisprotocol/curve25519-voi/curve/scalar"
)

// A sum of products is what big integers say, also where all bits are set.
func TestSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		words := []int{4, 8}[round%2]
		var s sum
		want := new(big.Int)
		for range 1 + random.IntN(3000) {
			var z factor
			var n digits
			b := make([]byte, 8*words)
			for i := range z {
				z[i] = random.Uint64()
			}
			for i := range words {
				binary.LittleEndian.PutUint64(b[8*i:], random.Uint64())
			}
			if round < 4 {
				z = factor{^uint64(0), ^uint64(0)}
				b = slices.Repeat([]byte{0xff}, len(b))
			}
			n.read(b)
			s.add(z, &n, words)
			f := new(big.Int).SetUint64(z[1])
			f.Lsh(f, 64).Add(f, new(big.Int).SetUint64(z[0]))
			want.Add(want, f.Mul(f, integer(b)))
		}
		var got [scalar.ScalarSize]byte
		if err := s.scalar().ToBytes(got[:]); err != nil {
			t.Fatal(err)
		}
		if want.Mod(want, order); integer(got[:]).Cmp(want) != 0 {
			t.Fatalf("round %d: %x, want %x", round, got, want)
		}
	}
}
