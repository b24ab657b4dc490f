package ribbon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// coded, asked for a value with an answer: always yes.
type coded struct{ *Coded }

func (c coded) Lookup(key keyed.Key) (uint64, bool) { return c.Coded.Lookup(key), true }
func (c coded) LookupBatch(keys keyed.List, values []uint64, found []bool) {
	c.Coded.LookupBatch(keys, values)
	for i := range found {
		found[i] = true
	}
}

func TestConformanceOfCoded(t *testing.T) {
	for _, values := range []uint64{2, 256} {
		t.Run(fmt.Sprintf("%d values", values), func(t *testing.T) {
			s := fieldtest.Suite{
				Build: func(in fieldtest.Input) (fieldtest.Field, error) {
					c, err := BuildCoded(Config{Seed: in.Seed, Workers: in.Workers}, in.List(), in.Values)
					return coded{c}, err
				},
				Load: func(data []byte) (fieldtest.Field, error) {
					c := new(Coded)
					return coded{c}, c.UnmarshalBinary(data)
				},
				Values:        values,
				FalsePositive: [2]float64{1, 1},
				Contradiction: ErrContradiction,
			}
			if values == 2 {
				s.Large = shards
			}
			fieldtest.Run(t, s)
		})
	}
}

// drawFrequencies gives frequencies of some values, flat or as skewed as they can be.
func drawFrequencies(r *rand.Rand) map[uint64]uint64 {
	frequencies := map[uint64]uint64{}
	skew := r.IntN(62)
	for range r.IntN(60) {
		frequencies[r.Uint64()>>r.IntN(64)] = 1 + r.Uint64N(1<<r.IntN(skew+1))>>7
	}
	return frequencies
}

// A Coded answers what a map does, whatever the frequencies say of the values.
func TestCodedAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		frequencies := drawFrequencies(r)
		code := newCode(frequencies)
		twin := map[uint64]uint64{}
		var hashes, values []uint64
		if n := len(code.symbols); n > 0 {
			for range r.IntN(2000) {
				// Short codewords come often, and long ones, too.
				h, v := r.Uint64N(5000), code.symbols[r.IntN(1+r.IntN(n))]
				if old, ok := twin[h]; ok {
					v = old
				}
				twin[h] = v
				hashes, values = append(hashes, h), append(values, v)
			}
		}
		c, err := buildCoded(Config{Seed: r.Uint64(), Workers: 1}, code, keyList{keyed.Numbers(hashes)}, values)
		if err != nil {
			t.Fatal(err)
		}
		for h, v := range twin {
			if got := c.Lookup(keyed.Number(h)); got != v {
				t.Fatalf("key %d answers %d, want %d", h, got, v)
			}
		}
		got := make([]uint64, len(hashes))
		c.LookupBatch(keyed.Numbers(hashes), got)
		if !slices.Equal(got, values) {
			t.Fatal("a batch answers otherwise")
		}
	})
}

// A code is whole and prefix-free, its codewords are no longer than allowed, and, where
// the bound does not matter, within a bit of the entropy.
func TestCodeOfFrequencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frequencies := drawFrequencies(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		code := newCode(frequencies)
		if len(code.symbols) != len(frequencies) || len(frequencies) > 0 && !code.whole() {
			t.Fatalf("%d values; lengths %v of %d", len(frequencies), code.counts, len(code.symbols))
		}
		words := code.codewords()
		sum, bits, entropy := 0.0, 0.0, 0.0
		for _, f := range frequencies {
			sum += float64(f)
		}
		for i, s := range code.symbols {
			f := float64(frequencies[s])
			bits += f / sum * float64(words[i].length)
			entropy -= f / sum * math.Log2(f/sum)
			for j := range i {
				if a, b := words[j], words[i]; b.bits>>(b.length-a.length) == a.bits {
					t.Fatalf("codeword %v begins %v", a, b)
				}
			}
		}
		if len(words) > 0 && words[len(words)-1].length < longestCodeword && (bits < entropy-1e-9 || bits > entropy+1) {
			t.Fatalf("%.3f bits at an entropy of %.3f", bits, entropy)
		}
	})
}

// Fibonacci's numbers make the deepest tree: it is cut to the bound, and costs hardly more.
func TestLongCodewords(t *testing.T) {
	frequencies := map[uint64]uint64{}
	a, b := uint64(1), uint64(1)
	for v := range uint64(80) {
		frequencies[v] = a
		a, b = b, a+b
	}
	code := newCode(frequencies)
	if _, longest := code.bounds(); longest > longestCodeword || !code.whole() {
		t.Fatalf("codewords of %d bits, whole: %v", longest, code.whole())
	}
	hashes, values := make([]uint64, 80), make([]uint64, 80)
	for i := range hashes {
		hashes[i], values[i] = uint64(i), uint64(i)
	}
	c, err := buildCoded(Config{Workers: 1}, code, keyList{keyed.Numbers(hashes)}, values)
	if err != nil {
		t.Fatal(err)
	}
	for i := range hashes {
		if got := c.Lookup(keyed.Number(hashes[i])); got != values[i] {
			t.Fatalf("key %d answers %d", i, got)
		}
	}
}

