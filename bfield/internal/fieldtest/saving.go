package fieldtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// saveAndLoad loads what was saved. The answers are the same, for keys and for
// strangers. So are the bytes when it is saved again.
func saveAndLoad(t *testing.T, s Suite) {
	for i, n := range append([]int{s.Large}, sizes...) {
		in := s.draw(n, 600+uint64(i), i%2 == 0)
		f := s.build(t, in)
		data := marshal(t, f)
		loaded, err := s.Load(bytes.Clone(data))
		if err != nil {
			t.Fatalf("loading what was saved from %d keys: %v", n, err)
		}
		checkAnswers(t, loaded, in)
		for _, h := range s.draw(1000, 699, true).Hashes {
			value, ok := f.Lookup(keyed.Number(h))
			if v, k := loaded.Lookup(keyed.Number(h)); k != ok || ok && v != value {
				t.Fatalf("a stranger answers %d, %v; after loading %d, %v", value, ok, v, k)
			}
		}
		if !bytes.Equal(marshal(t, loaded), data) {
			t.Fatalf("%d keys: loaded and saved again, the bytes differ", n)
		}
	}
}

// damagedBytes loads what is cut short, too long, flipped in one bit, and
// noise. Each is an error, and none a panic.
func damagedBytes(t *testing.T, s Suite) {
	refuse := func(what string, data []byte) {
		t.Helper()
		if _, err := s.Load(data); err == nil {
			t.Errorf("%s: loaded without an error", what)
		}
	}
	r := rand.New(rand.NewPCG(s.Seed, 700))
	for _, n := range []int{0, 3, 200} {
		data := marshal(t, s.build(t, s.draw(n, 701, true)))
		step := max(1, len(data)/2000)
		for i := 0; i < len(data); i += step {
			refuse("cut short", bytes.Clone(data[:i]))
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << r.IntN(8)
			refuse("a flipped bit", flipped)
		}
		refuse("too long", append(bytes.Clone(data), 0))
		refuse("twice", append(bytes.Clone(data), data...))
		for range 200 {
			noise := bytes.Clone(data)
			for i := r.IntN(8); i < len(noise); i++ {
				noise[i] = byte(r.Uint32())
			}
			refuse("noise", noise)
		}
	}
}
