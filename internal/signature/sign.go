package signature

import (
	stdlib "crypto/ed25519"

	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// Signer makes signatures with one key. Its methods may be called from several
// goroutines.
type Signer struct{ key ed25519.PrivateKey }

// NewSigner is a signer with the key, of ed25519.PrivateKeySize bytes.
func NewSigner(key stdlib.PrivateKey) Signer { return Signer{ed25519.PrivateKey(key)} }

// Sign is the signature of the message: that of crypto/ed25519, byte for byte, in
// about 0.6 of the time.
func (s Signer) Sign(message []byte) []byte { return ed25519.Sign(s.key, message) }
