package peer

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
)

// seededKey is the same key for the same seed, on every machine.
func seededKey(t testing.TB, seed byte) identity {
	t.Helper()
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	id, err := newIdentity(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The bytes that are signed, and a node's writer id, never change: the records
// of all namespaces depend on them.
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
	if got := hex.EncodeToString(signedBytes(ns, &r)); got != want {
		t.Errorf("signed bytes\n%s, want\n%s", got, want)
	}
	// A byte that moves from the key to the value makes other bytes.
	moved := r
	moved.Key, moved.Value = []byte("ke"), []byte("yvalue")
	grave := r
	grave.Deleted, grave.Value = true, nil
	empty := r
	empty.Value = nil
	seen := map[string]bool{}
	for _, r := range []dbadapter.Record{r, moved, grave, empty} {
		seen[string(signedBytes(ns, &r))] = true
	}
	if len(seen) != 4 {
		t.Error("two records have the same signed bytes")
	}
	id := seededKey(t, 7)
	if got, want := id.writer.String(), "a349a3f9c6e2f7b3"; got != want {
		t.Errorf("writer id %s, want %s", got, want)
	}
	writes := []dbadapter.Write{{Record: dbadapter.Hashed{Record: r}}, {Record: dbadapter.Hashed{Record: moved}}}
	if err := sign(id.key, ns, writes); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(writes[0].Record.Signature) // Ed25519 is deterministic
	if got, want := hex.EncodeToString(sum[:8]), "857a6205079ebd4f"; got != want {
		t.Errorf("hash of the signature %s, want %s", got, want)
	}
	m := Member{ID: id.id}
	if !m.signed(signedBytes(ns, &moved), writes[1].Record.Signature) || m.signed(signedBytes(ns, &r), writes[1].Record.Signature) {
		t.Error("a signature fits the wrong record, or not the right one")
	}
}

// scriptedStream is a stream whose deadlines and reads are the test's.
type scriptedStream struct {
	network.Stream
	deadlines []time.Time
}

func (s *scriptedStream) SetReadDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func (s *scriptedStream) Read(b []byte) (int, error) { return 1, nil }

// A peer that drips bytes gains the time that they take at the least rate, and
// no more: the deadline of a frame does not move with each byte.
func TestDripGainsNoTime(t *testing.T) {
	s := &scriptedStream{}
	p := pace{stream: s, idle: time.Second, rate: 1000}
	p.begin()
	for range 500 {
		if _, err := (*pacedReader)(&p).Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := s.deadlines[0].Sub(p.start), s.deadlines[499].Sub(p.start); first != time.Second || last != time.Second+499*time.Millisecond {
		t.Errorf("the deadline moved from %s to %s", first, last)
	}
}

func (s *scriptedStream) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func (s *scriptedStream) Write(b []byte) (int, error) { return len(b), nil }

// A peer that takes nothing has the idle time, and what the bytes take at the
// least rate.
func TestWritesHaveADeadline(t *testing.T) {
	s := &scriptedStream{}
	p := pace{stream: s, idle: time.Hour, rate: 1}
	before := time.Now()
	if _, err := (*pacedWriter)(&p).Write(make([]byte, 3600)); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	if len(s.deadlines) != 1 || s.deadlines[0].Before(before.Add(2*time.Hour)) || s.deadlines[0].After(after.Add(2*time.Hour)) {
		t.Errorf("deadlines %v of a write at %s", s.deadlines, before)
	}
}

// A dated record that nobody has signed costs a look through all members, but
// not for ever.
func TestStrayedRecordsAreBounded(t *testing.T) {
	s := &state{Policy: statePolicy{MaxSkew: time.Minute}}
	var ids []identity
	for i := range 20 {
		ids = append(ids, seededKey(t, byte(i)))
		if err := s.setMember(ids[i].id, RoleWrite, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.setMember(ids[19].id, RoleRead, 0); err != nil {
		t.Fatal(err)
	}
	r, err := newRoster(s)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("message")
	by := func(i int) []byte {
		signature, err := ids[i].key.Sign(message)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	var g signers
	for i := range 19 {
		if !g.verify(r, ids[3].id, message, by(i)) {
			t.Errorf("the signature of member %d was not found", i)
		}
	}
	if g.verify(r, ids[3].id, message, by(19)) {
		t.Error("a reader's signature was taken")
	}
	if got := len(g.candidates(r, ids[3].id)); got != 20 {
		t.Errorf("%d candidates", got)
	}
	for range maxStrayed {
		if g.verify(r, ids[3].id, message, make([]byte, 64)) {
			t.Error("a signature of zeros was taken")
		}
	}
	if got := len(g.candidates(r, ids[3].id)); got > recentSigners+1 {
		t.Errorf("%d candidates after %d strayed records", got, maxStrayed)
	}
	if !g.verify(r, ids[3].id, message, by(3)) || !g.verify(r, ids[3].id, message, by(18)) {
		t.Error("the sender's own, or the last signer's, was not taken")
	}
}

func TestRejectionsAreBounded(t *testing.T) {
	var rs rejections
	pair := func(i int) dbadapter.Pair { return dbadapter.Pair{Index: dbadapter.Index(i + 1), Checksum: 1} }
	for i := range MaxRejections + 10 {
		rs.add(pair(i), Rejection{Key: fmt.Append(nil, i)})
		rs.add(pair(i), Rejection{Key: fmt.Append(nil, i)})
	}
	if list := rs.list(); len(list) != MaxRejections || rs.count() != MaxRejections || string(list[0].Key) != "10" {
		t.Errorf("%d remembered, the first %q", len(list), list[0].Key)
	}
	rs.remove(pair(20))
	rs.remove(pair(20))
	if rs.count() != MaxRejections-1 || len(rs.list()) != MaxRejections-1 {
		t.Errorf("%d remembered", rs.count())
	}
}

func TestInvitesAreBounded(t *testing.T) {
	s := &state{}
	for i := range 10 {
		s.Invites = append(s.Invites, stateInvite{Expires: int64(i) * 1000})
	}
	s.dropOldInvites(time.Unix(5500, 0).Add(expiredInvites))
	if len(s.Invites) != 4 {
		t.Errorf("%d tickets are left", len(s.Invites))
	}
}

// A ticket that is redeemed again, since the answer may have been lost, changes
// no role, however the role has come to be another.
func TestRedeemedAgainChangesNothing(t *testing.T) {
	n, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	id, token := seededKey(t, 1).id, []byte("token")
	hash := sha256.Sum256(token)
	err = ns.update(func(s *state) error {
		s.Invites = append(s.Invites, stateInvite{Hash: hash[:], Role: RoleAdmin, Expires: time.Now().Add(time.Hour).Unix()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []Role{RoleAdmin, RoleRead, RoleWrite} {
		if role != RoleAdmin {
			if err := ns.update(func(s *state) error { return s.setMember(id, role, 0) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := ns.redeem(id, token); err != nil {
			t.Fatal(err)
		}
		if got := ns.roster.Load().byID[id].Role; got != role {
			t.Errorf("the role is %s, not %s", got, role)
		}
	}
}

func TestWriterIDsCollide(t *testing.T) {
	s := &state{}
	id := seededKey(t, 1)
	if err := s.setMember(id.id, RoleWrite, 0); err != nil {
		t.Fatal(err)
	}
	s.Members = append(s.Members, s.Members[0]) // as if another key had the same
	if _, err := newRoster(s); !errors.Is(err, ErrDenied) {
		t.Errorf("two members with one writer id: %v", err)
	}
	for i := range MaxMembers {
		s.Members = append(s.Members, stateMember{ID: fmt.Append(nil, i)})
	}
	if err := s.setMember(seededKey(t, 2).id, RoleRead, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("a member too many: %v", err)
	}
}

func TestNewerFormatIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	newer := ns.roster.Load().state.clone()
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	newer.Format++
	if err := saveState(namespaceDir(dir, ns.keys.ID), newer); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a newer state: %v", err)
	}
	newer.Format = stateFormat
	if err := saveState(namespaceDir(dir, ns.keys.ID), newer); err != nil {
		t.Fatal(err)
	}
	data, err := cbor.Marshal(bookFile{Format: stateFormat + 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, addressBookFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, dbadapter.ErrFormat) {
		t.Errorf("a newer address book: %v", err)
	}
}

// What a peer has refused is offered again after a while.
func TestAsidesExpire(t *testing.T) {
	var as asides
	now := time.Unix(1_800_000_000, 0)
	first := as.get("a", now)
	if as.get("a", now.Add(asideLife-1)) != first || as.get("b", now) == first {
		t.Error("it is forgotten too early, or shared")
	}
	second := as.get("a", now.Add(asideLife))
	if second == first {
		t.Error("it is remembered for ever")
	}
	if as.forget(); as.get("a", now.Add(asideLife)) == second {
		t.Error("it was not forgotten")
	}
}
