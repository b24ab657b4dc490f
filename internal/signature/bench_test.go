package signature

import (
	"crypto/ed25519"
	"fmt"
	"testing"
)

// made are n signatures of messages of 400 bytes, by keys in turn.
func made(n, keys int) []Check {
	signers := make([]ed25519.PrivateKey, keys)
	for i := range signers {
		signers[i] = ed25519.NewKeyFromSeed(append(make([]byte, 31), byte(i)))
	}
	checks := make([]Check, n)
	for i := range checks {
		message := make([]byte, 400)
		copy(message, fmt.Sprint(i))
		key := signers[i%keys]
		checks[i] = Check{key.Public().(ed25519.PublicKey), message, ed25519.Sign(key, message)}
	}
	return checks
}

func perSignature(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/signature")
}

func BenchmarkVerify(b *testing.B) {
	checks := made(2048, 3)
	b.Run("crypto/ed25519", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			c := &checks[i%len(checks)]
			ed25519.Verify(c.Key, c.Message, c.Signature)
		}
		perSignature(b, 1)
	})
	b.Run("alone", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			c := &checks[i%len(checks)]
			Verify(c.Key, c.Message, c.Signature)
		}
		perSignature(b, 1)
	})
	for _, n := range []int{8, 32, 128, 512, 2048} {
		b.Run(fmt.Sprint("together/", n), func(b *testing.B) {
			for b.Loop() {
				VerifyAll(checks[:n])
			}
			perSignature(b, n)
		})
	}
	bad := made(2048, 3)
	bad[1000].Message[0]++
	b.Run("one-bad/2048", func(b *testing.B) {
		for b.Loop() {
			VerifyAll(bad)
		}
		perSignature(b, len(bad))
	})
	for i := range bad {
		bad[i].Message[1]++
	}
	b.Run("all-bad/2048", func(b *testing.B) {
		for b.Loop() {
			VerifyAll(bad)
		}
		perSignature(b, len(bad))
	})
}

func BenchmarkSign(b *testing.B) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	message := make([]byte, 300)
	b.Run("crypto/ed25519", func(b *testing.B) {
		for b.Loop() {
			ed25519.Sign(key, message)
		}
	})
	s := NewSigner(key)
	b.Run("signer", func(b *testing.B) {
		for b.Loop() {
			s.Sign(message)
		}
	})
	messages := make([][]byte, 1024)
	for i := range messages {
		messages[i] = make([]byte, 300)
	}
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			s.SignAll(messages)
		}
		perSignature(b, len(messages))
	})
}
