package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/roster"
)

// A reply hands over what the inviter has: the secret, the policy, the members
// and where they are; the joiner opens the same namespace.
func TestJoin(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{MaxSkew: time.Minute, Unsigned: true})
	succeeds(t, setRole(sa, idOf(3), RoleWrite))
	ticket := must(membership.ParseTicket(invite(sa, RoleWrite)))
	request := must(membership.RequestJoin(b.ID, ticket, [][]byte{{7, 7}}))
	wantErr(t, second(membership.RequestJoin(a.ID, ticket, nil)), ErrDenied, "a ticket of one's own")
	where := func(id ID) [][]byte { return [][]byte{[]byte(id[len(id)-1:])} }
	reply, joiner, err := a.AnswerJoin(context.Background(), b.ID, request, where)
	if err != nil || fmt.Sprint(joiner) != "[[7 7]]" {
		t.Fatalf("joiner at %v, %v", joiner, err)
	}
	joined := must(b.ReadJoin(ticket, reply))
	if joined.Secret != sa.Sets()[0].Keys.Secret || joined.State.Name != "notes" || ID(joined.State.Creator) != a.ID {
		t.Errorf("joined %+v", joined)
	}
	at := map[ID]string{}
	for _, m := range joined.Members {
		at[m.ID] = string(m.Addrs[0])
	}
	if len(at) != 2 || at[a.ID] != string(where(a.ID)[0]) || at[idOf(3)] != string(where(idOf(3))[0]) {
		t.Errorf("the others are at %+v", joined.Members)
	}
	sb := must(b.open(joined.Secret, joined.State))
	if got, want := list(sb), list(sa); got != want || sb.Sets()[0].Keys.ID != sa.Sets()[0].Keys.ID || sb.Members().Policy() != sa.Members().Policy() {
		t.Errorf("the members are %s\nwant %s", got, want)
	}
	if len(sb.Invitations()) != 0 {
		t.Error("the tickets were handed over")
	}
}

// A newcomer is handed what the list is a function of, and no void statements; the
// sync of the control namespace brings those.
func TestJoinHandsOverTheCore(t *testing.T) {
	a, b, removed := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	succeeds(t, setRole(sa, removed.ID, RoleAdmin))
	void := must(roster.Make(rosterOf(sa), roster.Statement{Kind: roster.Grant, Subject: idOf(4), Role: RoleRead}, removed.ID, dbadapter.TimestampAt(a.clock), removed.Sign))
	succeeds(t, sa.Remove(context.Background(), removed.ID, false))
	if err := take(sa, void); err != nil || len(sa.Members().Voided()) != 1 {
		t.Fatal(err)
	}
	ticket := must(membership.ParseTicket(invite(sa, RoleWrite)))
	reply, _, err := a.AnswerJoin(context.Background(), b.ID, must(membership.RequestJoin(b.ID, ticket, nil)), func(ID) [][]byte { return nil })
	if err != nil {
		t.Fatal(err)
	}
	joined := must(b.ReadJoin(ticket, reply))
	sb := must(b.open(joined.Secret, joined.State))
	if len(joined.State.Seeds) != rosterOf(sa).Len()-1 || sb.Members().Digest() != sa.Members().Digest() {
		t.Errorf("%d of %d statements are handed over; the list is\n%s\nwant\n%s", len(joined.State.Seeds), rosterOf(sa).Len(), list(sb), list(sa))
	}
}

