package reconcile

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The handshake: both sides prove that they know the namespace's secret, and
// say what they hold. The responder does nothing before it has seen the proof.

// prove shows that a side knows the secret. The proof is bound to its purpose, to both
// names and both nonces, so that neither a replay nor an echo passes. It is HMAC-SHA256
// over length-prefixed fields.
func (k *Keys) prove(what string, initiator, responder []byte, nonces ...wire.Nonce) (p wire.Proof) {
	mac := hmac.New(sha256.New, k.Secret[:])
	field := func(b []byte) {
		mac.Write([]byte{byte(len(b) >> 8), byte(len(b))})
		mac.Write(b)
	}
	field([]byte(what))
	field(initiator)
	field(responder)
	for _, n := range nonces {
		field(n[:])
	}
	mac.Sum(p[:0])
	return p
}

// proof is that of a side of a sync.
func (o *Options) proof(role string, initiator, responder []byte, nonces ...wire.Nonce) wire.Proof {
	return o.Keys.prove("syncd sync 1 "+role, initiator, responder, nonces...)
}

// Proves reports whether a Hello of the peer remote to self proves that the peer
// knows the namespace's secret. A session checks it by itself; this is for a
// responder that has something to say to a peer that is not a member.
func Proves(keys Keys, remote, self []byte, h *wire.Hello) bool {
	o := Options{Keys: keys, Self: self, Remote: remote}
	return o.proves(h)
}

func (o *Options) proves(h *wire.Hello) bool {
	return h.Namespace == o.Keys.ID && sameProof(h.Proof, o.proof("initiator", o.Remote, o.Self, h.Nonce))
}

// greeting is what this side says of itself; whole says that the sync moves all
// that differs, so that its Tau means something.
func (o *Options) greeting(whole bool) (g wire.Greeting) {
	if o.Greeting != nil {
		g = o.Greeting()
	}
	if !whole {
		g.Tau = 0
	}
	return g
}

// whole reports whether a sync that a Hello asks for moves all that differs.
func whole(h *wire.Hello) bool {
	return !h.DryRun && len(h.Prefix) == 0 && h.Span == (wire.Span{})
}

// heed hands the peer's greeting to the node.
func (s *party) heed(theirs wire.Greeting) error {
	s.link.report.Theirs = theirs
	if s.opts.Heed == nil {
		return nil
	}
	return s.opts.Heed(theirs)
}

func sameProof(a, b wire.Proof) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// hello opens the sync.
func (a *initiator) hello() error {
	m := &wire.Hello{
		Version:   wire.Version,
		Mapping:   rateless.MappingVersion,
		Namespace: a.opts.Keys.ID,
		Nonce:     a.opts.Nonce,
		Proof:     a.opts.proof("initiator", a.opts.Self, a.opts.Remote, a.opts.Nonce),
		Direction: a.opts.Direction,
		Method:    a.opts.Method,
		DryRun:    a.opts.DryRun,
		Prefix:    a.opts.Prefix,
		Span:      a.opts.Span,
		Sum:       a.here,
	}
	m.ListsMayDiffer = a.opts.ListsMayDiffer
	if err := a.sketch(m); err != nil {
		return err
	}
	m.Greeting = a.opts.greeting(whole(m)) // last: it tells the time
	return a.link.send(m)
}

// welcome checks that a member answers.
func (a *initiator) welcome() error {
	w, err := due[*wire.Welcome](a.link)
	if err != nil {
		return err
	}
	if !sameProof(w.Proof, a.opts.proof("responder", a.opts.Self, a.opts.Remote, a.opts.Nonce, w.Nonce)) {
		return ErrDenied
	}
	if err := a.heed(w.Greeting); err != nil {
		return err
	}
	a.there, a.key = w.Sum, rangeKey(a.opts.proof("ranges", a.opts.Self, a.opts.Remote, a.opts.Nonce, w.Nonce))
	return conceivable(a.there)
}

// greet reads the Hello and answers it. Until the proof has been checked
// nothing is read from the store and nothing is kept.
func (b *responder) greet() error {
	h, err := due[*wire.Hello](b.link)
	if err != nil {
		return err
	}
	if err := CheckVersion(h); err != nil {
		return err
	}
	if !b.opts.proves(h) {
		return ErrDenied
	}
	if err := b.heed(h.Greeting); err != nil {
		return err
	}
	if len(h.Cells) > MaxFirstCells {
		return violation("a Hello with %d cells; at most %d are allowed", len(h.Cells), MaxFirstCells)
	}
	b.hello, b.there, b.key = h, h.Sum, rangeKey(b.opts.proof("ranges", b.opts.Remote, b.opts.Self, h.Nonce, b.opts.Nonce))
	if err := conceivable(b.there); err != nil {
		return err
	}
	if err := b.link.reserve(baseBytes + cellBytes*int64(len(h.Cells))); err != nil {
		return err
	}
	if err := b.sketch(); err != nil {
		return err
	}
	greeting := b.opts.greeting(whole(h))
	b.aim(h.Direction != wire.Push, h.Direction != wire.Pull)
	b.pulls, b.take.prefix, b.take.span = h.Direction == wire.Pull, h.Prefix, h.Span
	return b.link.send(&wire.Welcome{
		Nonce:    b.opts.Nonce,
		Proof:    b.opts.proof("responder", b.opts.Remote, b.opts.Self, h.Nonce, b.opts.Nonce),
		Sum:      b.here,
		Greeting: greeting,
	})
}

// conceivable refuses the digest of a set that has no records, other than 0.
// The peer would be sent everything, and have nothing to prove.
func conceivable(s dbadapter.Sum) error {
	if s.Records == 0 && s.Digest != (dbadapter.Digest{}) {
		return violation("no records were announced, and the digest of some")
	}
	return nil
}

// CheckVersion is ErrVersion where a Hello speaks a protocol, or maps indices to
// cells, in a way that this program does not. A responder can call it before it
// knows which namespace is meant.
func CheckVersion(h *wire.Hello) error {
	if h.Version != wire.Version || h.Mapping != rateless.MappingVersion {
		return fmt.Errorf("%w: this side speaks version %d, mapping %d", ErrVersion, wire.Version, rateless.MappingVersion)
	}
	return nil
}
