package node

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

func TestInvite(t *testing.T) {
	m, ns := newNotes(Policy{})
	here := [][]byte{{1, 2, 3}}
	for name, c := range map[string]struct {
		o     InviteOptions
		addrs [][]byte
		want  error
	}{
		"no such role":      {InviteOptions{Role: 9}, here, ErrInvalid},
		"in the past":       {InviteOptions{Expires: -1}, here, ErrInvalid},
		"for too long":      {InviteOptions{Expires: MaxInviteLife + 1}, here, dbadapter.ErrLimit},
		"to nowhere":        {InviteOptions{}, nil, nil},
		"just long enough":  {InviteOptions{Expires: MaxInviteLife}, here, nil},
		"all that is usual": {InviteOptions{}, here, nil},
	} {
		ticket, err := ns.Invite(c.o, c.addrs)
		if good := c.want == nil && c.addrs != nil; good != (err == nil) || good == (ticket == "") || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v", name, ticket, err)
		}
	}
	if got := len(ns.Members().state.Invites); got != 2 {
		t.Errorf("%d tickets are remembered", got)
	}
	ticket := must(ParseTicket(must(ns.Invite(InviteOptions{}, here))))
	if ticket.Inviter != m.ID || ticket.Namespace != ns.Keys.ID || ticket.Name != "notes" || ticket.Role != RoleWrite ||
		!ticket.Expires.Equal(noon.Add(DefaultInviteLife)) || string(ticket.Addrs[0]) != string(here[0]) {
		t.Errorf("ticket %+v", ticket)
	}
	// The state does not let its reader join.
	b := must(ns.Members().state.Encode())
	if hash := sha256.Sum256(ticket.Token[:]); strings.Contains(string(b), string(ticket.Token[:])) || !strings.Contains(string(b), string(hash[:])) {
		t.Error("the state holds a token")
	}
	if other := must(ParseTicket(invite(ns, RoleRead))); other.Token == ticket.Token {
		t.Error("two tickets have one token")
	}
	for _, role := range []Role{RoleWrite, RoleRead} {
		if err := ns.SetMember(m.ID, role); err != nil {
			t.Fatal(err)
		}
		if _, err := ns.Invite(InviteOptions{}, here); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), role.String()) {
			t.Errorf("the role %s invites: %v", role, err)
		}
	}
}

// A ticket makes one node a member, with its role, once; the same node may say it
// again, until it expires.
func TestRedeem(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	token := func(o InviteOptions) []byte {
		ticket := must(ParseTicket(must(ns.Invite(o, [][]byte{{1}}))))
		return ticket.Token[:]
	}
	redeem := func(seed int, token []byte, want error) {
		t.Helper()
		if err := ns.redeem(idOf(seed), token); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("node %d: %v, want %v", seed, err, want)
		}
	}
	first := token(InviteOptions{Role: RoleRead, Expires: time.Hour})
	redeem(2, make([]byte, tokenSize), errTicketUnknown)
	redeem(2, first[:tokenSize-1], errTicketUnknown)
	redeem(2, nil, errTicketUnknown)
	if len(ns.Members().List()) != 1 {
		t.Fatal("a guess made a member")
	}
	m.clock = noon.Add(30*time.Minute + 300*time.Millisecond)
	redeem(2, first, nil)
	if got := ns.Members().byID[idOf(2)]; got.Role != RoleRead || !got.Since.Equal(noon.Add(30*time.Minute)) {
		t.Errorf("member %+v", got)
	}
	redeem(3, first, errTicketUsed)
	redeem(2, first, nil)
	if ns.Members().Has(idOf(3), RoleRead) || len(ns.Members().List()) != 2 {
		t.Error("one ticket made two members")
	}
	// It can be used for as long as was asked for, to the second, and not then.
	late := token(InviteOptions{Expires: time.Hour})
	stored := ns.Members().state.Invites[1]
	if want := m.clock.Add(time.Hour); time.Unix(stored.Expires, 0).Before(want) || time.Unix(stored.Expires, 0).After(want.Add(time.Second)) {
		t.Errorf("it expires at %s, want %s", time.Unix(stored.Expires, 0), want)
	}
	m.clock = time.Unix(stored.Expires, 0)
	redeem(4, late, errTicketExpired)
	redeem(2, first, errTicketExpired)
	redeem(3, first, errTicketUsed)
	m.clock = m.clock.Add(-1)
	redeem(4, late, nil)
	// A ticket gives the greater role, never a smaller one.
	redeem(4, token(InviteOptions{Role: RoleRead}), nil)
	if got := ns.Members().Role(idOf(4)); got != RoleWrite {
		t.Errorf("a ticket made a writer %s", got)
	}
	redeem(2, token(InviteOptions{Role: RoleAdmin}), nil)
	if got := ns.Members().Role(idOf(2)); got != RoleAdmin {
		t.Errorf("a ticket for an admin made %s", got)
	}
	// Nothing counts that is not durable.
	full := errors.New("the disk is full")
	last := token(InviteOptions{})
	m.save = func(*State) error { return full }
	redeem(5, last, full)
	if ns.Members().Has(idOf(5), RoleRead) {
		t.Error("a member that was not saved")
	}
	m.save = nil
	redeem(6, last, nil)
}

// A ticket that is redeemed again, because the answer may have been lost, changes
// no role, however the role has come to be another.
func TestRedeemedAgainChangesNothing(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{})
	ticket := must(ParseTicket(invite(ns, RoleAdmin)))
	for _, role := range []Role{RoleAdmin, RoleRead, RoleWrite} {
		if role != RoleAdmin {
			if err := ns.update(func(s *State) error { return s.setMember(idOf(2), role, 0) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := ns.redeem(idOf(2), ticket.Token[:]); err != nil {
			t.Fatal(err)
		}
		if got := ns.Members().Role(idOf(2)); got != role {
			t.Errorf("the role is %s, not %s", got, role)
		}
	}
	// SetMember voids the ticket, so that it brings no role back.
	if err := ns.SetMember(idOf(2), RoleRead); err != nil {
		t.Fatal(err)
	}
	if err := ns.redeem(idOf(2), ticket.Token[:]); !errors.Is(err, errTicketUnknown) {
		t.Errorf("a ticket of a node that was made a reader since: %v", err)
	}
}

func TestInvitesAreBounded(t *testing.T) {
	s := &State{}
	for i := range 10 {
		s.Invites = append(s.Invites, storedInvite{Expires: int64(i) * 1000})
	}
	s.dropOldInvites(time.Unix(5500, 0).Add(expiredInvites))
	if len(s.Invites) != 4 {
		t.Errorf("%d tickets are left", len(s.Invites))
	}
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	err := ns.update(func(s *State) error {
		for i := range MaxInvites {
			hash := sha256.Sum256(fmt.Append(nil, i))
			s.Invites = append(s.Invites, storedInvite{Hash: hash[:], Role: RoleRead, Expires: noon.Unix()})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Invite(InviteOptions{}, [][]byte{{1}}); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("a ticket too many: %v", err)
	}
	m.clock = noon.Add(expiredInvites + 1)
	if _, err := ns.Invite(InviteOptions{}, [][]byte{{1}}); err != nil || len(ns.Members().state.Invites) != 1 {
		t.Errorf("once they are forgotten: %v; %d are left", err, len(ns.Members().state.Invites))
	}
}
