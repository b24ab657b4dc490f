package signature

import (
	"bytes"
	"crypto/ed25519"
	"math/rand/v2"
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

func some(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
