package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
)

// vectors collects lines "name = value", with comments between them.
type vectors struct{ strings.Builder }

func (v *vectors) say(format string, args ...any) { fmt.Fprintf(v, "# "+format+"\n", args...) }
func (v *vectors) hex(name string, b []byte) {
	fmt.Fprintf(v, "%s = %s\n", name, hex.EncodeToString(b))
}
func (v *vectors) text(name, s string) { fmt.Fprintf(v, "%s = %s\n", name, s) }

// vectorKey is the Ed25519 key of a seed of 32 equal bytes.
func vectorKey(b byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{b}, ed25519.SeedSize))
}

// counting are the bytes from, from + 1, …
func counting(from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(from + i)
	}
	return b
}

// vectorNode is the node of a seed at a fixed time; its randomness is a constant.
func vectorNode(seed byte) *Node {
	key := vectorKey(seed)
	return New(Config{
		ID:     IDOf(key.Public().(ed25519.PublicKey)),
		Sign:   func(message []byte) ([]byte, error) { return ed25519.Sign(key, message), nil },
		Now:    func() time.Time { return time.Unix(1_800_000_000, 0) },
		Random: func(Purpose) uint64 { return 0x0102030405060708 },
		Places: syncing.Places{Sessions: 1, PerPeer: 1, Greetings: 1},
	})
}

// The bytes that identities, signatures, tickets and joins are made of never
// change unnoticed: other programs and other nodes depend on them.
// docs/protocol describes them.
func TestGolden(t *testing.T) {
	var v vectors
	fail := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}

	v.say("Identities. The Ed25519 seeds are 32 bytes 07 (the inviter) and 32 bytes 08 (the joiner).")
	inviter, joiner := vectorNode(7), vectorNode(8)
	for _, n := range []struct {
		name string
		id   ID
	}{{"inviter", inviter.ID}, {"joiner", joiner.ID}} {
		writer, err := n.id.Writer()
		fail(err)
		v.hex("peer id of the "+n.name, []byte(n.id))
		v.text("in text", n.id.String())
		v.text("writer id", writer.String())
	}

	v.say("Signatures by the inviter, in the namespace whose secret is the bytes 01 02 … 20.")
	secret := dbadapter.Secret(counting(1, 32))
	id := dbadapter.NamespaceIDOf(secret, []byte(inviter.ID))
	v.hex("namespace id", id[:])
	writer, err := inviter.ID.Writer()
	fail(err)
	for _, r := range []struct {
		name   string
		record dbadapter.Record
	}{
		{"key \"k\", value \"value\", clock 0102030405060708, the inviter as writer, incarnation 1112131415161718", dbadapter.Record{
			Key: []byte("k"), Value: []byte("value"),
			Version: dbadapter.Version{Clock: 0x0102030405060708, Writer: writer, Incarnation: 0x1112131415161718},
		}},
		{"the same, deleted", dbadapter.Record{
			Key: []byte("k"), Deleted: true,
			Version: dbadapter.Version{Clock: 0x0102030405060708, Writer: writer, Incarnation: 0x1112131415161718},
		}},
		{"key \"k\", no value, dated: clock 0102030405060000, neither writer nor incarnation; the signer is the inviter", dbadapter.Record{
			Key: []byte("k"), Version: dbadapter.Version{Clock: 0x0102030405060000},
		}},
		{"the first, expires 0203040506070000, replaces writer 1 at clock 2 and the inviter at clock 0102030405060707", dbadapter.Record{
			Key: []byte("k"), Value: []byte("value"),
			Version: dbadapter.Version{Clock: 0x0102030405060708, Writer: writer, Incarnation: 0x1112131415161718},
			Expires: 0x0203040506070000, Replaces: []dbadapter.Replaced{{Writer: 1, Clock: 2}, {Writer: writer, Clock: 0x0102030405060707}},
		}},
	} {
		v.say("%s", r.name)
		signed := SignedBytes(id, &r.record)
		v.hex("signed bytes", signed)
		signature, err := inviter.Sign(signed)
		fail(err)
		v.hex("signature", signature)
	}

	v.say("A ticket of the inviter: name \"notes\", role write, expires 1800086400 (Unix seconds),")
	v.say("token 20 21 … 3f, address /ip4/127.0.0.1/tcp/4101. After its prefix, the text is base32 of the CBOR.")
	address := [][]byte{{0x04, 127, 0, 0, 1, 0x06, 0x10, 0x05}}
	ticket := membership.Ticket{
		Inviter: inviter.ID, Addrs: address, Namespace: id, Name: "notes",
		Token: [32]byte(counting(0x20, 32)), Role: RoleWrite, Expires: time.Unix(1_800_086_400, 0),
	}
	text, err := ticket.Encode()
	fail(err)
	v.hex("CBOR", ticketBytes(text))
	v.text("ticket", text)

	v.say("The joiner presents it, from /ip4/127.0.0.1/tcp/4102, at 1800000000. Before each message on the stream")
	v.say("stands its length as a uvarint.")
	request, err := membership.RequestJoin(joiner.ID, &ticket, [][]byte{{0x04, 127, 0, 0, 1, 0x06, 0x10, 0x06}})
	fail(err)
	v.hex("request", request)
	state, err := inviter.Found(secret, "notes", Policy{})
	fail(err)
	hash := sha256.Sum256(ticket.Token[:])
	state.Invites = []membership.Invite{{Hash: hash[:], Role: RoleWrite, Expires: 1_800_086_401, Uses: 1}}
	store := memdb.New(memdb.Options{})
	defer store.Close()
	_, err = inviter.Open(context.Background(), Opening{Secret: secret, State: state, Store: store.Namespace, Save: func(*State) error { return nil }})
	fail(err)
	book := func(ID) [][]byte { return address }
	reply, _, err := inviter.AnswerJoin(context.Background(), joiner.ID, request, book)
	fail(err)
	v.say("the reply: the founding statement, of a skew of 5 minutes, and the grant, both of 1800000000; the inviter's address")
	v.hex("reply", reply)
	succeeds(t, second(joiner.ReadJoin(&ticket, reply)))
	denied, err := cbor.Marshal(membership.JoinReply{Version: membership.JoinVersion, Denied: membership.ErrTicketUnknown.Error()})
	fail(err)
	v.say("the reply to a token that is not known")
	v.hex("denied", denied)
	v.say("A pledge of the second of two members, which waits for nothing and has pledged once before.")
	pledge, err := (&watermark.Pledge{
		List: [16]byte(counting(0x40, 16)), Vector: []dbadapter.Timestamp{1_800_000_000_000 << 16, 1_800_000_001_000<<16 + 2},
		Promised: 1_800_000_000_000 << 16, Serial: 2,
	}).Encode()
	fail(err)
	v.hex("pledge", pledge)
	v.say("What a member says that holds the shards 0, 9 and 32, under a list of members.")
	held := shardsHeld{List: [16]byte(counting(0x40, 16)), Shards: []byte{1, 2, 0, 0, 1}}
	says, err := cbor.Marshal(held)
	fail(err)
	v.hex("h", says)
	back, err := readShardsHeld(says)
	fail(err)
	if back.List != held.List || !bit(back.Shards, 9) || bit(back.Shards, 10) || bit(back.Shards, 33) {
		t.Errorf("read as %+v", back)
	}
	golden.Compare(t, "testdata/golden.txt", v.String())
}

