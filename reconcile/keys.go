package reconcile

import (
	"crypto/sha256"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
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

// A question and its answer, outside a sync. The handshake is that of a sync, but with
// roles of its own: no proof of the one passes in the other.

// ProveAsk sets the version, the namespace and the proof of an Ask from self to remote,
// which has its nonce.
func ProveAsk(keys Keys, self, remote []byte, m *wire.Ask) {
	m.Version, m.Namespace = wire.Version, keys.ID
	m.Proof = keys.prove("syncd ask 1 initiator", self, remote, m.Nonce)
}

// CheckAsk checks the version and the proof of an Ask from remote to self: ErrVersion,
// ErrDenied.
func CheckAsk(keys Keys, remote, self []byte, m *wire.Ask) error {
	switch {
	case m.Version != wire.Version:
		return ErrVersion
	case m.Namespace != keys.ID || !sameProof(m.Proof, keys.prove("syncd ask 1 initiator", remote, self, m.Nonce)):
		return ErrDenied
	}
	return nil
}

// ProveReply sets the proof of a Reply from self to an Ask of remote; the Reply has its
// nonce.
func ProveReply(keys Keys, self, remote []byte, ask *wire.Ask, m *wire.Reply) {
	m.Proof = keys.prove("syncd ask 1 responder", remote, self, ask.Nonce, m.Nonce)
}

// CheckReply checks that a message of remote answers an Ask of self. A refusal comes back
// as the error that it stands for.
func CheckReply(keys Keys, self, remote []byte, ask *wire.Ask, m wire.Message) (*wire.Reply, error) {
	r, ok := m.(*wire.Reply)
	if !ok {
		return nil, unexpected(m)
	}
	if !sameProof(r.Proof, keys.prove("syncd ask 1 responder", self, remote, ask.Nonce, r.Nonce)) {
		return nil, ErrDenied
	}
	if r.Subject != ask.Question.Subject() {
		return nil, violation("an answer about %d to a question about %d", r.Subject, ask.Question.Subject())
	}
	return r, nil
}
