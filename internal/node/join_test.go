package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// A reply hands over what the inviter has: the secret, the policy, the members
// and where they are; the joiner opens the same namespace.
func TestJoin(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{MaxSkew: time.Minute, Unsigned: true})
	if err := sa.SetMember(idOf(3), RoleWrite); err != nil {
		t.Fatal(err)
	}
	ticket := must(ParseTicket(invite(sa, RoleWrite)))
	request := must(b.RequestJoin(ticket, [][]byte{{7, 7}}))
	if _, err := a.RequestJoin(ticket, nil); !errors.Is(err, ErrDenied) {
		t.Errorf("a ticket of one's own: %v", err)
	}
	where := func(id ID) [][]byte { return [][]byte{[]byte(id[len(id)-1:])} }
	reply, joiner, err := a.AnswerJoin(b.ID, request, where)
	if err != nil || fmt.Sprint(joiner) != "[[7 7]]" {
		t.Fatalf("joiner at %v, %v", joiner, err)
	}
	joined := must(b.ReadJoin(ticket, reply))
	if joined.Secret != sa.Keys.Secret || joined.State.Name != "notes" || joined.State.Policy != sa.Members().state.Policy {
		t.Errorf("joined %+v", joined)
	}
	if len(joined.Members) != 2 || joined.Members[0].ID != a.ID || string(joined.Members[0].Addrs[0]) != string(where(a.ID)[0]) || joined.Members[1].ID != idOf(3) {
		t.Errorf("the others are at %+v", joined.Members)
	}
	sb := must(b.open(joined.Secret, joined.State))
	if got, want := fmt.Sprint(sb.Members().List()), fmt.Sprint(sa.Members().List()); got != want || sb.Keys.ID != sa.Keys.ID {
		t.Errorf("the members are %s\nwant %s", got, want)
	}
	if len(sb.Members().state.Invites) != 0 {
		t.Error("the tickets were handed over")
	}
}

// Each fault of a reply is seen: nothing is opened on the strength of it.
func TestHostileInviter(t *testing.T) {
	b := newMachine(2)
	secret := dbadapter.Secret{1, 2, 3}
	ticket := &Ticket{Inviter: idOf(1), Namespace: dbadapter.NamespaceIDOf(secret, []byte(idOf(1))), Name: "notes"}
	member := func(id ID, role Role) joinMember { return joinMember{storedMember{[]byte(id), role, 1}, nil} }
	read := func(edit func(*joinReply)) error {
		r := joinReply{
			Version: joinVersion, Secret: secret[:], Creator: []byte(idOf(1)), Policy: storedPolicy{MaxSkew: time.Minute},
			Members: []joinMember{member(idOf(1), RoleAdmin), member(b.ID, RoleWrite)},
		}
		edit(&r)
		_, err := b.ReadJoin(ticket, must(cbor.Marshal(r)))
		return err
	}
	if err := read(func(*joinReply) {}); err != nil {
		t.Errorf("without a fault: %v", err)
	}
	for name, edit := range map[string]func(r *joinReply){
		"another secret":  func(r *joinReply) { r.Secret = make([]byte, 32) },
		"a short secret":  func(r *joinReply) { r.Secret = r.Secret[:31] },
		"no secret":       func(r *joinReply) { r.Secret = nil },
		"no skew":         func(r *joinReply) { r.Policy.MaxSkew = 0 },
		"a negative skew": func(r *joinReply) { r.Policy.MaxSkew = -1 },
		"not the joiner":  func(r *joinReply) { r.Members = r.Members[:1] },
		"not the inviter": func(r *joinReply) { r.Members = r.Members[1:] },
		"no admin":        func(r *joinReply) { r.Members[0].Role = RoleWrite },
		"a member twice":  func(r *joinReply) { r.Members = append(r.Members, r.Members[0]) },
		"a role too high": func(r *joinReply) { r.Members[0].Role = 9 },
		"no role":         func(r *joinReply) { r.Members[1].Role = 0 },
		"no id":           func(r *joinReply) { r.Members = append(r.Members, member("", RoleRead)) },
		"another version": func(r *joinReply) { r.Version = 9 },
		"a refusal":       func(r *joinReply) { r.Denied = "go away\x1b[31m" },
		"too many members": func(r *joinReply) {
			for _, m := range manyMembers(MaxMembers + 3)[3:] {
				r.Members = append(r.Members, joinMember{m, nil})
			}
		},
	} {
		err := read(edit)
		if err == nil || name == "a refusal" != errors.Is(err, ErrDenied) && name != "a member twice" || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.ReadJoin(ticket, []byte{0xa1, 0x01, 0x61}); err == nil {
		t.Error("what is not CBOR was read")
	}
}

// What is not a ticket of this node is refused in words that tell nothing of what
// is here, whatever its form.
func TestAnswerJoinTellsStrangersNothing(t *testing.T) {
	a := newMachine(1)
	sa := a.create("notes", Policy{})
	ticket := must(ParseTicket(invite(sa, RoleRead)))
	ask := func(q joinRequest) (joinReply, error) {
		b, _, err := a.AnswerJoin(idOf(2), must(cbor.Marshal(q)), func(ID) [][]byte { return nil })
		var r joinReply
		if failed := strict.Unmarshal(b, &r); failed != nil {
			t.Error(failed)
		}
		return r, err
	}
	for _, length := range []int{0, 1, 8, 15, 16, 17, 32, 500} {
		for _, token := range []int{0, 1, 31, 32, 33, 500} {
			namespace := make([]byte, length)
			copy(namespace, ticket.Namespace[:])
			r, err := ask(joinRequest{joinVersion, namespace, make([]byte, token), nil})
			if !errors.Is(err, errTicketUnknown) || r.Denied != errTicketUnknown.Error() || r.Secret != nil || r.Members != nil {
				t.Errorf("a namespace of %d bytes and a token of %d: %+v, %v", length, token, r, err)
			}
		}
	}
	// Another version of the protocol is answered with this one's.
	r, err := ask(joinRequest{joinVersion + 1, ticket.Namespace[:], ticket.Token[:], nil})
	if err == nil || r.Version != joinVersion || r.Denied != "" || r.Secret != nil {
		t.Errorf("another version: %+v, %v", r, err)
	}
	// What goes wrong here stays here.
	a.save = func(*State) error { return errors.New("/home/alice is full") }
	if r, err := ask(joinRequest{joinVersion, ticket.Namespace[:], ticket.Token[:], nil}); err == nil || r.Denied == "" || strings.Contains(r.Denied, "alice") || r.Secret != nil {
		t.Errorf("a disk that is full: %+v, %v", r, err)
	}
	if reply, _, err := a.AnswerJoin(idOf(2), []byte("nonsense"), nil); err == nil || reply != nil {
		t.Errorf("nonsense was answered: %x, %v", reply, err)
	}
	// A namespace that is being dropped is not there.
	a.save = nil
	marked := false
	if err := sa.Abandon(func() error { marked = true; return nil }); err != nil || !marked {
		t.Fatal(err)
	}
	if r, err := ask(joinRequest{joinVersion, ticket.Namespace[:], ticket.Token[:], nil}); !errors.Is(err, errTicketUnknown) || r.Secret != nil {
		t.Errorf("a namespace that is gone: %+v, %v", r, err)
	}
	if err := sa.SetMember(idOf(2), RoleRead); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a change of a namespace that is gone: %v", err)
	}
}

