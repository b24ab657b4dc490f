package peer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
)

func invite(t *testing.T, ns *peer.Namespace, o peer.InviteOptions) string {
	t.Helper()
	ticket, err := ns.Invite(t.Context(), o)
	must(t, err)
	return ticket
}

func TestTicketIsForOneNode(t *testing.T) {
	na, nb, nc := open(t, peer.Config{}), open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{MaxSkew: time.Minute})
	ticket := invite(t, sa, peer.InviteOptions{Role: peer.RoleAdmin})
	if strings.ToLower(ticket) != ticket || !strings.HasPrefix(ticket, "syncd1") {
		t.Errorf("ticket %q", ticket)
	}
	sb, err := nb.Join(t.Context(), " "+strings.ToUpper(ticket)+"\n") // as a person may paste it
	must(t, err)
	if sb.ID() != sa.ID() || sb.Name() != "notes" || sb.Policy() != sa.Policy() || sb.Role() != peer.RoleAdmin {
		t.Errorf("b has %+v, a %+v", sb.Info(), sa.Info())
	}
	if ma, mb := listed(sa), listed(sb); ma != mb {
		t.Errorf("members of a: %s\nof b: %s", ma, mb)
	}
	_, err = nc.Join(t.Context(), ticket)
	if !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "used") {
		t.Errorf("the second node with one ticket: %v", err)
	}
	// The answer may have been lost: the same node can ask again.
	if again, err := nb.Join(t.Context(), ticket); err != nil || again != sb {
		t.Errorf("the same node again: %v", err)
	}
	if got := len(sa.Members()); got != 2 {
		t.Errorf("%d members", got)
	}
	// b knows a's addresses, and a b's, also if the connection is gone.
	if p := na.Peers(); len(p) != 1 || p[0].ID != nb.ID() || len(p[0].Addrs) == 0 || len(p[0].Namespaces) != 1 {
		t.Errorf("peers of a: %+v", p)
	}
	// Its new admin can invite.
	if sc, err := nc.Join(t.Context(), invite(t, sb, peer.InviteOptions{Role: peer.RoleRead})); err != nil || len(sc.Members()) != 3 || sc.Role() != peer.RoleRead {
		t.Errorf("invited by b: %v", err)
	}
	// A further ticket gives the greater role, never a smaller one.
	sc, err := nc.Join(t.Context(), invite(t, sb, peer.InviteOptions{}))
	if err != nil || sc.Role() != peer.RoleWrite {
		t.Errorf("a second ticket: %v", err)
	}
	sc, err = nc.Join(t.Context(), invite(t, sb, peer.InviteOptions{Role: peer.RoleRead}))
	if err != nil || sc.Role() != peer.RoleWrite {
		t.Errorf("a third ticket: %v", err)
	}
	for _, m := range sb.Members() { // at the inviter's, too
		if m.ID == nc.ID() && m.Role != peer.RoleWrite {
			t.Errorf("a ticket has made a writer %s", m.Role)
		}
	}
}

// A role that was taken away does not come back with the ticket that gave it.
func TestTicketUndoesNoDemotion(t *testing.T) {
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	ticket := invite(t, sa, peer.InviteOptions{Role: peer.RoleAdmin})
	must(t, errOf(nb.Join(t.Context(), ticket)))
	must(t, sa.SetRole(t.Context(), nb.ID(), peer.RoleRead))
	if sb, err := nb.Join(t.Context(), ticket); err != nil || sb.Role() != peer.RoleRead {
		t.Errorf("with the old ticket: %v", err)
	}
	for _, m := range sa.Members() {
		if m.ID == nb.ID() && m.Role != peer.RoleRead {
			t.Errorf("demoted to read, it has the role %s", m.Role)
		}
	}
	unused := invite(t, sa, peer.InviteOptions{})
	must(t, sa.Remove(t.Context(), nb.ID()))
	for _, old := range []string{ticket, unused} {
		if _, err := nb.Join(t.Context(), old); !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "removed") {
			t.Errorf("with an old ticket, after its removal: %v", err)
		}
	}
}

func TestTicketExpires(t *testing.T) {
	clock := newTestClock()
	na, nb := open(t, peer.Config{Clock: clock.now}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	ticket := invite(t, sa, peer.InviteOptions{Expires: time.Hour})
	clock.turn(59 * time.Minute)
	if _, err := nb.Join(t.Context(), ticket); err != nil {
		t.Errorf("in time: %v", err)
	}
	late := invite(t, sa, peer.InviteOptions{Expires: time.Hour})
	clock.turn(time.Hour + 2*time.Second)
	for _, old := range []string{ticket, late} {
		_, err := nb.Join(t.Context(), old)
		if !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("after its time: %v", err)
		}
	}
	// A week later the node has forgotten it.
	clock.turn(8 * 24 * time.Hour)
	invite(t, sa, peer.InviteOptions{})
	if _, err := nb.Join(t.Context(), late); !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "not known") {
		t.Errorf("long after its time: %v", err)
	}
}

