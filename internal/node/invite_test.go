package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/peer/status"
)

func TestInvite(t *testing.T) {
	m, ns := newNotes(Policy{})
	here := [][]byte{{1, 2, 3}}
	for name, c := range map[string]struct {
		o     membership.InviteOptions
		addrs [][]byte
		want  error
	}{
		"no such role":      {membership.InviteOptions{Role: 9}, here, ErrInvalid},
		"in the past":       {membership.InviteOptions{Expires: -1}, here, ErrInvalid},
		"for too long":      {membership.InviteOptions{Expires: membership.MaxInviteLife + 1}, here, dbadapter.ErrLimit},
		"for no node":       {membership.InviteOptions{Uses: -1}, here, ErrInvalid},
		"for too many":      {membership.InviteOptions{Uses: membership.MaxUses + 1}, here, dbadapter.ErrLimit},
		"to nowhere":        {membership.InviteOptions{}, nil, nil},
		"just long enough":  {membership.InviteOptions{Expires: membership.MaxInviteLife}, here, nil},
		"all that is usual": {membership.InviteOptions{}, here, nil},
	} {
		ticket, err := ns.Invite(c.o, c.addrs)
		if good := c.want == nil && c.addrs != nil; good != (err == nil) || good == (ticket == "") || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v", name, ticket, err)
		}
	}
	if got := len(ns.state.Load().Invites); got != 2 {
		t.Errorf("%d tickets are remembered", got)
	}
	ticket := must(membership.ParseTicket(must(ns.Invite(membership.InviteOptions{}, here))))
	if ticket.Inviter != m.ID || ticket.Namespace != ns.Sets()[0].Keys.ID || ticket.Name != "notes" || ticket.Role != RoleWrite ||
		!ticket.Expires.Equal(noon.Add(membership.DefaultInviteLife)) || string(ticket.Addrs[0]) != string(here[0]) {
		t.Errorf("ticket %+v", ticket)
	}
	// The state does not let its reader join.
	b := must(ns.state.Load().Encode())
	if hash := sha256.Sum256(ticket.Token[:]); strings.Contains(string(b), string(ticket.Token[:])) || !strings.Contains(string(b), string(hash[:])) {
		t.Error("the state holds a token")
	}
	if other := must(membership.ParseTicket(invite(ns, RoleRead))); other.Token == ticket.Token {
		t.Error("two tickets have one token")
	}
	for _, role := range []Role{RoleWrite, RoleRead} {
		b := newMachine(20 + int(role))
		sb := must(b.join(m, invite(ns, role)))
		if _, err := sb.Invite(membership.InviteOptions{}, here); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), role.String()) {
			t.Errorf("the role %s invites: %v", role, err)
		}
	}
}