// The size is the codewords' bits, and a little: of keys with one value, nothing.
func TestSizeOfCoded(t *testing.T) {
	const n = 300_000
	r := rand.New(rand.NewPCG(3, 4))
	hashes, values := make([]uint64, n), make([]uint64, n)
	for i := range hashes {
		hashes[i] = r.Uint64()
		for values[i] = 0; r.IntN(2) == 0; values[i]++ {
		}
	}
	c, err := BuildCoded(Config{}, keyed.Numbers(hashes), values)
	if err != nil {
		t.Fatal(err)
	}
	// Half of the values are 0, a quarter 1, …: the entropy is 2 bits. Of the overhead
	// 1.6 % are two bits for each 128 of a bucket.
	if b := float64(c.bits.keys) / n; b < 1.98 || b > 2.02 {
		t.Errorf("codewords of %.3f bits in the mean, want 2", b)
	}
	if s := c.Stats(); s.Keys != n || s.Overhead < 0 || s.Overhead > 0.021 {
		t.Errorf("%+v", s)
	}
	if c, err = BuildCoded(Config{}, keyed.Numbers(hashes), make([]uint64, n)); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Bits != 64 || c.bits.keys != 0 || c.Lookup(keyed.Number(hashes[5])) != 0 {
		t.Errorf("of one value: %+v", s)
	}
}

func codedSamples(t testing.TB) map[string]*Coded {
	hashes, values := make([]uint64, 4000), make([]uint64, 4000)
	for i := range hashes {
		hashes[i] = uint64(i) * mulCoefficient
		values[i] = rehash(uint64(i), 1) >> (50 + i%14)
	}
	all := map[string]*Coded{}
	for _, n := range []int{0, 1, 40, len(hashes)} {
		c, err := BuildCoded(Config{Seed: 5}, keyed.Numbers(hashes[:n]), values[:n])
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprint(n)] = c
	}
	return all
}

var codedForms = fieldtest.Forms[*Coded]{
	Samples: codedSamples, Read: parseCoded, Err: ErrFormat,
	Golden: map[string]uint64{"0": 0x2ade6191c9699f98, "1": 0x9ca722967d3250a9, "40": 0xd4dbe1b29e430399, "4000": 0x9dad0c113ca1ed0e},
	Ask: func(_ *testing.T, c *Coded) {
		hashes, values := make([]uint64, 100), make([]uint64, 100)
		for i := range hashes {
			hashes[i] = uint64(i) * mulFingerprint
		}
		c.LookupBatch(keyed.Numbers(hashes), values)
		c.Lookup(keyed.Bytes(nil))
		c.Stats()
	},
}

func TestSavedCoded(t *testing.T)     { codedForms.Test(t) }
func FuzzUnmarshalCoded(f *testing.F) { codedForms.Fuzz(f) }

// Each field, set to what no Coded has, is refused by itself; so is a file cut off.
func TestCodedFieldsThatCannotBe(t *testing.T) {
	good, err := codedSamples(t)["40"].MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if !codedForms.Try(t, fieldtest.Resealed(good)) {
		t.Fatal("the sample does not load")
	}
	const symbolsAt = 16 + 4*(longestCodeword+1)
	set := func(at int, value uint32) []byte {
		bad := bytes.Clone(good)
		binary.LittleEndian.PutUint32(bad[at:], value)
		return fieldtest.Resealed(bad)
	}
	twice := bytes.Clone(good)
	copy(twice[symbolsAt:symbolsAt+8], twice[symbolsAt+8:])
	for name, bad := range map[string][]byte{
		"magic": set(0, 0), "version": set(4, 2), "behind it": set(4, 1<<8|1), "no keys": set(8, 0), "many keys": set(8, 1<<30),
		"overflowing keys": set(12, 1<<31), "a codeword more": set(16+4*32, 1), "no bits": set(16, 1),
		"codewords without end": set(16+4*31, 1<<32-1), "a value twice": fieldtest.Resealed(twice), "bits of another kind": set(symbolsAt+8*len(codedSamples(t)["40"].code.symbols), 0),
	} {
		if codedForms.Try(t, bad) {
			t.Errorf("%s: it loads", name)
		}
	}
	for n := range good {
		if codedForms.Try(t, fieldtest.Resealed(good[:n])) || n > 0 && codedForms.Try(t, good[:n]) {
			t.Fatalf("the first %d bytes load", n)
		}
	}
}

// Lengths of codewords that leave strings of bits without a meaning, or give one two, are
// refused: a look-up would read on for ever, or answer a value that is not there.
func TestLengthsOfNoCode(t *testing.T) {
	keys := keyed.Numbers([]uint64{1, 2, 3})
	bits, err := BuildRetrieval(Config{ValueBits: 1}, keys, []uint64{0, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lengths []uint64
		loads   bool
	}{"a code": {[]uint64{0, 2}, true}, "half a code": {[]uint64{0, 1}, false}, "three of one bit": {[]uint64{0, 3}, false}} {
		code := new(code)
		for length, n := range c.lengths {
			code.counts[length] = n
			for range n {
				code.symbols = append(code.symbols, uint64(len(code.symbols)))
			}
		}
		data, err := (&Coded{keys: keys.Len(), code: code, bits: bits}).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if codedForms.Try(t, data) != c.loads {
			t.Errorf("%s: it loads: %v", name, !c.loads)
		}
	}
}
