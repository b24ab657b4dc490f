package reconcile

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/syncd-io/syncd/reconcile/wire"
)

// Options are what one session needs to know beside its replica. Randomness
// and time are handed in.
type Options struct {
	// Keys are those of the namespace.
	Keys Keys
	// Self and Remote are the names of the two sides as the channel between
	// them has authenticated them.
	Self, Remote []byte
	// Admit applies the records that arrive. A dry session never calls it.
	Admit Admission
	// Nonce is 16 fresh random bytes.
	Nonce wire.Nonce
	// Prefix narrows an initiator's sync to the keys that begin with it; the
	// replica must hold just these.
	Prefix []byte
	// Direction and Method are the initiator's wishes; the zero values are
	// both ways, and the cheapest.
	Direction wire.Direction
	Method    wire.Method
	// Dry finds the differences and moves nothing.
	Dry bool
	// FirstCells is how many cells an initiator's Hello carries; 0 means the
	// constant FirstCells.
	FirstCells int
	// Enter, if not nil, is called when a step begins.
	Enter func(Step)
	// Aside, if not nil, remembers what this peer has refused.
	Aside *Aside
}

// proof shows that a side knows the secret, bound to both names, both nonces
// and the side's role, so that neither a replay nor an echo passes. It is
// HMAC-SHA256 over length-prefixed fields.
func (o *Options) proof(role string, initiator, responder []byte, nonces ...wire.Nonce) (p wire.Proof) {
	mac := hmac.New(sha256.New, o.Keys.Secret[:])
	field := func(b []byte) {
		mac.Write([]byte{byte(len(b) >> 8), byte(len(b))})
		mac.Write(b)
	}
	field([]byte("syncd sync 1 " + role))
	field(initiator)
	field(responder)
	for _, n := range nonces {
		field(n[:])
	}
	mac.Sum(p[:0])
	return p
}

func (o *Options) enter(s Step) {
	if o.Enter != nil {
		o.Enter(s)
	}
}