// A ticket makes one node a member, with its role, once; the same node may say it
// again, until it expires.
func TestRedeem(t *testing.T) {
	m, ns := newAlone()
	token := func(o membership.InviteOptions) []byte {
		ticket := must(membership.ParseTicket(must(ns.Invite(o, [][]byte{{1}}))))
		return ticket.Token[:]
	}
	redeem := func(seed int, token []byte, want error) {
		t.Helper()
		if err := ns.Redeem(context.Background(), idOf(seed), token); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("node %d: %v, want %v", seed, err, want)
		}
	}
	first := token(membership.InviteOptions{Role: RoleRead, Expires: time.Hour})
	redeem(2, make([]byte, 32), membership.ErrTicketUnknown)
	redeem(2, first[:32-1], membership.ErrTicketUnknown)
	redeem(2, nil, membership.ErrTicketUnknown)
	if len(ns.Members().Members()) != 1 {
		t.Fatal("a guess made a member")
	}
	m.clock = noon.Add(30*time.Minute + 300*time.Millisecond)
	redeem(2, first, nil)
	if got, _ := ns.Members().Member(idOf(2)); got.Role != RoleRead || !got.Since.Time().Equal(m.clock) || got.By != m.ID {
		t.Errorf("member %+v", got)
	}
	redeem(3, first, membership.ErrTicketUsed)
	redeem(2, first, nil)
	if ns.Members().Has(idOf(3), RoleRead) || len(ns.Members().Members()) != 2 {
		t.Error("one ticket made two members")
	}
	// It can be used for as long as was asked for, to the second, and not then.
	late := token(membership.InviteOptions{Expires: time.Hour})
	stored := ns.state.Load().Invites[1]
	if want := m.clock.Add(time.Hour); time.Unix(stored.Expires, 0).Before(want) || time.Unix(stored.Expires, 0).After(want.Add(time.Second)) {
		t.Errorf("it expires at %s, want %s", time.Unix(stored.Expires, 0), want)
	}
	m.clock = time.Unix(stored.Expires, 0)
	redeem(4, late, membership.ErrTicketExpired)
	redeem(2, first, membership.ErrTicketExpired)
	redeem(3, first, membership.ErrTicketUsed)
	m.clock = m.clock.Add(-1)
	redeem(4, late, nil)
	// A ticket gives the greater role, never a smaller one.
	redeem(4, token(membership.InviteOptions{Role: RoleRead}), nil)
	if got := ns.Members().Role(idOf(4)); got != RoleWrite {
		t.Errorf("a ticket made a writer %s", got)
	}
	redeem(2, token(membership.InviteOptions{Role: RoleAdmin}), nil)
	if got := ns.Members().Role(idOf(2)); got != RoleAdmin {
		t.Errorf("a ticket for an admin made %s", got)
	}
	// Nothing counts that is not durable, and what was cut short is repeated.
	full := errors.New("the disk is full")
	last := token(membership.InviteOptions{})
	m.save = func(*State) error { return full }
	redeem(5, last, full)
	m.save = nil
	m.applyControl = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) { return nil, full }
	redeem(5, last, full)
	if ns.Members().Has(idOf(5), RoleRead) {
		t.Error("a member that was not saved")
	}
	redeem(6, last, membership.ErrTicketUsed)
	m.applyControl = nil
	redeem(5, last, nil)
	if !ns.Members().Has(idOf(5), RoleWrite) {
		t.Error("a ticket whose redemption was cut short makes no member")
	}
}

// A ticket admits as many nodes as it says, each of them as often as it likes.
func TestTicketForSeveral(t *testing.T) {
	_, ns := newAlone()
	ticket := must(membership.ParseTicket(must(ns.Invite(membership.InviteOptions{Uses: 3}, [][]byte{{1}}))))
	for range 2 {
		for seed := 2; seed <= 4; seed++ {
			if err := ns.Redeem(context.Background(), idOf(seed), ticket.Token[:]); err != nil {
				t.Errorf("node %d: %v", seed, err)
			}
		}
	}
	wantErr(t, ns.Redeem(context.Background(), idOf(5), ticket.Token[:]), membership.ErrTicketUsed, "a fourth")
	list := ns.Invitations()
	if len(list) != 1 || list[0].Uses != 3 || len(list[0].UsedBy) != 3 || list[0].UsedBy[0] != status.ID(idOf(2)) || len(ns.Members().Members()) != 4 {
		t.Errorf("the tickets are %+v", list)
	}
}

// A ticket that was revoked is not known any more.
func TestRevoke(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{})
	for _, by := range []func(text string) string{
		func(string) string { return ns.Invitations()[0].ID },
		func(text string) string { return text },
	} {
		text := invite(ns, RoleRead)
		ticket := must(membership.ParseTicket(text))
		wantErr(t, ns.Revoke("0123456789abcdef"), dbadapter.ErrNotFound, "a ticket that is not there")
		succeeds(t, ns.Revoke(by(text)))
		if err := ns.Redeem(context.Background(), idOf(2), ticket.Token[:]); !errors.Is(err, membership.ErrTicketUnknown) || len(ns.Invitations()) != 0 {
			t.Errorf("a ticket that was revoked: %v", err)
		}
	}
}

