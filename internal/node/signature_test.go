package node

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/signature"
)

// The bytes that are signed, a node's id and its writer id never change: the
// records of all namespaces depend on them.
func TestSignatureVector(t *testing.T) {
	r := dbadapter.Record{
		Key: []byte("key"), Value: []byte("value"),
		Version: dbadapter.Version{Clock: 0x0102030405060708, Writer: 0x1112131415161718, Incarnation: 0x2122232425262728},
	}
	ns := dbadapter.NamespaceID{0: 0xaa, 15: 0xbb}
	const want = "73796e6364207265636f7264207369676e6174757265203100" + // "syncd record signature 1", 0
		"aa0000000000000000000000000000bb" + // namespace
		"00000003" + "6b6579" + // key
		"0102030405060708" + "1112131415161718" + "2122232425262728" + // version
		"00" + // flags
		"0000000000000005" + "76616c7565" // value
	if got := hex.EncodeToString(SignedBytes(ns, &r)); got != want {
		t.Errorf("signed bytes\n%s, want\n%s", got, want)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	id := IDOf(key.Public().(ed25519.PublicKey))
	if got, want := id.String(), "12D3KooWRawPbxPtP1eZaJpumGnyWX2DcUyd3RQnydr3eAto4Az7"; got != want {
		t.Errorf("id %s, want %s", got, want)
	}
	if got, want := must(id.Writer()).String(), "a349a3f9c6e2f7b3"; got != want {
		t.Errorf("writer id %s, want %s", got, want)
	}
	sum := sha256.Sum256(ed25519.Sign(key, SignedBytes(ns, &r))) // Ed25519 is deterministic
	if got, want := hex.EncodeToString(sum[:8]), "857a6205079ebd4f"; got != want {
		t.Errorf("hash of the signature %s, want %s", got, want)
	}
}

// Two records that differ in anything but the signature have different signed
// bytes; a byte that moves from one field to the next makes other bytes, too.
func TestSignedBytesAreInjective(t *testing.T) {
	ns := dbadapter.NamespaceID{1}
	base := dbadapter.Record{Key: []byte("key"), Value: []byte("value"), Version: dbadapter.Version{Clock: 1, Writer: 2, Incarnation: 3}}
	edits := map[string]func(*dbadapter.Record){
		"nothing":       func(*dbadapter.Record) {},
		"key to value":  func(r *dbadapter.Record) { r.Key, r.Value = []byte("ke"), []byte("yvalue") },
		"value to key":  func(r *dbadapter.Record) { r.Key, r.Value = []byte("keyv"), []byte("alue") },
		"deleted":       func(r *dbadapter.Record) { r.Deleted, r.Value = true, nil },
		"empty":         func(r *dbadapter.Record) { r.Value = nil },
		"a zero behind": func(r *dbadapter.Record) { r.Value = append([]byte("value"), 0) },
		"clock":         func(r *dbadapter.Record) { r.Version.Clock++ },
		"writer":        func(r *dbadapter.Record) { r.Version.Writer++ },
		"incarnation":   func(r *dbadapter.Record) { r.Version.Incarnation++ },
		"expires":       func(r *dbadapter.Record) { r.Expires = 7 << 16 },
		"expires in the value": func(r *dbadapter.Record) {
			r.Value = append([]byte{0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, "value"...)
		},
		"replaces":         func(r *dbadapter.Record) { r.Replaces = []dbadapter.Replaced{{Writer: 5, Clock: 0}} },
		"replaces another": func(r *dbadapter.Record) { r.Replaces = []dbadapter.Replaced{{Writer: 0, Clock: 5}} },
		"replaces in the value": func(r *dbadapter.Record) {
			r.Value = append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0}, "value"...)
		},
		"writer and incarnation": func(r *dbadapter.Record) { r.Version.Writer, r.Version.Incarnation = 3, 2 },
	}
	seen := map[string]string{string(SignedBytes(dbadapter.NamespaceID{2}, &base)): "another namespace"}
	for name, edit := range edits {
		r := base
		edit(&r)
		b := string(SignedBytes(ns, &r))
		if other, taken := seen[b]; taken {
			t.Errorf("%s and %s have the same signed bytes", name, other)
		}
		seen[b] = name
	}
	signed := base
	signed.Signature, signed.Signer = []byte{1}, 9
	if !bytes.Equal(SignedBytes(ns, &signed), SignedBytes(ns, &base)) {
		t.Error("a signature signs itself")
	}
}

// What this node writes is signed by it: dated records name it, others do not. A
// key that fails to sign ends the write.
func TestSign(t *testing.T) {
	m, ns := newNotes(Policy{})
	must(put(ns, "k", "v"))
	im := ns.Sets()[0].Import()
	im.Add(&Item{Key: []byte("dated"), Time: noon})
	succeeds(t, second(ns.Sets()[0].Store.Apply(t.Context(), must(im.Cut().Writes()))))
	for _, r := range records(ns) {
		if want := map[bool]dbadapter.WriterID{true: writerOf(1)}[string(r.Key) == "dated"]; r.Signer != want || !ns.Sets()[0].Signed(m.ID, &r) {
			t.Errorf("%q: signer %s, signature %x", r.Key, r.Signer, r.Signature)
		}
		if ns.Sets()[0].Signed(idOf(other), &r) || ns.Sets()[0].Signed("no id", &r) {
			t.Error("the signature is another's, too")
		}
	}
	failure := errors.New("the key is locked")
	m.Sign = func([]byte) ([]byte, error) { return nil, failure }
	wantErr(t, second(put(ns, "l", "v")), failure, "a key that fails")
	if len(records(ns)) != 2 {
		t.Error("a write that was not signed is there")
	}
}

// Each of many writes gets its own signature from a key that makes several at once.
func TestSignTogether(t *testing.T) {
	m, ns := newNotes(Policy{})
	m.SignAll = signature.NewSigner(m.key).SignAll
	m.Sign = func([]byte) ([]byte, error) { return nil, errors.New("one by one") }
	var items []Item
	for i := range 2*signedTogether + 2 {
		items = append(items, Item{Key: fmt.Append(nil, i), Time: []time.Time{{}, noon}[i%2]})
	}
	must(importAll(ns, items))
	for _, r := range records(ns) {
		if dated := r.Version.Writer == 0; !ns.Sets()[0].Signed(m.ID, &r) || dated != (r.Signer == writerOf(1)) {
			t.Errorf("%q: signer %s, signature %x", r.Key, r.Signer, r.Signature)
		}
	}
}

// What a signature costs, with a record of 256 bytes: making, checking, and
// finding the key in an id, which is part of checking.
func BenchmarkSignature(b *testing.B) {
	m, ns := newNotes(Policy{})
	r := signedBy(1, ns, dbadapter.Record{Key: make([]byte, 32), Value: make([]byte, 256)})
	message := SignedBytes(ns.Sets()[0].Keys.ID, &r)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			must(m.Sign(message))
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if !ns.Sets()[0].Signed(m.ID, &r) {
				b.Fatal("not signed")
			}
		}
	})
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			must(m.ID.PublicKey())
		}
	})
}
