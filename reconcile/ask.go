package reconcile

import (
	"github.com/syncd-io/syncd/reconcile/wire"
)

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
	if r.Answer.Subject() != ask.Question.Subject() {
		return nil, violation("an answer about %d to a question about %d", r.Answer.Subject(), ask.Question.Subject())
	}
	return r, nil
}