// A ticket that is redeemed again, because the answer may have been lost, changes
// no role. A node that was removed needs a ticket that was issued since.
func TestRedeemedAgainChangesNothing(t *testing.T) {
	m, ns := newAlone()
	ticket, unused := must(membership.ParseTicket(invite(ns, RoleAdmin))), must(membership.ParseTicket(invite(ns, RoleAdmin)))
	for _, role := range []Role{RoleAdmin, RoleRead, RoleWrite} {
		if role != RoleAdmin {
			succeeds(t, setRole(ns, idOf(2), role))
		}
		succeeds(t, ns.Redeem(context.Background(), idOf(2), ticket.Token[:]))
		if got := ns.Members().Role(idOf(2)); got != role {
			t.Errorf("the role is %s, not %s", got, role)
		}
	}
	m.clock = m.clock.Add(time.Minute)
	succeeds(t, ns.Remove(context.Background(), idOf(2), false))
	for _, old := range []*membership.Ticket{ticket, unused} {
		if err := ns.Redeem(context.Background(), idOf(2), old.Token[:]); !errors.Is(err, membership.ErrTicketOld) || ns.Members().Has(idOf(2), RoleRead) {
			t.Errorf("an old ticket of a node that was removed: %v", err)
		}
	}
	m.clock = m.clock.Add(time.Minute)
	fresh := must(membership.ParseTicket(invite(ns, RoleRead)))
	if err := ns.Redeem(context.Background(), idOf(2), fresh.Token[:]); err != nil || ns.Members().Role(idOf(2)) != RoleRead {
		t.Errorf("a new ticket: %v", err)
	}
}

// A role that was given for a time, and is over, is no role, though no admin has
// written that down yet: a ticket from before does not give it again, and a new one does.
func TestTicketAfterATerm(t *testing.T) {
	m, ns := newAlone()
	redeem := func(ticket *membership.Ticket, want error) {
		t.Helper()
		if err := ns.Redeem(context.Background(), idOf(2), ticket.Token[:]); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	used, unused := must(membership.ParseTicket(invite(ns, RoleWrite))), must(membership.ParseTicket(invite(ns, RoleWrite)))
	redeem(used, nil)
	succeeds(t, ns.SetRole(context.Background(), idOf(2), RoleWrite, m.clock.Add(time.Minute), false))
	m.clock = m.clock.Add(2 * time.Minute)
	redeem(used, membership.ErrTicketOld)
	redeem(unused, membership.ErrTicketOld)
	if ns.Admits(idOf(2)) {
		t.Error("an old ticket gives back a role that is over")
	}
	redeem(must(membership.ParseTicket(invite(ns, RoleWrite))), nil)
	if got, _ := ns.Members().Member(idOf(2)); !ns.Admits(idOf(2)) || got.Role != RoleWrite || got.Expires != 0 {
		t.Errorf("a new ticket: %+v", got)
	}
}

// The tickets of an admin that was removed stay of no use when it is an admin again.
func TestTicketsOfAnAdminThatWasRemoved(t *testing.T) {
	c := newCrew(t, 1)
	c.join(1, RoleAdmin)
	c.round()
	c.round()
	ticket := must(membership.ParseTicket(invite(c.ns[1], RoleWrite)))
	b := c.machines[1].ID
	succeeds(t, c.ns[0].Remove(t.Context(), b, false))
	c.pass(time.Minute)
	succeeds(t, setRole(c.ns[0], b, RoleAdmin))
	if err := c.turn(0, 1); err != nil || !c.ns[1].Members().Has(b, RoleAdmin) {
		t.Fatalf("it is no admin again: %v", err)
	}
	if err := c.ns[1].Redeem(t.Context(), idOf(9), ticket.Token[:]); !errors.Is(err, membership.ErrTicketEnded) || c.ns[1].Admits(idOf(9)) {
		t.Errorf("a ticket from before its removal: %v", err)
	}
	wantErr(t, c.ns[1].Redeem(t.Context(), idOf(9), must(membership.ParseTicket(invite(c.ns[1], RoleWrite))).Token[:]), nil, "a ticket from after it")
}

// A term that ends before the clock of the namespace, which follows the fastest of the
// members, is an input that is refused, with what to do.
func TestTermBeforeTheClock(t *testing.T) {
	m, ns := newAlone()
	ns.clock.Observe(hlc.At(m.clock.Add(time.Minute)))
	err := ns.SetRole(t.Context(), idOf(2), RoleWrite, m.clock.Add(30*time.Second), false)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "give the role for longer") {
		t.Errorf("a role that ends before it is given: %v", err)
	}
	succeeds(t, ns.SetRole(t.Context(), idOf(2), RoleWrite, m.clock.Add(90*time.Second), false))
}

