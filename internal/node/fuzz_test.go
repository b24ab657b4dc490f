package node

import (
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// What parses as a ticket says the same when it is written and read again.
func FuzzTicket(f *testing.F) {
	good := someTicket()
	f.Add(must(good.encode()))
	f.Add("syncd1")
	f.Add("syncd1aaaaaaaa")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseTicket(s)
		if err != nil {
			return
		}
		text, err := a.encode()
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseTicket(text)
		if err != nil {
			t.Fatalf("its own text does not parse: %v", err)
		}
		if again, _ := b.encode(); again != text || !reflect.DeepEqual(a, b) {
			t.Errorf("%q became %q", text, again)
		}
	})
}

// The messages of a join never panic; a request without a ticket makes no
// member, and what a reply hands over is valid.
func FuzzJoin(f *testing.F) {
	for _, m := range []any{
		joinRequest{joinVersion, make([]byte, 16), make([]byte, 32), [][]byte{{4, 192, 0, 2, 1, 6, 15, 161}}},
		joinReply{Version: joinVersion, Denied: "no"},
		joinReply{
			Version: joinVersion, Secret: make([]byte, 32), Policy: storedPolicy{MaxSkew: 1},
			Members: []joinMember{{storedMember{[]byte(idOf(1)), RoleAdmin, 7}, nil}, {storedMember{[]byte(idOf(9)), RoleRead, 7}, nil}},
		},
	} {
		f.Add(must(cbor.Marshal(m)))
	}
	inviter, joiner := newMachine(1), newMachine(9)
	ns := must(inviter.open(dbadapter.Secret{}, must(NewState("notes", Policy{}, inviter.ID, noon))))
	invite(ns, RoleRead)
	f.Fuzz(func(t *testing.T, b []byte) {
		reply, _, err := inviter.AnswerJoin(joiner.ID, b, func(ID) [][]byte { return nil })
		if err == nil || len(ns.Members().List()) != 1 {
			t.Errorf("a request without a ticket was answered: %x", reply)
		}
		ticket := &Ticket{Inviter: inviter.ID, Name: "notes"}
		var r joinReply
		if strict.Unmarshal(b, &r) == nil && len(r.Secret) == len(dbadapter.Secret{}) {
			ticket.Namespace = dbadapter.NamespaceIDOf(dbadapter.Secret(r.Secret), r.Creator)
		}
		joined, err := joiner.ReadJoin(ticket, b)
		if err != nil {
			return
		}
		if err := joined.State.validate(); err != nil {
			t.Errorf("accepted, but not valid: %v", err)
		}
		if _, err := DecodeState(must(joined.State.Encode())); err != nil {
			t.Errorf("what was accepted cannot be read from disk: %v", err)
		}
		if len(joined.Members) != len(joined.State.Members)-1 {
			t.Errorf("%d addresses for %d members", len(joined.Members), len(joined.State.Members))
		}
	})
}

// What is read from disk is valid, or an error.
func FuzzState(f *testing.F) {
	s := must(NewState("notes", Policy{MaxSkew: time.Minute}, idOf(1), noon))
	s.Invites = []storedInvite{{make([]byte, 32), RoleRead, 9, nil}}
	f.Add(must(s.Encode())[stateSum:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := DecodeState(b); err == nil {
			t.Error("a state without its checksum was read")
		}
		s, err := DecodeState(summed(b))
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeState(again)
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("what was read cannot be written and read again: %v", err)
		}
	})
}
