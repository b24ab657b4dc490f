package node

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/roster"
)

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