// A new ticket lets a member for a time stay.
func TestTicketBeforeTheEndOfATerm(t *testing.T) {
	m, ns := newAlone()
	succeeds(t, ns.SetRole(context.Background(), idOf(2), RoleWrite, m.clock.Add(time.Hour), false))
	for role, lasting := range map[Role]bool{RoleRead: false, RoleWrite: true} {
		ticket := must(membership.ParseTicket(invite(ns, role)))
		succeeds(t, ns.Redeem(context.Background(), idOf(2), ticket.Token[:]))
		if got, _ := ns.Members().Member(idOf(2)); got.Role != RoleWrite || lasting && got.Expires != 0 {
			t.Errorf("a ticket for %s: %+v", role, got)
		}
	}
}

// The clock of the admin that removed a node may be ahead: a ticket that was issued
// when the removal was known is later than it, and no other ticket is.
func TestTicketAfterARemovalFromTheFuture(t *testing.T) {
	m, other := newMachine(1), newMachine(3)
	ns := m.create("notes", Policy{})
	for id, role := range map[ID]Role{other.ID: RoleAdmin, idOf(2): RoleWrite} {
		succeeds(t, setRole(ns, id, role))
	}
	old := must(membership.ParseTicket(invite(ns, RoleRead)))
	redeem := func(ticket *membership.Ticket, want error) {
		t.Helper()
		if err := ns.Redeem(context.Background(), idOf(2), ticket.Token[:]); !errors.Is(err, want) || ns.Members().Has(idOf(2), RoleRead) != (want == nil) {
			t.Errorf("redeemed: %v, want %v", err, want)
		}
	}
	at := dbadapter.TimestampAt(m.clock.Add(time.Hour))
	removal := must(roster.Make(rosterOf(ns), roster.Statement{Kind: roster.Remove, Subject: idOf(2)}, other.ID, at, other.Sign))
	succeeds(t, take(ns, removal))
	redeem(old, membership.ErrTicketOld)
	fresh, unused := must(membership.ParseTicket(invite(ns, RoleRead))), must(membership.ParseTicket(invite(ns, RoleRead)))
	redeem(fresh, nil)
	m.clock = m.clock.Add(time.Minute)
	succeeds(t, ns.Remove(context.Background(), idOf(2), false))
	redeem(unused, membership.ErrTicketOld) // the first removal is the later one by its time
	redeem(fresh, membership.ErrTicketOld)
}

func TestInvitesAreBounded(t *testing.T) {
	m, ns := newAlone()
	ns = m.reopened(ns, func(s *State) {
		for i := range membership.MaxInvites {
			hash := sha256.Sum256(fmt.Append(nil, i))
			s.Invites = append(s.Invites, membership.Invite{Hash: hash[:], Role: RoleRead, Uses: 1, Expires: noon.Unix()})
		}
	})
	wantErr(t, second(ns.Invite(membership.InviteOptions{}, [][]byte{{1}})), dbadapter.ErrLimit, "a ticket too many")
	m.clock = noon.Add(membership.ExpiredInvites + 1)
	if _, err := ns.Invite(membership.InviteOptions{}, [][]byte{{1}}); err != nil || len(ns.state.Load().Invites) != 1 {
		t.Errorf("once they are forgotten: %v; %d are left", err, len(ns.state.Load().Invites))
	}
}
