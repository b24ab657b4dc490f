package node

import (
	"crypto/ed25519"
	"encoding/binary"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/signature"
)

// signatureDomain keeps a record's signature from meaning anything elsewhere.
const signatureDomain = "syncd record signature 1\x00"

// SignedBytes is what a writer signs: the namespace and all of the record, each
// field of variable length behind its length, so that no byte can move from one
// to the next.
func SignedBytes(ns dbadapter.NamespaceID, r *dbadapter.Record) []byte {
	b := make([]byte, 0, len(signatureDomain)+len(ns)+4+len(r.Key)+dbadapter.VersionSize+1+r.OptionalSize()+8+len(r.Value))
	b = append(b, signatureDomain...)
	b = append(b, ns[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Key)))
	b = append(b, r.Key...)
	b, _ = r.Version.AppendBinary(b) // never fails
	flags := r.OptionalFlags()
	if r.Deleted {
		flags |= 1
	}
	b = r.AppendOptional(append(b, flags))
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Value)))
	return append(b, r.Value...)
}

// sign signs this node's writes. A record whose version has no writer names its
// signer beside it.
func (p *Part) sign(writes []dbadapter.Write) error {
	var (
		mu     sync.Mutex
		failed error
	)
	n := p.ns.node
	one := func(i int) {
		r := &writes[i].Record
		signature, err := n.Sign(SignedBytes(p.Keys.ID, &r.Record))
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = err
			return
		}
		r.Signature = signature
		if r.Version.Writer == 0 {
			r.Signer = p.ns.self
		}
	}
	if len(writes) == 1 {
		n.Turn(func() { one(0) })
	} else {
		n.Each(len(writes), one)
	}
	return failed
}

// signed reports whether a node's key made the record's signature.
func (p *Part) signed(by ID, r *dbadapter.Record) bool {
	c, ok := p.check(by, r)
	return ok && p.ns.node.Verify([]signature.Check{c})[0]
}

// check is what must be verified of a record's signature, if it can be the node's.
func (p *Part) check(by ID, r *dbadapter.Record) (c signature.Check, ok bool) {
	key, err := by.PublicKey()
	if err != nil || len(r.Signature) != dbadapter.SignatureSize {
		return c, false
	}
	return signature.Check{Key: key, Message: SignedBytes(p.Keys.ID, r), Signature: r.Signature}, true
}

// verify reports whether a key made one signature.
func (n *Node) verify(key ed25519.PublicKey, message, made []byte) bool {
	return n.Verify([]signature.Check{{Key: key, Message: message, Signature: made}})[0]
}
