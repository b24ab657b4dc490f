package peer

import (
	"bytes"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
)

// What parses as a ticket says the same when it is written and read again.
func FuzzTicket(f *testing.F) {
	id := seededKey(f, 1)
	addr := ma.StringCast("/ip4/192.0.2.1/tcp/4001")
	good := ticket{inviter: id.id, addrs: []ma.Multiaddr{addr}, namespace: dbadapter.NamespaceID{1}, name: "notes", role: RoleWrite, expires: time.Unix(1_800_000_000, 0)}
	text, err := good.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("syncd1")
	f.Add("syncd1aaaaaaaa")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseTicket(s)
		if err != nil {
			return
		}
		text, err := a.encode()
		if err != nil {
			t.Fatal(err)
		}
		b, err := parseTicket(text)
		if err != nil {
			t.Fatalf("its own text does not parse: %v", err)
		}
		if again, _ := b.encode(); again != text {
			t.Errorf("%q became %q", text, again)
		}
	})
}

// The messages of a join never panic, and never allocate what they announce.
func FuzzJoin(f *testing.F) {
	for _, m := range []any{
		joinRequest{joinVersion, make([]byte, 16), make([]byte, 32), [][]byte{ma.StringCast("/ip4/192.0.2.1/tcp/4001").Bytes()}},
		joinReply{Version: joinVersion, Denied: "no"},
		joinReply{Version: joinVersion, Secret: make([]byte, 32), Policy: statePolicy{MaxSkew: 1}, Members: []joinMember{{stateMember{[]byte(seededKey(f, 1).id), RoleAdmin, 7}, nil}}},
	} {
		var b bytes.Buffer
		if err := writeControl(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add(append(varint.ToUvarint(1<<40), 1, 2, 3))
	self := seededKey(f, 9)
	inviter := seededKey(f, 1)
	f.Fuzz(func(t *testing.T, b []byte) {
		var request joinRequest
		if readControl(bytes.NewReader(b), maxJoinRequest, &request) == nil {
			parseAddrs(request.Addrs)
		}
		var reply joinReply
		if readControl(bytes.NewReader(b), maxJoinReply, &reply) != nil {
			return
		}
		n := &Node{self: self}
		tk := &ticket{inviter: inviter.id, name: "notes"}
		if len(reply.Secret) == len(dbadapter.Secret{}) {
			tk.namespace = dbadapter.NamespaceIDOf(dbadapter.Secret(reply.Secret))
		}
		if _, s, err := n.readJoin(tk, &reply); err == nil {
			if err := s.validate(); err != nil {
				t.Errorf("accepted, but not valid: %v", err)
			}
		}
	})
}

// What is read from disk is valid, or an error.
func FuzzState(f *testing.F) {
	s := state{Format: stateFormat, Name: "notes", Policy: statePolicy{MaxSkew: time.Minute}}
	if err := s.setMember(seededKey(f, 1).id, RoleAdmin, 7); err != nil {
		f.Fatal(err)
	}
	s.Invites = []stateInvite{{make([]byte, 32), RoleRead, 9, nil}}
	b, err := cbor.Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var s state
		if decodeState("file", b, &s) != nil || s.validate() != nil {
			return
		}
		again, err := cbor.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back state
		if err := decodeState("file", again, &back); err != nil || back.validate() != nil {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}
