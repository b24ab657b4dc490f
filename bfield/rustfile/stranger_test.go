package rustfile_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spaolacci/murmur3"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/rustfile"
)

// stranger knows nothing but the package's description of the format. It works bit
// by bit, with numbers of any length.
type stranger struct {
	k, nu, kappa, size uint64
	body               []byte
}

func strangerReads(file []byte) stranger {
	if file[0] != 0xbf || file[1] != 0x1d {
		panic("no magic")
	}
	header := 256*int(file[2]) + int(file[3])
	s := stranger{k: uint64(file[4]), nu: uint64(file[5]), kappa: uint64(file[6])}
	for _, b := range file[4+header : 12+header] {
		s.size = 256*s.size + uint64(b)
	}
	s.body = file[12+header:]
	return s
}

func (s stranger) file() []byte {
	file := []byte{0xbf, 0x1d, 0, 4, byte(s.k), byte(s.nu), byte(s.kappa), 0}
	for i := 7; i >= 0; i-- {
		file = append(file, byte(s.size>>(8*i)))
	}
	return append(file, s.body...)
}

// starts returns the first bit of each window.
func (s stranger) starts(key []byte) (at []uint64) {
	h0, h1 := murmur3.Sum128(key)
	for i := range s.k {
		at = append(at, (h0+i*h1)%(s.size-s.nu))
	}
	return at
}

func (s stranger) bit(i uint64) bool { return s.body[i/8]>>(7-i%8)&1 == 1 }

// get returns the ones in common, and their value if they are κ.
func (s stranger) get(key []byte) (ones int, value uint64) {
	sum := new(big.Int)
	for c := range s.nu {
		all := true
		for _, at := range s.starts(key) {
			all = all && s.bit(at+s.nu-1-c)
		}
		if all {
			ones++
			sum.Add(sum, new(big.Int).Binomial(int64(c), int64(ones)))
		}
	}
	return ones, sum.Uint64()
}

// put inserts a key: it counts through the numbers with κ ones, as the definition says.
func (s stranger) put(key []byte, value uint64) {
	for n, seen := uint64(0), uint64(0); ; n++ {
		ones := uint64(0)
		for m := n; m != 0; m /= 2 {
			ones += m % 2
		}
		if ones != s.kappa {
			continue
		}
		if seen < value {
			seen++
			continue
		}
		for c := range s.nu {
			for _, at := range s.starts(key) {
				if n>>c&1 == 1 {
					i := at + s.nu - 1 - c
					s.body[i/8] |= 1 << (7 - i%8)
				}
			}
		}
		return
	}
}

func input(r *rand.Rand, n int, values uint64) (keys [][]byte, of []uint64) {
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "key %d of %d", i, r.Uint64()))
		of = append(of, r.Uint64N(values))
	}
	return keys, of
}

// shapes cover windows of one load and of several, and all κ.
func shapes() (all []rustfile.Config) {
	for _, s := range [][3]int{{12, 16, 1}, {8, 24, 2}, {10, 46, 2}, {7, 57, 3}, {7, 58, 3}, {6, 64, 4}, {5, 65, 5}, {4, 100, 6}, {3, 127, 8}, {3, 128, 9}, {16, 1, 1}} {
		all = append(all, rustfile.Config{Size: 120_001, Hashes: s[0], Nu: s[1], Kappa: s[2], Arrays: 4, Scale: 0.6, LeastScale: 0.5, Other: rustfile.String("x")})
	}
	return all
}

// TestStrangerReads holds Build and Lookup to the description.
func TestStrangerReads(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for _, c := range shapes() {
		n := 60_000 / (c.Hashes * c.Kappa) / 4
		keys, values := input(r, n, c.Values())
		f, err := rustfile.Build(c, keys, values)
		if err != nil {
			t.Fatalf("seed %d, ν %d, κ %d: %v", seed, c.Nu, c.Kappa, err)
		}
		var all []stranger
		for _, file := range f.Files() {
			all = append(all, strangerReads(file))
		}
		strange, _ := input(r, 200, 1)
		for i, key := range append(strange, keys...) {
			want, answer := uint64(0), bfield.Indeterminate
			for _, s := range all {
				ones, v := s.get(key)
				if ones < c.Kappa {
					answer = bfield.Absent
				} else if ones == c.Kappa && v < 1<<32 {
					want, answer = v, bfield.Found
				} else if ones == c.Kappa {
					answer = bfield.Absent
				} else {
					continue
				}
				break
			}
			got, a := f.Lookup(key)
			if got != want || a != answer || i >= 200 && (a != bfield.Found || got != values[i-200]) {
				t.Fatalf("seed %d, ν %d, κ %d, key %d: %d, %v; the stranger reads %d, %v", seed, c.Nu, c.Kappa, i, got, a, want, answer)
			}
		}
	}
}

func TestStrangerWrites(t *testing.T) {
	for _, s := range []stranger{{k: 8, nu: 39, kappa: 4, size: 8099}, {k: 6, nu: 24, kappa: 2, size: 4096}, {k: 4, nu: 70, kappa: 3, size: 5001}} {
		s.body = make([]byte, (s.size+7)/8)
		for i := range uint64(20) {
			s.put(fmt.Appendf(nil, "key %d", i), 13*i)
		}
		f, err := rustfile.FieldOf(s.file())
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(20) {
			if v, a := f.Lookup(fmt.Appendf(nil, "key %d", i)); v != 13*i || a != bfield.Found {
				t.Errorf("ν %d: value %d is read as %d, %v", s.nu, 13*i, v, a)
			}
		}
	}
}
