package locator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// sample is a small Locator with something in each of its parts.
func sample(t testing.TB, delta Delta) *Locator {
	r := rand.New(rand.NewPCG(1, 2))
	l := newTest(t, Config{Shards: 100, Delta: delta, Seed: 7, FalsePositiveBits: 6, Workers: 1})
	w := twin{}
	var keys []uint64
	for range 300 {
		keys = append(keys, r.Uint64())
		w[keys[len(keys)-1]] = Shard(r.IntN(100))
	}
	must(t, l.Rebuild(func(yield func(uint64, Shard) bool) error {
		for i, h := range keys {
			yield(h, w[h])
			if i < 5 {
				yield(h, (w[h]+1)%100)
			}
		}
		return nil
	}))
	for i := range uint64(200) {
		must(t, l.Set(r.Uint64(), Shard(i%100)))
	}
	l.RemoveBatch(keys[100:150])
	return l
}

// What is saved is a format: other versions and processors read it. (What a field
// is planned as goes through floating point, so there is no such sum with one.)
func TestGoldenFormat(t *testing.T) {
	data := written(t, sample(t, ExactDelta))
	if sum := xxh3.Hash(data); len(data) != 3216 || sum != 0x844b6e667d5b5cb7 {
		t.Errorf("%d bytes of hash %#x", len(data), sum)
	}
}

// The base is used where it lies, or copied if it does not lie well; both answer
// alike, and are saved alike.
func TestOpenInPlace(t *testing.T) {
	data := written(t, sample(t, ExactDelta))
	words := make([]uint64, len(data)/8+1)
	room := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	for shift := range 8 {
		at := room[shift : shift+len(data)]
		copy(at, data)
		l, err := Open(at, 1)
		must(t, err)
		if !bytes.Equal(written(t, l), data) {
			t.Fatalf("%d bytes off: it is saved differently", shift)
		}
	}
}

// resealed is data with a right checksum.
func resealed(data []byte) []byte {
	if len(data) < sumSize {
		return data
	}
	body := bytes.Clone(data[:len(data)-sumSize])
	return order.AppendUint64(body, xxh3.Hash(body))
}

// try opens bytes. Those that are accepted are a consistent Locator: it is saved
// again as the same bytes, answers anything and takes changes.
func try(t *testing.T, data []byte) (accepted bool) {
	l, err := Open(data, 1)
	if err != nil {
		if !errors.Is(err, ErrFormat) {
			t.Fatalf("error %v", err)
		}
		return false
	}
	if again := written(t, l); !bytes.Equal(again, data) {
		t.Fatalf("%d bytes were opened and saved as %d others", len(data), len(again))
	}
	for i := range uint64(100) {
		h := i * mul1
		if s, a := l.Lookup(h); int(s) >= l.config.Shards {
			t.Fatalf("%d, %v of %d shards", s, a, l.config.Shards)
		}
		l.Candidates(h)
		must(t, l.Set(h, 0))
		if s, a := l.Lookup(h); s != 0 || a != Exact && a != Likely {
			t.Fatalf("just set: %d, %v", s, a)
		}
	}
	return true
}

func TestDamage(t *testing.T) {
	for name, delta := range deltas {
		t.Run(name, func(t *testing.T) {
			data := written(t, sample(t, delta))
			if !try(t, data) {
				t.Fatal("what was saved is refused")
			}
			for at := range data {
				damaged := bytes.Clone(data)
				damaged[at] ^= 1 << (at % 8)
				if try(t, damaged) {
					t.Fatalf("a bit of byte %d was flipped, and nothing noticed", at)
				}
				if at < 1000 {
					try(t, resealed(damaged))
				}
				if at%7 == 0 && (try(t, data[:at]) || try(t, resealed(data[:at]))) {
					t.Fatalf("the first %d bytes are accepted", at)
				}
			}
			if _, err := Open(append(bytes.Clone(data), make([]byte, 8)...), 1); !errors.Is(err, ErrFormat) {
				t.Fatalf("bytes behind: %v", err)
			}
		})
	}
}

func FuzzOpen(f *testing.F) {
	for _, delta := range deltas {
		f.Add(written(f, sample(f, delta)))
	}
	f.Add(written(f, newTest(f, Config{Shards: 1})))
	f.Fuzz(func(t *testing.T, data []byte) {
		// A large field is slow to copy at each fold.
		if len(data) < 1<<16 {
			try(t, resealed(data))
		}
	})
}

// A saved Locator of one key, byte by byte as the format says.
func TestFormatByHand(t *testing.T) {
	l := newTest(t, Config{Shards: 4, FalsePositiveBits: 8})
	must(t, l.Set(5, 3))
	data := written(t, l)
	base, err := l.view.Load().base.MarshalBinary()
	must(t, err)
	var want []byte
	words := func(words ...uint64) {
		for _, w := range words {
			want = order.AppendUint64(want, w)
		}
	}
	want = append(want, "LOCATE\x00\x01"...)
	words(0, 4, 8, 0, 1, 0, uint64(len(base)), 0)
	words(1 << 32)     // starts 0 and 1
	words(l.key(5), 0) // the remainder, all 64 bits, and the word of padding
	words(3, 0)        // the code, in 3 bits, and the word of padding
	want = append(want, base...)
	words(xxh3.Hash(want))
	if !bytes.Equal(data, want) {
		t.Errorf("%s\nwant %s", dump(data), dump(want))
	}
}

func dump(b []byte) (s string) {
	for ; len(b) >= 8; b = b[8:] {
		s += fmt.Sprintf("%016x ", order.Uint64(b))
	}
	return s
}
