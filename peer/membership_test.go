package peer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/multiformats/go-varint"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
)

// A member of one namespace is a stranger to another of the same node, though
// it knows that one's secret: each namespace goes by its own list.
func TestMemberOfAnotherNamespaceIsDenied(t *testing.T) {
	clock := newTestClock()
	cfg := peer.Config{Clock: clock.now}
	na, nb, nc := open(t, cfg), open(t, cfg), open(t, cfg)
	sa := create(t, na, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleWrite)
	sc := join(t, sa, nc, peer.RoleWrite)
	put(t, sb, "k", "of b")
	put(t, sc, "l", "of c")
	clock.turn(time.Second) // a write of the removal's millisecond could be after it
	must(t, sa.Remove(t.Context(), nc.ID()))
	sync1(t, sb, na.ID())
	other, err := nb.CreateNamespace(t.Context(), "other", peer.Policy{})
	must(t, err)
	must(t, errOf(nc.Join(t.Context(), invite(t, other, peer.InviteOptions{Role: peer.RoleAdmin}))))
	for name, o := range map[string]peer.SyncOptions{"all of it": {}, "a prefix": {Prefix: []byte("k")}} {
		if r, err := sc.Sync(t.Context(), nb.ID(), o); !errors.Is(err, peer.ErrDenied) || r.Applied+r.Sent > 0 {
			t.Errorf("a sync of %s by a member of another namespace: %+v, %v", name, r, err)
		}
	}
	if c := contents(t, sc); len(c) != 0 || sc.Info().SetAside != 1 {
		t.Errorf("the other member holds %v, and has set %d aside", c, sc.Info().SetAside)
	}
	if b := contents(t, sb); len(b) != 1 {
		t.Errorf("the other member has written: %v", b)
	}
	// Once it is on the list again it is served.
	must(t, sa.SetRole(t.Context(), nc.ID(), peer.RoleWrite))
	sync1(t, sb, na.ID())
	sync1(t, sc, nb.ID())
	equal(t, sb, sc)
}

// A request to join may name a namespace, and show a token, of any length: what
// does not fit is refused in one and the same words, and the node serves on.
func TestJoinRequestsOfAnyLength(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	invite(t, ns, peer.InviteOptions{})
	id := ns.ID()
	stranger := rawHost(t)
	dialNode(t, stranger, n)
	for _, length := range []int{0, 1, 8, 15, 17, 32, 500} {
		for _, token := range []int{0, 1, 31, 32, 33, 500} {
			name := make([]byte, length)
			copy(name, id[:])
			body, err := cbor.Marshal(map[int]any{1: 1, 2: name, 3: make([]byte, token)})
			must(t, err)
			answer := sayTo(t, stranger, n, peer.JoinProtocol, append(varint.ToUvarint(uint64(len(body))), body...))
			if !strings.Contains(string(answer), "not known") {
				t.Errorf("a namespace of %d bytes and a token of %d: %q", length, token, answer)
			}
		}
	}
	if got := len(ns.Members()); got != 1 {
		t.Errorf("%d members", got)
	}
	join(t, ns, open(t, peer.Config{}), peer.RoleRead)
}

// Two members that have both moved find one another through a third.
func TestMovedMembersMeet(t *testing.T) {
	t.Parallel()
	config := func() peer.Config { return peer.Config{Dir: t.TempDir(), SyncInterval: 50 * time.Millisecond} }
	a, b, c := config(), config(), config()
	na, nb, nc := open(t, a), open(t, b), open(t, c)
	sa := create(t, na, peer.Policy{})
	sb, sc := join(t, sa, nb, peer.RoleWrite), join(t, sa, nc, peer.RoleWrite)
	at := func(of, n *peer.Node) bool { // of knows where n is now
		addrs, _ := addrsOf(of, n.ID())
		return slices.ContainsFunc(n.Addrs(), func(now string) bool {
			return slices.ContainsFunc(addrs, func(known string) bool { return strings.HasPrefix(now, known+"/") })
		})
	}
	eventually(t, "all list one another, and know where the third is", func() bool {
		return len(sa.Members()) == 3 && len(sb.Members()) == 3 && len(sc.Members()) == 3 && at(na, nc) && at(nb, nc)
	})
	shut(t, na)
	shut(t, nb)
	na, nb = open(t, a), open(t, b) // each on another port
	eventually(t, "the two that have moved know where the other is", func() bool { return at(na, nb) && at(nb, na) })
	put(t, notes(t, na), "k", "v")
	sync1(t, notes(t, nb), na.ID())
	equal(t, notes(t, na), notes(t, nb))
}

