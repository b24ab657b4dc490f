package keyset

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/internal/seeded"
)

// uniform returns n different hashes, ascending.
func uniform(r *rand.Rand, n int) []uint64 {
	hashes := make([]uint64, 0, n)
	for len(hashes) < n {
		for len(hashes) < n {
			hashes = append(hashes, r.Uint64())
		}
		slices.Sort(hashes)
		hashes = slices.Compact(hashes)
	}
	return hashes
}

// blocks writes a set in blocks of a random number of hashes.
func blocks(t testing.TB, r *rand.Rand, hashes []uint64) (all [][]byte) {
	t.Helper()
	var at Cursor
	for last := false; !last; {
		n := min(len(hashes), 1+r.IntN(MaxKeys))
		last = n == len(hashes) && r.IntN(2) == 0 || n == 0
		block, err := Append(nil, at, hashes[:n], last)
		if err != nil {
			t.Fatal(err)
		}
		if length, err := Length(block[:8]); err != nil || length != len(block) || length > MaxBytes {
			t.Fatalf("%d bytes, told %d: %v", len(block), length, err)
		}
		all = append(all, block)
		if n > 0 {
			at = Cursor{Begun: true, After: hashes[n-1]}
		}
		hashes = hashes[n:]
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	r := seeded.New(t)
	sets := map[string][]uint64{
		"nothing": nil, "zero": {0}, "greatest": {math.MaxUint64}, "both ends": {0, math.MaxUint64},
		"few": uniform(r, 10), "many": uniform(r, 30_000), "one block": uniform(r, MaxKeys),
		"first gap large": {1 << 63, 1<<63 + 1, 1<<63 + 2},
	}
	var dense, ends []uint64
	for i := range uint64(10_000) {
		dense = append(dense, 1<<40+i+i/100)
		ends = append(ends, i-5000)
	}
	slices.Sort(ends)
	sets["dense"], sets["at the ends"] = dense, ends
	for name, want := range sets {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			var at Cursor
			for _, block := range blocks(t, r, want) {
				if at.Done {
					t.Fatal("a block behind the end")
				}
				var err error
				if got, at, err = Decode(got, at, block); err != nil {
					t.Fatal(err)
				}
			}
			if !at.Done || !slices.Equal(got, want) {
				t.Fatalf("%d hashes, want %d", len(got), len(want))
			}
		})
	}
}

// What the documentation says of the size holds for sets from small to large.
func TestSize(t *testing.T) {
	r := seeded.New(t)
	for _, n := range []int{1000, 4096, 39_063, 200_000} {
		bytes := 0
		hashes := uniform(r, n)
		var at Cursor
		for from := 0; from < n; from += MaxKeys {
			end := min(from+MaxKeys, n)
			block, err := Append(nil, at, hashes[from:end], end == n)
			if err != nil {
				t.Fatal(err)
			}
			at = Cursor{Begun: true, After: hashes[end-1]}
			bytes += len(block)
		}
		bound := float64(n)*(64-math.Log2(float64(n))+math.Log2E) - math.Log2(2*math.Pi*float64(n))/2
		ratio := 8 * float64(bytes) / bound
		t.Logf("%d hashes: %.3f bits each, %.4f times the bound", n, 8*float64(bytes)/float64(n), ratio)
		if ratio > 1.008 {
			t.Errorf("%d hashes take %.4f times the bound", n, ratio)
		}
	}
}

// The block of the documentation, to the bit.
func TestGoldenBlock(t *testing.T) {
	block, err := Append(nil, Cursor{}, []uint64{17, 29, 30, 95}, true)
	if err != nil {
		t.Fatal(err)
	}
	// k = 4, since 95/4 has five bits. The 25 bits are those that doc.go shows.
	want, _ := hex.DecodeString("01" + "c4" + "0400" + "04000000" + "0000000000000000" + "c60d1000")
	want = binary.LittleEndian.AppendUint32(want, uint32(xxh3.Hash(want)))
	if !bytes.Equal(block, want) {
		t.Errorf("%x, want %x", block, want)
	}
}

func TestGoldenLarge(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	block, err := Append(nil, Cursor{Begun: true, After: 1000}, uniform(r, MaxKeys), false)
	if err != nil {
		t.Fatal(err)
	}
	if sum := xxh3.Hash(block); len(block) != 27432 || sum != 0xd83029ec888e1718 {
		t.Errorf("%d bytes of hash %#x", len(block), sum)
	}
}

func TestRefusals(t *testing.T) {
	for _, v := range []struct {
		at     Cursor
		hashes []uint64
		last   bool
	}{
		{Cursor{}, nil, false},
		{Cursor{}, []uint64{2, 1}, true},
		{Cursor{}, []uint64{1, 1}, true},
		{Cursor{Begun: true, After: 7}, []uint64{7}, true},
		{Cursor{Begun: true, After: math.MaxUint64}, []uint64{0}, true},
		{Cursor{Begun: true, After: 1, Done: true}, []uint64{3}, true},
		{Cursor{}, make([]uint64, MaxKeys+1), true},
	} {
		if _, err := Append(nil, v.at, v.hashes, v.last); !errors.Is(err, ErrKeys) {
			t.Errorf("%+v: %v", v.at, err)
		}
	}
	block, err := Append(nil, Cursor{Begun: true, After: 7}, []uint64{8, 1 << 60}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []Cursor{{}, {Begun: true, After: 6}, {Begun: true, After: 7, Done: true}} {
		if _, _, err := Decode(nil, at, block); !errors.Is(err, ErrPlace) {
			t.Errorf("a block at %+v that follows 7: %v", at, err)
		}
	}
}

func TestDamage(t *testing.T) {
	r := seeded.New(t)
	block, err := Append(nil, Cursor{}, uniform(r, 300), true)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 * len(block) {
		damaged := bytes.Clone(block)
		damaged[bit/8] ^= 1 << (bit % 8)
		if _, _, err := Decode(nil, Cursor{}, damaged); !errors.Is(err, ErrFormat) {
			t.Fatalf("bit %d was flipped: %v", bit, err)
		}
	}
	for n := range block {
		if _, _, err := Decode(nil, Cursor{}, block[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

// resealed gives any bytes the length and the checksum of a block.
func resealed(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) < headerSize+sumSize {
		return data
	}
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-headerSize-sumSize))
	body := data[:len(data)-sumSize]
	return binary.LittleEndian.AppendUint32(body, uint32(xxh3.Hash(body)))
}

// A block that is accepted has one form: its hashes are written as the same bytes.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, hashes := range [][]uint64{nil, {0}, {math.MaxUint64}, {17, 29, 30, 95}, uniform(r, 50)} {
		for _, block := range blocks(f, r, hashes) {
			f.Add(block)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = resealed(data)
		var at Cursor
		if len(data) >= headerSize && data[1]&flagBegins == 0 {
			at = Cursor{Begun: true, After: binary.LittleEndian.Uint64(data[8:])}
		}
		hashes, next, err := Decode([]uint64{1, 2}, at, data)
		if err != nil {
			if !errors.Is(err, ErrFormat) || !slices.Equal(hashes, []uint64{1, 2}) || next != at {
				t.Fatalf("%v; %v, %+v", err, hashes, next)
			}
			return
		}
		again, err := Append(nil, at, hashes[2:], next.Done)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x is written again as %x: %v", data, again, err)
		}
	})
}