// Each fault of a reply is seen: nothing is opened on the strength of it.
func TestHostileInviter(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	succeeds(t, setRole(sa, idOf(3), RoleAdmin))
	ticket := must(membership.ParseTicket(invite(sa, RoleWrite)))
	alone := sa.statements()
	reply, _, _ := a.AnswerJoin(context.Background(), b.ID, must(membership.RequestJoin(b.ID, ticket, nil)), func(ID) [][]byte { return nil })
	read := func(edit func(*membership.JoinReply)) error {
		var r membership.JoinReply
		succeeds(t, roster.Unmarshal(reply, &r))
		edit(&r)
		_, err := b.ReadJoin(ticket, must(cbor.Marshal(r)))
		return err
	}
	wantErr(t, read(func(*membership.JoinReply) {}), nil, "without a fault")
	other := newMachine(7).create("other", Policy{})
	for name, edit := range map[string]func(r *membership.JoinReply){
		"another secret":  func(r *membership.JoinReply) { r.Secret = make([]byte, 32) },
		"a short secret":  func(r *membership.JoinReply) { r.Secret = r.Secret[:31] },
		"no secret":       func(r *membership.JoinReply) { r.Secret = nil },
		"another creator": func(r *membership.JoinReply) { r.Creator = []byte(idOf(3)) },
		"no creator":      func(r *membership.JoinReply) { r.Creator = nil },
		"not the joiner":  func(r *membership.JoinReply) { r.Statements = alone },
		"no statements":   func(r *membership.JoinReply) { r.Statements = nil },
		"a gap":           func(r *membership.JoinReply) { r.Statements = r.Statements[1:] },
		"a flipped bit":   func(r *membership.JoinReply) { r.Statements[0][9] ^= 1 },
		"another version": func(r *membership.JoinReply) { r.Version = 9 },
		"shards":          func(r *membership.JoinReply) { r.Placement = []byte{0x83, 1, 2, 1} },
		"a refusal":       func(r *membership.JoinReply) { r.Denied = "go away\x1b[31m" },
	} {
		err := read(edit)
		if err == nil || name == "a refusal" != errors.Is(err, ErrDenied) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Statements of another list are left out.
	wantErr(t, read(func(r *membership.JoinReply) { r.Statements = append(r.Statements, other.statements()...) }), nil, "with another list's statements")
	if _, err := b.ReadJoin(ticket, []byte{0xa1, 0x01, 0x61}); err == nil {
		t.Error("what is not CBOR was read")
	}
	// An inviter that is no admin cannot have made this node a member.
	ticket.Inviter = idOf(4)
	if err := read(func(*membership.JoinReply) {}); err == nil {
		t.Error("an inviter that is not a member was believed")
	}
}

// What is not a ticket of this node is refused in words that tell nothing of what
// is here, whatever its form.
func TestAnswerJoinTellsStrangersNothing(t *testing.T) {
	a, sa := newAlone()
	ticket := must(membership.ParseTicket(invite(sa, RoleRead)))
	ask := func(q membership.JoinRequest) (membership.JoinReply, error) {
		b, _, err := a.AnswerJoin(context.Background(), idOf(2), must(cbor.Marshal(q)), func(ID) [][]byte { return nil })
		var r membership.JoinReply
		if failed := roster.Unmarshal(b, &r); failed != nil {
			t.Error(failed)
		}
		return r, err
	}
	for _, length := range []int{0, 1, 8, 15, 16, 17, 32, 500} {
		for _, token := range []int{0, 1, 31, 32, 33, 500} {
			namespace := make([]byte, length)
			copy(namespace, ticket.Namespace[:])
			r, err := ask(membership.JoinRequest{Version: membership.JoinVersion, Namespace: namespace, Token: make([]byte, token)})
			if !errors.Is(err, membership.ErrTicketUnknown) || r.Denied != membership.ErrTicketUnknown.Error() || r.Secret != nil || r.Statements != nil {
				t.Errorf("a namespace of %d bytes and a token of %d: %+v, %v", length, token, r, err)
			}
		}
	}
	// Another version of the protocol is answered with this one's.
	r, err := ask(membership.JoinRequest{Version: membership.JoinVersion + 1, Namespace: ticket.Namespace[:], Token: ticket.Token[:]})
	if err == nil || r.Version != membership.JoinVersion || r.Denied != "" || r.Secret != nil {
		t.Errorf("another version: %+v, %v", r, err)
	}
	// What goes wrong here stays here.
	a.save = func(*State) error { return errors.New("/home/alice is full") }
	if r, err := ask(membership.JoinRequest{Version: membership.JoinVersion, Namespace: ticket.Namespace[:], Token: ticket.Token[:]}); err == nil || r.Denied == "" || strings.Contains(r.Denied, "alice") || r.Secret != nil {
		t.Errorf("a disk that is full: %+v, %v", r, err)
	}
	if reply, _, err := a.AnswerJoin(context.Background(), idOf(2), []byte("nonsense"), nil); err == nil || reply != nil {
		t.Errorf("nonsense was answered: %x, %v", reply, err)
	}
	// A namespace that is being dropped is not there.
	a.save = nil
	marked := false
	if err := sa.Abandon(func() error { marked = true; return nil }); err != nil || !marked {
		t.Fatal(err)
	}
	if r, err := ask(membership.JoinRequest{Version: membership.JoinVersion, Namespace: ticket.Namespace[:], Token: ticket.Token[:]}); !errors.Is(err, membership.ErrTicketUnknown) || r.Secret != nil {
		t.Errorf("a namespace that is gone: %+v, %v", r, err)
	}
	wantErr(t, setRole(sa, idOf(2), RoleRead), dbadapter.ErrClosed, "a change of a namespace that is gone")
}

// A ticket of a namespace that is here brings what this node has not heard of the
// list of members, and changes nothing else.
func TestRejoin(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	succeeds(t, setRole(sa, idOf(3), RoleRead))
	again := must(b.join(a, invite(sa, RoleAdmin)))
	if again != sb || list(sb) != list(sa) || sb.Members().Role(b.ID) != RoleAdmin || !sb.Members().Has(idOf(3), RoleRead) {
		t.Errorf("the members are %s\nwant %s", list(sb), list(sa))
	}
}

// A member that does not know a newcomer yet hears that there is one by what the others
// pass on of it, though the sets are never quiet: it syncs with the one that passed it on.
func TestPushesOfANewcomerLeadToItsInviter(t *testing.T) {
	ps := newPushers(2, Policy{})
	m := newMachine(3)
	m.Push.On, m.Elapsed = true, func() time.Duration { return ps.elapsed }
	ps.machines = append(ps.machines, m)
	ps.spaces = append(ps.spaces, must(m.join(ps.machines[0], invite(ps.spaces[0], RoleWrite))))
	ps.pushes(0)
	data := ps.write(2)
	ps.must(t, 0, 2, data)
	if verdict, _ := ps.hear(1, 0, data); verdict != push.Ignored {
		t.Fatalf("the push of a newcomer: %d", verdict)
	}
	ps.wait(push.Pause)
	ps.wantSync(t, 1, 0, "at first")
	succeeds(t, ps.machines[1].turn(ps.spaces[1], ps.machines[0]))
	ps.done(1, 0, nil)
	wantErr(t, second(get(ps.spaces[1], "k")), nil, "what the newcomer wrote first")
	ps.must(t, 1, 0, ps.write(2))
}

// A node that changes the list of members says at once that there is more, though what is
// written never lets the sets be quiet, and those that hear of the change do not.
func TestChangesOfTheListAreToldAtOnce(t *testing.T) {
	ps := newPushers(3, Policy{})
	succeeds(t, ps.spaces[0].SetRole(t.Context(), ps.machines[2].ID, RoleRead, time.Time{}, false))
	ps.wait(push.Pause) // the last of those that joined was told of just now
	all := ps.pushes(0)
	if kinds(all) != "more" {
		t.Fatalf("the pushes are %q", kinds(all))
	}
	ps.must(t, 1, 0, all...)
	ps.wait(push.Pause)
	ps.wantSync(t, 1, 0, "at first")
	succeeds(t, ps.machines[1].turn(ps.spaces[1], ps.machines[0]))
	ps.done(1, 0, nil)
	ps.wait(push.Batch)
	if all := ps.pushes(1); len(all) > 0 {
		t.Errorf("a member that heard of it pushes %q", kinds(all))
	}
}

// What a node had written and not pushed when it was killed, its first sync brings to one
// member; the others hear at once that there is more.
func TestWhatWasNotPushedBeforeARestart(t *testing.T) {
	ps := newPushers(3, Policy{})
	must(put(ps.spaces[1], "k", "v"))
	ps.spaces[1] = ps.machines[1].reopen(ps.spaces[1], false)
	for round, want := range []string{"more", ""} {
		must(put(ps.spaces[0], "l", "w"))
		succeeds(t, ps.machines[1].turn(ps.spaces[1], ps.machines[0]))
		ps.wait(push.Batch)
		if all := ps.pushes(1); kinds(all) != want {
			t.Errorf("after sync %d the pushes are %q, want %q", round, kinds(all), want)
		}
	}
}

// What was pushed after the first sync had begun, and before this node could hear it, leads
// to one more: it was not there to be brought.
func TestPushesThatWereMissedBesideTheFirstSync(t *testing.T) {
	ps := newPushers(4, Policy{})
	ps.spaces[0] = ps.machines[0].reopen(ps.spaces[0], false)
	ps.spaces[0].Sets()[0].Pushes().Linked(ps.machines[1].ID)
	ps.wait(time.Second)
	ps.wantSync(t, 0, 1, "at first")
	ps.write(2)
	ps.write(3)
	ps.done(0, 1, nil)
	for i := 2; i < 4; i++ {
		ps.must(t, 0, 1, ps.write(i))
	}
	ps.wantSync(t, 0, -1, "at once, before others are heard")
	ps.wait(time.Second + push.Pause)
	with := ps.syncs(0)
	if with < 2 {
		t.Fatalf("a sync with %d", with)
	}
	ps.done(0, with, nil)
	ps.wait(time.Minute)
	ps.wantSync(t, 0, -1, "what one sync has brought")
}

// A member that begins to take pushes directly hears how many there were: those that it
// lacks, the last one too, lead to a sync, though the sets are never quiet.
func TestStandingTellsOfEarlierPushes(t *testing.T) {
	ps := newPushers(3, Policy{})
	stands := func(i int) {
		t.Helper()
		for to := range 2 {
			if a, verdict, err := ps.spaces[to].Sets()[0].Arrived(ps.machines[i].ID, ps.spaces[i].Sets()[0].Pushes().Digest().Direct(), true); verdict != push.Taken || err != nil {
				t.Fatalf("%+v, %d, %v", a, verdict, err)
			}
		}
	}
	stands(2)
	ps.wait(time.Second)
	for i := range 2 {
		if with := ps.syncs(i); with >= 0 {
			t.Fatalf("where nothing was pushed: node %d syncs with %d", i, with)
		}
	}
	data := ps.write(2)
	ps.must(t, 0, 2, data)
	must(put(ps.spaces[0], "busy", "v"))
	must(put(ps.spaces[1], "busy", "w"))
	stands(2)
	ps.wait(push.Pause)
	ps.wantSync(t, 0, -1, "a member that lacks nothing")
	ps.wantSync(t, 1, 2, "a member that lacks the last push")
}
