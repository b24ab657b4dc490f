package ribbon

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

func feedOf(hashes, values []uint64) Feed {
	return func(yield func(hash, value uint64) bool) error {
		for i, h := range hashes {
			if !yield(h, values[i]) {
				break
			}
		}
		return nil
	}
}

// A map of keys that came one by one is that of keys that were all at hand, to
// the byte, for values of any width.
func TestBuildMapFrom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 100, piece - 1, piece, piece + 1, 3*piece + 7} {
		for _, width := range []int{1, 8, 9, 64} {
			if n > 100 && width == 64 {
				continue
			}
			hashes, values := make([]uint64, n), make([]uint64, n)
			for i := range hashes {
				hashes[i], values[i] = r.Uint64(), r.Uint64()>>(64-width)
			}
			c := Config{ValueBits: width, FingerprintBits: 7, Seed: 5}
			want, err := BuildMap(c, keyed.Numbers(hashes), values)
			if err != nil {
				t.Fatal(err)
			}
			got, several, err := BuildMapFrom(c, feedOf(hashes, values), 0)
			if err != nil || len(several) != 0 {
				t.Fatal(several, err)
			}
			a, _ := want.MarshalBinary()
			b, _ := got.MarshalBinary()
			if !bytes.Equal(a, b) {
				t.Errorf("%d keys of %d bits: another map", n, width)
			}
			if value, fingerprint := got.Widths(); value != width || fingerprint != 7 {
				t.Errorf("widths %d and %d", value, fingerprint)
			}
		}
	}
}

// Keys that come with several values are left out and returned, also those that
// come thrice; keys that come twice with one value are not.
func TestSeveralValues(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	n := 2*piece + 100
	hashes, values := make([]uint64, n), make([]uint64, n)
	for i := range hashes {
		hashes[i], values[i] = r.Uint64(), r.Uint64N(250)
	}
	want := map[uint64][]uint64{}
	for i := range 1000 {
		h, v := hashes[i], values[i]
		hashes = append(hashes, h)
		if i%3 == 0 {
			values = append(values, v)
			continue
		}
		values = append(values, v+1)
		want[h] = []uint64{v, v + 1}
		if i%3 == 2 {
			hashes, values = append(hashes, h, h), append(values, v+2, v)
			want[h] = append(want[h], v+2)
		}
	}
	c := Config{ValueBits: 8, FingerprintBits: 20}
	m, several, err := BuildMapFrom(c, feedOf(hashes, values), len(want))
	if err != nil || len(several) != len(want) {
		t.Fatal(len(several), err)
	}
	for _, s := range several {
		if !slices.Equal(s.Values, want[s.Hash]) {
			t.Errorf("%x has %v, want %v", s.Hash, s.Values, want[s.Hash])
		}
	}
	for i, h := range hashes[:n] {
		if _, out := want[h]; out {
			continue
		}
		if v, ok := m.Lookup(keyed.Number(h)); !ok || v != values[i] {
			t.Fatalf("%x is %d, %v, want %d", h, v, ok, values[i])
		}
	}
	if _, _, err := BuildMapFrom(c, feedOf(hashes, values), len(want)-1); !errors.Is(err, ErrContradiction) {
		t.Errorf("more contradictions than allowed: %v", err)
	}
}

func TestFeedThatFails(t *testing.T) {
	c := Config{ValueBits: 4, FingerprintBits: 4}
	failed := errors.New("failed")
	if _, _, err := BuildMapFrom(c, func(func(_, _ uint64) bool) error { return failed }, 0); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if _, _, err := BuildMapFrom(c, feedOf([]uint64{1, 2}, []uint64{3, 16}), 0); err == nil {
		t.Error("a value that is too wide is taken")
	}
}

// A Map in the bytes that it was saved as answers as the one that copies them,
// wherever they lie.
func TestMapOf(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	hashes, values := make([]uint64, 5000), make([]uint64, 5000)
	for i := range hashes {
		hashes[i], values[i] = r.Uint64(), r.Uint64N(256)
	}
	built, err := BuildMap(Config{ValueBits: 8, FingerprintBits: 8}, keyed.Numbers(hashes), values)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := built.MarshalBinary()
	for shift := range 9 {
		m, err := MapOf(shifted(data, shift))
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range hashes {
			if v, ok := m.Lookup(keyed.Number(h)); !ok || v != values[i] {
				t.Fatalf("%d bytes off: %x is %d, %v, want %d", shift, h, v, ok, values[i])
			}
		}
	}
	if _, err := MapOf(data[:len(data)-1]); !errors.Is(err, ErrFormat) {
		t.Errorf("cut short: %v", err)
	}
}

// shifted is a copy of bytes that begins so many behind where an allocation does.
func shifted(data []byte, shift int) []byte {
	return append(make([]byte, shift, shift+len(data)), data...)[shift:]
}

// So do a Retrieval and a Filter.
func TestRetrievalOfAndFilterOf(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 8))
	hashes, values := make([]uint64, 5000), make([]uint64, 5000)
	for i := range hashes {
		hashes[i], values[i] = r.Uint64(), r.Uint64N(256)
	}
	retrieval, err := BuildRetrieval(Config{ValueBits: 8}, keyed.Numbers(hashes), values)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := BuildFilter(Config{FingerprintBits: 8}, keyed.Numbers(hashes))
	if err != nil {
		t.Fatal(err)
	}
	savedValues, _ := retrieval.MarshalBinary()
	savedFilter, _ := filter.MarshalBinary()
	for shift := range 9 {
		inPlace, err := RetrievalOf(shifted(savedValues, shift))
		if err != nil {
			t.Fatal(err)
		}
		filterInPlace, err := FilterOf(shifted(savedFilter, shift))
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range hashes {
			if v := inPlace.Lookup(keyed.Number(h)); v != values[i] || !filterInPlace.Lookup(keyed.Number(h)) {
				t.Fatalf("%d bytes off: %x is %d, want %d, in the filter: %v", shift, h, v, values[i], filterInPlace.Lookup(keyed.Number(h)))
			}
		}
	}
	if _, err := RetrievalOf(savedFilter); !errors.Is(err, ErrFormat) {
		t.Errorf("a filter as a retrieval: %v", err)
	}
	if _, err := FilterOf(savedValues); !errors.Is(err, ErrFormat) {
		t.Errorf("a retrieval as a filter: %v", err)
	}
}
