package keyed

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// The values are part of the saved formats: a structure saved by one version
// must be read by the next.
func TestGoldenVectors(t *testing.T) {
	hi, lo := Bytes128([]byte("key"), 1)
	nhi, nlo := Uint128(42, 1)
	for _, v := range []struct {
		name      string
		got, want uint64
	}{
		{"Bytes of nothing", Bytes(nil, 0), 0x2d06800538d394c2}, // XXH3's published vector
		{"Bytes", Bytes([]byte("key"), 1), 0x0c37033bf42105f2},
		{"Bytes128 high", hi, 0x4412ba79804eb8a0},
		{"Bytes128 low", lo, 0x0c37033bf42105f2},
		{"Uint64", Uint64(42, 1), 0x67572691c5abfc9c},
		{"Uint128 high", nhi, 0x6faec4352953411c},
		{"Uint128 low", nlo, 0x24ab790156d5217d},
	} {
		if v.got != v.want {
			t.Errorf("%s = %#x, want %#x", v.name, v.got, v.want)
		}
	}
}

func TestNumbersAreTheirBytes(t *testing.T) {
	for i := range uint64(1000) {
		n, seed := i*0x9e3779b97f4a7c15, i%7
		b := binary.LittleEndian.AppendUint64(nil, n)
		if got, want := Uint64(n, seed), Bytes(b, seed); got != want {
			t.Fatalf("Uint64(%d, %d) = %#x, Bytes says %#x", n, seed, got, want)
		}
		gh, gl := Uint128(n, seed)
		wh, wl := Bytes128(b, seed)
		if gh != wh || gl != wl {
			t.Fatalf("Uint128(%d, %d) = %#x %#x, Bytes128 says %#x %#x", n, seed, gh, gl, wh, wl)
		}
	}
}

// One bit of the key or of the seed flips about half of the result: 64,000
// results of 64 bits each, so the mean lies within 32 ± 0.1 (six standard
// deviations) unless the seed or a byte is ignored.
func TestEachBitCounts(t *testing.T) {
	var flipped, pairs int
	for i := range uint64(500) {
		base := Uint64(i, i)
		for b := range 64 {
			flipped += bits.OnesCount64(base ^ Uint64(i^1<<b, i))
			flipped += bits.OnesCount64(base ^ Uint64(i, i^1<<b))
			pairs += 2
		}
	}
	if mean := float64(flipped) / float64(pairs); mean < 31.9 || mean > 32.1 {
		t.Errorf("a flipped bit flips %.3f bits of the result, want 32", mean)
	}
}