func TestTicketRace(t *testing.T) {
	na := open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	ticket := invite(t, sa, peer.InviteOptions{})
	const nodes = 5
	errs := make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		n := open(t, peer.Config{})
		wg.Go(func() { _, errs[i] = n.Join(t.Context(), ticket) })
	}
	wg.Wait()
	joined := 0
	for _, err := range errs {
		if err == nil {
			joined++
		} else if !errors.Is(err, peer.ErrDenied) {
			t.Error(err)
		}
	}
	if joined != 1 || len(sa.Members()) != 2 {
		t.Errorf("%d nodes joined with one ticket; %d members", joined, len(sa.Members()))
	}
}

func TestBadTickets(t *testing.T) {
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	ticket := invite(t, sa, peer.InviteOptions{})
	for _, bad := range []string{"", "syncd1", "hello", ticket[:len(ticket)/2], "syncd2" + ticket[6:], ticket + "!", strings.Repeat("syncd1a", 10000)} {
		if _, err := nb.Join(t.Context(), bad); err == nil || strings.Contains(err.Error(), bad) && len(bad) > 10 {
			t.Errorf("ticket %.40q: %v", bad, err)
		}
	}
	if _, err := na.Join(t.Context(), ticket); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("its own ticket: %v", err)
	}
	if _, err := sa.Invite(t.Context(), peer.InviteOptions{Role: 9}); err == nil {
		t.Error("a role that there is not")
	}
	// The namespace has been dropped, and a stranger would hear the same.
	must(t, na.DropNamespace(t.Context(), "notes"))
	if _, err := nb.Join(t.Context(), ticket); !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), "not known") {
		t.Errorf("a namespace that is gone: %v", err)
	}
	shut(t, na)
	if _, err := nb.Join(t.Context(), ticket); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("an inviter that is down: %v", err)
	}
	if len(nb.Namespaces()) != 0 {
		t.Errorf("a failed join left %v", nb.Namespaces())
	}
	silent := open(t, peer.Config{ListenAddrs: []string{}})
	ss := create(t, silent, peer.Policy{})
	if _, err := ss.Invite(t.Context(), peer.InviteOptions{}); err == nil {
		t.Error("a node that listens nowhere has invited")
	}
}

func TestJoinWhereTheNameIsTaken(t *testing.T) {
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	create(t, nb, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleWrite)
	if want := "notes-" + sa.Info().ID[:8]; sb.Name() != want || sb.ID() != sa.ID() {
		t.Errorf("the name is %s, want %s", sb.Name(), want)
	}
	if got, err := nb.Namespace(sb.Name()); err != nil || got != sb {
		t.Errorf("%v", err)
	}
}

// A node that listens on all interfaces gives addresses that can be dialled.
func TestAddrsOfAllInterfaces(t *testing.T) {
	na := open(t, peer.Config{ListenAddrs: []string{"/ip4/0.0.0.0/tcp/0"}})
	nb := open(t, peer.Config{ListenAddrs: []string{}})
	if len(na.Addrs()) == 0 || len(nb.Addrs()) != 0 {
		t.Fatalf("addresses %v, %v", na.Addrs(), nb.Addrs())
	}
	for _, a := range na.Addrs() {
		if strings.Contains(a, "/0.0.0.0/") || strings.Contains(a, "/tcp/0/") {
			t.Errorf("address %s cannot be dialled", a)
		}
		fresh := open(t, peer.Config{ListenAddrs: []string{}})
		if id, err := fresh.Connect(t.Context(), a); err != nil || id != na.ID() {
			t.Errorf("dial %s: %v", a, err)
		}
	}
	sb := join(t, create(t, na, peer.Policy{}), nb, peer.RoleWrite)
	put(t, sb, "k", "v")
	sync1(t, sb, na.ID())
}

func TestPortInUse(t *testing.T) {
	n := open(t, peer.Config{})
	addr, _, _ := strings.Cut(n.Addrs()[0], "/p2p/")
	if _, err := peer.Open(t.Context(), peer.Config{ListenAddrs: []string{addr}}); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := peer.Open(t.Context(), peer.Config{ListenAddrs: []string{"nonsense"}}); err == nil {
		t.Error("nonsense was listened on")
	}
}

func TestAddressBook(t *testing.T) {
	dir := t.TempDir()
	n, other := open(t, peer.Config{Dir: dir}), open(t, peer.Config{})
	id, err := n.AddPeer(t.Context(), other.Addrs()[0])
	if err != nil || id != other.ID() {
		t.Fatal(err)
	}
	shut(t, n)
	n = open(t, peer.Config{Dir: dir})
	if p := n.Peers(); len(p) != 1 || p[0].ID != id || len(p[0].Addrs) != 1 || p[0].Connected {
		t.Errorf("peers %+v", p)
	}
	must(t, errOf(n.Connect(t.Context(), other.Addrs()[0])))
	if p := n.Peers(); !p[0].Connected {
		t.Errorf("peers %+v", p)
	}
	must(t, n.RemovePeer(t.Context(), id))
	if err := n.RemovePeer(t.Context(), id); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if p := n.Peers(); len(p) != 0 {
		t.Errorf("peers %+v", p)
	}
	if _, err := n.AddPeer(t.Context(), "/ip4/1.2.3.4/tcp/5"); err == nil {
		t.Error("an address without an id")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.AddPeer(ctx, other.Addrs()[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}
