package signature

import (
	"bytes"
	"crypto/ed25519"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// Signatures that are made together are those of crypto/ed25519, byte for byte, whether
// or not points can be read.
func TestSignAll(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		key := ed25519.NewKeyFromSeed(some(rng, ed25519.SeedSize))
		messages := make([][]byte, rng.IntN(3*piece))
		for i := range messages {
			messages[i] = some(rng, rng.IntN(400))
		}
		s := NewSigner(key)
		for _, s.readable = range []bool{true, false} {
			made := s.SignAll(messages)
			if len(made) != len(messages) {
				t.Fatalf("seed %d: %d signatures of %d messages", seed, len(made), len(messages))
			}
			for i, m := range made {
				if !bytes.Equal(m, ed25519.Sign(key, messages[i])) || cap(m) != len(m) {
					t.Fatalf("seed %d, readable %v: signature %d of %d is %x", seed, s.readable, i, len(made), m)
				}
			}
		}
	}
}

// On this machine points can be read, or SignAll is slower than it should be.
func TestPointsAreReadable(t *testing.T) {
	if ^uint(0)>>63 == 1 && !readable() {
		t.Error("curve25519-voi has its points in memory in another way")
	}
}

// The field computes as big integers do, with limbs of up to 54 bits, and at the edges.
func TestField(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	value := func(e *element) *big.Int {
		n := new(big.Int)
		for _, l := range slices.Backward(e[:]) {
			n.Add(n.Lsh(n, limb), new(big.Int).SetUint64(l))
		}
		return n.Mod(n, p)
	}
	equal := func(what string, seed uint64, e element, want *big.Int) {
		t.Helper()
		if b := e.bytes(); integer(b[:]).Cmp(want.Mod(want, p)) != 0 {
			t.Fatalf("seed %d: %s is %x, not %x", seed, what, b, want)
		}
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	const full = limbMask
	elements := []element{
		{},
		{1},
		{18},
		{19},
		{20},
		{full - 19, full, full, full, full}, // p − 1
		{full - 18, full, full, full, full}, // p
		{full - 17, full, full, full, full}, // p + 1
		{full, full, full, full, full},
		{1<<54 - 1, 1<<54 - 1, 1<<54 - 1, 1<<54 - 1, 1<<54 - 1},
	}
	for range 200 {
		var e element
		for i := range e {
			e[i] = rng.Uint64() >> (10 + rng.IntN(5))
		}
		elements = append(elements, e)
	}
	for i := range elements {
		a, b := elements[i], elements[rng.IntN(len(elements))]
		equal("a number", seed, a, value(&a))
		equal("a product", seed, a.times(&b), new(big.Int).Mul(value(&a), value(&b)))
		inverse := new(big.Int).Exp(value(&a), new(big.Int).Sub(p, big.NewInt(2)), p)
		equal("an inverse", seed, a.inverse(), inverse)
	}
}

func some(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
