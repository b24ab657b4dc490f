package reconcile

import (
	"crypto/sha256"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// Keys are what a namespace's secret and creator stand for: DeriveKeys derives
// them once, and they travel as one value.
type Keys struct {
	// Secret proves membership: it keys the proofs of Hello and Welcome.
	Secret dbadapter.Secret
	// ID names the namespace, on the wire and in a store.
	ID dbadapter.NamespaceID
	// Topic names where the members of the namespace push; only they can make it.
	Topic [16]byte
	// Cells is the key of the coded cells.
	Cells rateless.Key
	// Hasher makes the indices, checksums and digests. Tests weaken it to force
	// two keys onto one index.
	Hasher dbadapter.Hasher
}

// DeriveKeys derives the keys of the namespace that has this secret and root, which is its
// creator's peer id in binary.
func DeriveKeys(secret dbadapter.Secret, root []byte) Keys {
	return derive(secret, dbadapter.NamespaceIDOf(secret, root))
}

// DeriveControlKeys derives the keys of its control namespace.
func DeriveControlKeys(secret dbadapter.Secret, root []byte) Keys {
	return derive(dbadapter.ControlOf(secret, root))
}

// DeriveShardKeys derives the keys of a shard of a namespace that is cut into several; the
// placement follows the creator in its root.
func DeriveShardKeys(secret dbadapter.Secret, root []byte, shard uint32) Keys {
	return derive(dbadapter.ShardOf(secret, root, shard))
}

func derive(secret dbadapter.Secret, id dbadapter.NamespaceID) Keys {
	topic := sha256.Sum256(slices.Concat([]byte("syncd push 1\x00"), secret[:], id[:]))
	return Keys{
		Secret: secret,
		ID:     id,
		Topic:  [16]byte(topic[:]),
		Cells:  sha256.Sum256(append([]byte("syncd cells 1\x00"), secret[:]...)),
		Hasher: dbadapter.NewHasher(secret),
	}
}
