package signature

import (
	stdlib "crypto/ed25519"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// A key that is kept says of a signature what one that is taken apart for it does, at the edges of the
// rule too, also where more keys come than are kept.
func TestKeptKeysVerifyAlike(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	checks := made(256, 256)
	for i := range 2 * mostKept {
		key := stdlib.NewKeyFromSeed(append(make([]byte, 30), byte(i), byte(i>>8)))
		checks = append(checks, Check{key.Public().(stdlib.PublicKey), []byte("m"), stdlib.Sign(key, []byte("m"))})
	}
	for _, v := range vectors() {
		checks = append(checks, v.check)
	}
	valid := 0
	for range 3000 {
		c := checks[random.IntN(len(checks))]
		if random.IntN(3) == 0 {
			c = flip(random, c)
		}
		if len(c.Key) != ed25519.PublicKeySize || len(c.Signature) != ed25519.SignatureSize {
			continue
		}
		got, want := Verify(c.Key, c.Message, c.Signature), ed25519.VerifyWithOptions(ed25519.PublicKey(c.Key), c.Message, c.Signature, rule)
		if got != want {
			t.Fatalf("seed %d: %v, want %v: key %x, message %x, signature %x", seed, got, want, c.Key, c.Message, c.Signature)
		}
		if got {
			valid++
		}
	}
	if valid == 0 || valid == 3000 {
		t.Errorf("%d valid ones", valid)
	}
}
