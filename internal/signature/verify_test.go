package signature

import (
	"crypto/ed25519"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// flip changes one random bit of a check, in memory of its own.
func flip(random *rand.Rand, c Check) Check {
	c = Check{slices.Clone(c.Key), slices.Clone(c.Message), slices.Clone(c.Signature)}
	of := [][]byte{c.Key, c.Message, c.Signature}[random.IntN(3)]
	of[random.IntN(len(of))] ^= 1 << random.IntN(8)
	return c
}

// A batch says of each signature what a check of it alone says, whatever stands
// beside it: signatures at the edges of the rule, flipped ones, pieces.
func TestTogetherAsAlone(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	edges, good := vectors(), made(64, 5)
	for range 30 {
		checks := make([]Check, random.IntN(80))
		share := random.IntN(101) // percent of good ones
		for i := range checks {
			c := good[random.IntN(len(good))]
			if random.IntN(100) >= share {
				switch random.IntN(4) {
				case 0:
					c = edges[random.IntN(len(edges))].check
				case 1:
					c = flip(random, edges[random.IntN(len(edges))].check)
				case 2:
					c = flip(random, c)
				case 3:
					c.Key, c.Signature = c.Key[:random.IntN(len(c.Key)+1)], c.Signature[:random.IntN(len(c.Signature)+1)]
				}
			}
			checks[i] = c
		}
		for i, got := range VerifyAll(checks) {
			c := checks[i]
			if want := Verify(c.Key, c.Message, c.Signature); got != want {
				t.Fatalf("seed %d: %d of %d: together %v, alone %v: key %x, message %x, signature %x",
					seed, i, len(checks), got, want, c.Key, c.Message, c.Signature)
			}
		}
	}
}

// Two signatures whose faults cancel are both found: s + 1 in one and s − 1 in the
// other make a sum without random factors right.
func TestFaultsThatCancel(t *testing.T) {
	checks := made(32, 1)
	for place, by := range map[int]int64{7: 1, 20: -1} {
		c := &checks[place]
		s := integer(c.Signature[32:])
		copy(c.Signature[32:], number(s.Add(s, big.NewInt(by)).Mod(s, order)))
	}
	for i, valid := range VerifyAll(checks) {
		if want := i != 7 && i != 20; valid != want {
			t.Errorf("signature %d: %v", i, valid)
		}
	}
}

// A signer makes the signatures of RFC 8032, byte for byte.
func TestSigner(t *testing.T) {
	for i, c := range made(20, 4) {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(i%4)))
		if got := NewSigner(key).Sign(c.Message); !slices.Equal(got, c.Signature) {
			t.Errorf("%d: %x, want %x", i, got, c.Signature)
		}
	}
	random := rand.NewChaCha8([32]byte{3})
	for length := range 300 {
		seed, message := make([]byte, ed25519.SeedSize), make([]byte, length)
		random.Read(seed)
		random.Read(message)
		key := ed25519.NewKeyFromSeed(seed)
		if got, want := NewSigner(key).Sign(message), ed25519.Sign(key, message); !slices.Equal(got, want) {
			t.Errorf("of %d bytes: %x, want %x", length, got, want)
		}
	}
}

func FuzzVerifyAll(f *testing.F) {
	for _, v := range vectors()[:40] {
		f.Add([]byte(v.check.Key), v.check.Message, v.check.Signature)
	}
	good := made(fewest, 2)
	f.Fuzz(func(t *testing.T, key, message, signature []byte) {
		alone := Verify(key, message, signature)
		if got := VerifyAll(append(slices.Clone(good), Check{key, message, signature})); got[len(good)] != alone || !got[0] {
			t.Errorf("together %v, alone %v", got, alone)
		}
	})
}
