package keyed

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// The values are part of the saved formats: a structure saved by one version
// must be read by the next.
func TestGoldenVectors(t *testing.T) {
	hi, lo := Bytes([]byte("key")).Hash128(1)
	nhi, nlo := Number(42).Hash128(1)
	for _, v := range []struct {
		name      string
		got, want uint64
	}{
		{"Bytes of nothing", Bytes(nil).Hash(0), 0x2d06800538d394c2}, // XXH3's published vector
		{"Bytes", Bytes([]byte("key")).Hash(1), 0x0c37033bf42105f2},
		{"Bytes, high of 128", hi, 0x4412ba79804eb8a0},
		{"Bytes, low of 128", lo, 0x0c37033bf42105f2},
		{"Number", Number(42).Hash(1), 0x67572691c5abfc9c},
		{"Number, high of 128", nhi, 0x6faec4352953411c},
		{"Number, low of 128", nlo, 0x24ab790156d5217d},
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
		if got, want := Number(n).Hash(seed), Bytes(b).Hash(seed); got != want {
			t.Fatalf("number %d under seed %d is %#x, its bytes %#x", n, seed, got, want)
		}
		gh, gl := Number(n).Hash128(seed)
		wh, wl := Bytes(b).Hash128(seed)
		if gh != wh || gl != wl {
			t.Fatalf("number %d under seed %d is %#x %#x, its bytes %#x %#x", n, seed, gh, gl, wh, wl)
		}
	}
}

// One bit of the key or of the seed flips about half of the result: 64,000
// results of 64 bits each, so the mean lies within 32 ± 0.1 (six standard
// deviations) unless the seed or a byte is ignored.
func TestEachBitCounts(t *testing.T) {
	var flipped, pairs int
	for i := range uint64(500) {
		base := Number(i).Hash(i)
		for b := range 64 {
			flipped += bits.OnesCount64(base ^ Number(i^1<<b).Hash(i))
			flipped += bits.OnesCount64(base ^ Number(i).Hash(i^1<<b))
			pairs += 2
		}
	}
	if mean := float64(flipped) / float64(pairs); mean < 31.9 || mean > 32.1 {
		t.Errorf("a flipped bit flips %.3f bits of the result, want 32", mean)
	}
}

// A list has the keys that its slice holds, in its order; what is empty is not nothing.
func TestLists(t *testing.T) {
	of := [][]byte{nil, {}, []byte("a"), {0, 0, 0, 0, 0, 0, 0, 0}}
	for name, c := range map[string]struct {
		list List
		want []Key
	}{
		"byte strings": {ByteStrings(of), []Key{Bytes(of[0]), Bytes(of[1]), Bytes(of[2]), Bytes(of[3])}},
		"numbers":      {Numbers([]uint64{0, 7, 7}), []Key{Number(0), Number(7), {number: 7}}},
		"nothing":      {List{}, nil},
	} {
		check := func(what string, got List, want []Key) {
			if got.Len() != len(want) {
				t.Fatalf("%s, %s: %d keys, want %d", name, what, got.Len(), len(want))
			}
			for i, k := range want {
				if !got.At(i).Equal(k) || got.At(i).Hash(3) != k.Hash(3) {
					t.Errorf("%s, %s: key %d is %v, want %v", name, what, i, got.At(i), k)
				}
			}
		}
		n := len(c.want)
		check("all", c.list, c.want)
		check("without the first", c.list.Slice(min(1, n), n), c.want[min(1, n):])
		var even []Key
		for i := 0; i < n; i += 2 {
			even = append(even, c.want[i])
		}
		check("each second", c.list.Choose(func(i int) bool { return i%2 == 0 }), even)
	}
	if !Bytes(nil).Equal(Bytes([]byte{})) || Bytes(nil).Equal(Number(0)) || Bytes(of[2]).Equal(Bytes(of[3])) {
		t.Error("nil, empty, and the number 0 are taken for each other")
	}
}
