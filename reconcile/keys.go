package reconcile

import (
	"crypto/sha256"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// Keys are what a namespace's secret stands for: DeriveKeys derives them once,
// and they travel as one value.
type Keys struct {
	// Secret proves membership: it keys the proofs of Hello and Welcome.
	Secret dbadapter.Secret
	// ID names the namespace, on the wire and in a store.
	ID dbadapter.NamespaceID
	// Cells is the key of the coded cells.
	Cells rateless.Key
	// Hasher makes the indices, checksums and digests. Tests weaken it to force
	// two keys onto one index.
	Hasher dbadapter.Hasher
}

// DeriveKeys derives the keys of the namespace that has this secret.
func DeriveKeys(secret dbadapter.Secret) Keys {
	return Keys{
		Secret: secret,
		ID:     dbadapter.NamespaceIDOf(secret),
		Cells:  sha256.Sum256(append([]byte("syncd cells 1\x00"), secret[:]...)),
		Hasher: dbadapter.NewHasher(secret),
	}
}