// A list from another admin adds members and gives greater roles; it takes no
// role away. An inviter that this node does not have as an admin adds nothing.
func TestMerge(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	for seed, role := range map[int]Role{2: RoleAdmin, 3: RoleWrite, 4: RoleRead, 5: RoleAdmin} {
		if err := ns.SetMember(idOf(seed), role); err != nil {
			t.Fatal(err)
		}
	}
	list := func(roles map[int]Role) *State {
		s := &State{Format: StateFormat, Name: "theirs", Policy: storedPolicy{Unsigned: true, MaxSkew: time.Hour}}
		for seed, role := range roles {
			s.Members = append(s.Members, storedMember{[]byte(idOf(seed)), role, 77})
		}
		return s
	}
	before := fmt.Sprint(ns.Members().List())
	for _, inviter := range []int{3, 4, 9} { // a writer, a reader, a stranger
		err := ns.Merge(idOf(inviter), list(map[int]Role{inviter: RoleAdmin, 8: RoleAdmin}))
		if after := fmt.Sprint(ns.Members().List()); !errors.Is(err, ErrDenied) || after != before {
			t.Errorf("invited by node %d: %v; members %s, were %s", inviter, err, after, before)
		}
	}
	policy := ns.Members().Policy()
	if err := ns.Merge(idOf(2), list(map[int]Role{1: RoleRead, 2: RoleRead, 3: RoleAdmin, 4: RoleRead, 6: RoleWrite})); err != nil {
		t.Fatal(err)
	}
	for seed, want := range map[int]Role{1: RoleAdmin, 2: RoleAdmin, 3: RoleAdmin, 4: RoleRead, 5: RoleAdmin, 6: RoleWrite, 9: 0} {
		if got := ns.Members().Role(idOf(seed)); got != want {
			t.Errorf("node %d has the role %s, want %s", seed, got, want)
		}
	}
	if ns.Members().Name() != "notes" || ns.Members().Policy() != policy {
		t.Error("a list of members changed the name, or the policy")
	}
	// A list of nonsense adds nothing.
	bad := list(map[int]Role{7: RoleRead})
	bad.Members = append(bad.Members, storedMember{[]byte("no id"), RoleRead, 0})
	if err := ns.Merge(idOf(2), bad); err == nil || ns.Members().Has(idOf(7), RoleRead) {
		t.Errorf("a malformed member: %v", err)
	}
}