// The messages of a join never panic; a request without a ticket makes no
// member, and what a reply hands over is valid.
func FuzzJoin(f *testing.F) {
	for _, m := range []any{
		membership.JoinRequest{Version: membership.JoinVersion, Namespace: make([]byte, 16), Token: make([]byte, 32), Addrs: [][]byte{{4, 192, 0, 2, 1, 6, 15, 161}}},
		membership.JoinReply{Version: membership.JoinVersion, Denied: "no"},
		membership.JoinReply{
			Version: membership.JoinVersion, Secret: make([]byte, 32), Creator: []byte(idOf(1)), Statements: [][]byte{{1}},
			Addresses: []membership.Addresses{{ID: idOf(1), Addrs: [][]byte{{4, 192, 0, 2, 1, 6, 15, 161}}}},
		},
	} {
		f.Add(must(cbor.Marshal(m)))
	}
	inviter, joiner := newMachine(1), newMachine(9)
	ns := must(inviter.open(dbadapter.Secret{}, must(inviter.Found(dbadapter.Secret{}, "notes", Policy{}))))
	good := must(membership.ParseTicket(invite(ns, RoleWrite)))
	reply, _, err := inviter.AnswerJoin(context.Background(), joiner.ID, must(membership.RequestJoin(joiner.ID, good, nil)), func(ID) [][]byte { return nil })
	f.Add(must(reply, err))
	invite(ns, RoleRead)
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, _, err := inviter.AnswerJoin(context.Background(), joiner.ID, b, func(ID) [][]byte { return nil })
		if err == nil || len(ns.Members().Members()) != 2 {
			t.Errorf("a request without a ticket was answered: %x", reply)
		}
		ticket := &membership.Ticket{Inviter: inviter.ID, Name: "notes"}
		var r membership.JoinReply
		if roster.Unmarshal(b, &r) == nil && len(r.Secret) == len(dbadapter.Secret{}) {
			ticket.Namespace = dbadapter.NamespaceIDOf(dbadapter.Secret(r.Secret), r.Creator)
		}
		joined, err := joiner.ReadJoin(ticket, b)
		if err != nil {
			return
		}
		wantErr(t, joined.State.validate(), nil, "accepted, but not valid")
		wantErr(t, second(DecodeState(must(joined.State.Encode()))), nil, "what was accepted cannot be read from disk")
	})
}

// What is read from disk is valid, or an error.
func FuzzState(f *testing.F) {
	s := must(newMachine(1).Found(dbadapter.Secret{}, "notes", Policy{MaxSkew: time.Minute}))
	s.Invites = []membership.Invite{{Hash: make([]byte, 32), Role: RoleRead, Expires: 9, Uses: 1}}
	f.Add(must(s.Encode())[stateSum:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := DecodeState(b); err == nil {
			t.Error("a state without its checksum was read")
		}
		s, err := DecodeState(summed(b))
		if err != nil {
			return
		}
		again := must(s.Encode())
		back, err := DecodeState(again)
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}
