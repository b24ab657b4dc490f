package peer

import (
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// What a signature costs, with a record of 256 bytes: making, checking, and
// finding the key in a peer id, which is part of checking.
func BenchmarkSignature(b *testing.B) {
	id := seededKey(b, 1)
	r := dbadapter.Record{Key: make([]byte, 32), Value: make([]byte, 256)}
	message := signedBytes(dbadapter.NamespaceID{}, &r)
	signature, err := id.key.Sign(message)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			if _, err := id.key.Sign(message); err != nil {
				b.Fatal(err)
			}
		}
	})
	m := Member{ID: id.id}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if !m.signed(message, signature) {
				b.Fatal("not signed")
			}
		}
	})
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			if _, err := publicKey(id.id); err != nil {
				b.Fatal(err)
			}
		}
	})
}