// Each member knows which member was removed, by which admin and when, and the removed node
// is told so, by its own list or by a peer.
func TestFormerMembersAreNamed(t *testing.T) {
	na, nb, nc := open(t, peer.Config{}), open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	sb, sc := join(t, sa, nb, peer.RoleWrite), join(t, sa, nc, peer.RoleWrite)
	put(t, sb, "k", "v")
	sync1(t, sb, na.ID())
	sync1(t, sc, na.ID())
	must(t, errOf(nb.AddPeer(t.Context(), nc.Addrs()[0])))
	for _, m := range sb.Members() {
		if synced := !m.Synced.IsZero(); synced != (m.ID == na.ID()) {
			t.Errorf("synced with %s: %t", m.ID, synced)
		}
	}
	if len(sa.Former()) != 0 || sb.Info().Removed != nil {
		t.Errorf("former %+v, removed %+v", sa.Former(), sb.Info().Removed)
	}
	before := time.Now()
	must(t, sa.Remove(t.Context(), nb.ID()))
	sync1(t, sc, na.ID())
	for _, ns := range []*peer.Namespace{sa, sc} {
		if f := ns.Former(); len(f) != 1 || f[0].ID != nb.ID() || f[0].By != na.ID() || f[0].At.Sub(before).Abs() > time.Minute {
			t.Errorf("former %+v", f)
		}
	}
	// c tells b, though a has removed it.
	if _, err := sb.Sync(t.Context(), nc.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrRemoved) || !errors.Is(err, peer.ErrDenied) || !strings.Contains(err.Error(), na.ID().String()) {
		t.Errorf("the removed member's sync: %v", err)
	}
	if r := sb.Info().Removed; r == nil || r.By != na.ID() || r.Expired {
		t.Errorf("removed %+v", r)
	}
	if _, err := sb.Put(t.Context(), []byte("k"), nil); !errors.Is(err, peer.ErrRemoved) || !strings.Contains(err.Error(), na.ID().String()) {
		t.Errorf("the removed member's write: %v", err)
	}
	if rec, err := sb.Get(t.Context(), []byte("k")); err != nil || string(rec.Value) != "v" {
		t.Errorf("what it holds: %+v, %v", rec, err)
	}
	// Invited anew, it is a member as before.
	if again, err := nb.Join(t.Context(), invite(t, sa, peer.InviteOptions{})); err != nil || again != sb || sb.Info().Removed != nil {
		t.Errorf("invited anew: %v; removed %+v", err, sb.Info().Removed)
	}
	put(t, sb, "l", "of b")
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
}

// A member for a time acknowledges no write once the time is over, though no admin
// has written that down: the others would refuse it.
func TestMemberForATime(t *testing.T) {
	ca, cb := newTestClock(), newTestClock()
	na, nb, sa, sb := pair(t, peer.Config{Clock: ca.now}, peer.Config{Clock: cb.now}, peer.Policy{})
	must(t, sa.SetRoleUntil(t.Context(), nb.ID(), peer.RoleWrite, ca.now().Add(time.Hour)))
	sync1(t, sb, na.ID())
	put(t, sb, "k", "in time")
	cb.turn(time.Hour + time.Second)
	if _, err := sb.Put(t.Context(), []byte("k"), []byte("late")); !errors.Is(err, peer.ErrRemoved) || !strings.Contains(err.Error(), "its role was given for a time") {
		t.Errorf("a write after the time: %v", err)
	}
	if r := sb.Info().Removed; r == nil || !r.Expired || r.By != na.ID() || !r.At.Equal(ca.now().Add(time.Hour)) {
		t.Errorf("removed %+v", r)
	}
}

// What an admin changes while it has not heard of its removal does not count, and
// each node lists it, whichever of the two it heard first.
func TestVoidedChangesAreListed(t *testing.T) {
	na, nb, nc := open(t, peer.Config{}), open(t, peer.Config{}), open(t, peer.Config{})
	sa := create(t, na, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleAdmin)
	sc := join(t, sa, nc, peer.RoleWrite)
	sync1(t, sb, na.ID())
	must(t, sb.SetRole(t.Context(), nc.ID(), peer.RoleRead))
	must(t, errOf(nb.AddPeer(t.Context(), nc.Addrs()[0])))
	sync1(t, sb, nc.ID())
	if got := sc.Role(); got != peer.RoleRead || len(sc.Voided()) != 0 {
		t.Errorf("before c has heard of the removal its role is %s, void %+v", got, sc.Voided())
	}
	must(t, sa.Remove(t.Context(), nb.ID()))
	sync1(t, sc, na.ID())
	for _, ns := range []*peer.Namespace{sa, sc} {
		for _, m := range ns.Members() {
			if m.ID == nc.ID() && m.Role != peer.RoleWrite {
				t.Errorf("demoted by an admin that was removed: %+v", m)
			}
		}
		v := ns.Voided()
		if len(v) != 1 || v[0].By != nb.ID() || v[0].Kind != "grant" || v[0].Subject != nc.ID() || v[0].Role != "read" || len(v[0].Hash) != 64 {
			t.Errorf("void %+v", v)
		}
	}
	if _, err := sc.Put(t.Context(), []byte("k"), nil); err != nil {
		t.Errorf("c's write: %v", err)
	}
}

// A clock that is off by more than a second shows at both ends, as a metric, too.
func TestClockOffsetIsShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	ca, cb := newTestClock(), newTestClock()
	cb.turn(90 * time.Second)
	na, nb, sa, sb := pair(t, peer.Config{Clock: ca.now, Registerer: registry}, peer.Config{Clock: cb.now}, peer.Policy{})
	if o, ok := na.ClockOffset(); ok {
		t.Errorf("before any sync of its own: %+v", o)
	}
	if _, ok := gathered(t, registry, "syncd_clock_offset_seconds", ""); ok {
		t.Error("a metric of what was not measured")
	}
	sync1(t, sa, nb.ID())
	sync1(t, sb, na.ID())
	if o, ok := na.ClockOffset(); !ok || !o.Off || o.Peers != 1 || (o.By+90*time.Second).Abs() > o.Error {
		t.Errorf("a's clock: %+v, %t", o, ok)
	}
	if o, ok := nb.ClockOffset(); !ok || !o.Off || (o.By-90*time.Second).Abs() > o.Error {
		t.Errorf("b's clock: %+v, %t", o, ok)
	}
	if v, ok := gathered(t, registry, "syncd_clock_offset_seconds", ""); !ok || v > -89 || v < -91 {
		t.Errorf("the metric is %v, %t", v, ok)
	}
	cb.turn(-90 * time.Second)
	sync1(t, sa, nb.ID())
	if o, ok := na.ClockOffset(); !ok || o.Off {
		t.Errorf("after the clock was set: %+v, %t", o, ok)
	}
}
