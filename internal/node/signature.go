package node

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/signature"
)

// signatureDomain keeps a record's signature from meaning anything elsewhere.
const signatureDomain = "syncd record signature 1\x00"

// SignedBytes is what a writer signs: the namespace and all of the record. Each
// field of variable length is behind its length, so no byte can move from one to
// the next.
func SignedBytes(ns dbadapter.NamespaceID, r *dbadapter.Record) []byte {
	return appendSigned(make([]byte, 0, signedSize(r)), ns, r)
}

func signedSize(r *dbadapter.Record) int {
	return len(signatureDomain) + len(dbadapter.NamespaceID{}) + 4 + len(r.Key) + dbadapter.VersionSize + 1 + r.OptionalSize() + 8 + len(r.Value)
}

func appendSigned(b []byte, ns dbadapter.NamespaceID, r *dbadapter.Record) []byte {
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

// signedTogether is how many writes are signed together: a third of a millisecond, in
// which nothing else gets the processor.
const signedTogether = 32

// sign signs this node's writes. A record whose version has no writer names its
// signer beside it.
func (p *Part) sign(writes []dbadapter.Write) (failed error) {
	n := p.ns.node
	if len(writes) == 1 {
		n.Turn(func() { failed = p.signPiece(writes) })
		return failed
	}
	var mu sync.Mutex
	pieces := slices.Collect(slices.Chunk(writes, signedTogether))
	n.Each(len(pieces), func(i int) {
		if err := p.signPiece(pieces[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = err
		}
	})
	return failed
}

func (p *Part) signPiece(writes []dbadapter.Write) error {
	size := 0
	for i := range writes {
		size += signedSize(&writes[i].Record.Record)
	}
	b, messages := make([]byte, 0, size), make([][]byte, len(writes))
	for i := range writes {
		start := len(b)
		b = appendSigned(b, p.Keys.ID, &writes[i].Record.Record)
		messages[i] = b[start:]
	}
	made, err := p.ns.node.signAll(messages)
	if err != nil {
		return err
	}
	for i := range writes {
		r := &writes[i].Record
		r.Signature = made[i]
		if r.Version.Writer == 0 {
			r.Signer = p.ns.self
		}
	}
	return nil
}

func (n *Node) signAll(messages [][]byte) (made [][]byte, err error) {
	if n.SignAll != nil && len(messages) > 1 {
		return n.SignAll(messages), nil
	}
	made = make([][]byte, len(messages))
	for i := range messages {
		if made[i], err = n.Sign(messages[i]); err != nil {
			return nil, err
		}
	}
	return made, nil
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

// verification collects what must be verified of several records. All that was signed lies
// in one piece of memory.
type verification struct {
	namespace dbadapter.NamespaceID
	records   []dbadapter.Hashed
	checks    []signature.Check
	writers   []ID
	places    []int // of checks among the records
	signed    []byte
}

// begin makes room for all of the records. Those of a namespace without signatures need
// none.
func (v *verification) begin() {
	size, n := 0, len(v.records)
	for i := range v.records {
		size += signedSize(&v.records[i].Record)
	}
	v.checks, v.writers, v.places = make([]signature.Check, 0, n), make([]ID, 0, n), make([]int, 0, n)
	v.signed = make([]byte, 0, size)
}

// add adds the signature of the record at a place, if it can be the writer's.
func (v *verification) add(writer ID, place int) bool {
	r := &v.records[place].Record
	if len(r.Signature) != dbadapter.SignatureSize {
		return false
	}
	if v.checks == nil {
		v.begin()
	}
	var key ed25519.PublicKey
	if last := len(v.writers) - 1; last >= 0 && v.writers[last] == writer {
		key = v.checks[last].Key
	} else {
		var err error
		if key, err = writer.PublicKey(); err != nil {
			return false
		}
	}
	start := len(v.signed)
	v.signed = appendSigned(v.signed, v.namespace, r)
	message := v.signed[start:len(v.signed):len(v.signed)]
	v.checks = append(v.checks, signature.Check{Key: key, Message: message, Signature: r.Signature})
	v.writers, v.places = append(v.writers, writer), append(v.places, place)
	return true
}

// verify reports whether a key made one signature.
func (n *Node) verify(key ed25519.PublicKey, message, made []byte) bool {
	return n.Verify([]signature.Check{{Key: key, Message: message, Signature: made}})[0]
}
