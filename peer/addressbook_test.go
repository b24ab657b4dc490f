package peer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// addrsOf are the addresses that a node remembers of a peer, and whether it
// lists the peer.
func addrsOf(n *peer.Node, id peer.ID) ([]string, bool) {
	for _, p := range n.Peers() {
		if p.ID == id {
			return p.Addrs, true
		}
	}
	return nil, false
}

// addPeer remembers an address without its id.
func addPeer(t *testing.T, n *peer.Node, id peer.ID, addr string) {
	t.Helper()
	must(t, errOf(n.AddPeer(t.Context(), addr+"/p2p/"+id.String())))
}

// TestPeerOnNewPort: a peer that comes back on another port, and dials, is
// remembered there across a restart; its old address goes.
func TestPeerOnNewPort(t *testing.T) {
	a, b := peer.Config{Dir: t.TempDir()}, peer.Config{Dir: t.TempDir()}
	na, nb, _, _ := pair(t, a, b, peer.Policy{})
	before, _ := addrsOf(na, nb.ID())
	shut(t, nb)
	nb = open(t, b)
	sync1(t, notes(t, nb), na.ID())
	now := strings.TrimSuffix(nb.Addrs()[0], "/p2p/"+nb.ID().String())
	eventually(t, "the new address is learnt", func() bool {
		addrs, _ := addrsOf(na, nb.ID())
		return slices.Contains(addrs, now)
	})
	shut(t, na)
	na = open(t, a)
	after, _ := addrsOf(na, nb.ID())
	for _, addr := range before {
		if slices.Contains(after, addr) {
			t.Errorf("the address %s, on which the peer listens no more, is still among %v", addr, after)
		}
	}
	if !slices.Contains(after, now) {
		t.Errorf("after a restart the address %s is not among %v", now, after)
	}
	sync1(t, notes(t, na), nb.ID())
}

// TestUnprintableAddr: an address that cannot be printed is no peer's: errors name addresses, and stand in
// headers and on terminals.
func TestUnprintableAddr(t *testing.T) {
	n := open(t, peer.Config{})
	for _, zone := range []string{"a\x01b", "a\nb", "a\xffb"} {
		if _, err := n.AddPeer(t.Context(), "/ip6zone/"+zone+"/ip6/fe80::1/tcp/4747/p2p/12D3KooWJyWUCsoEAMkNX4Tb7nD2NP8PXsNsXHnskQ87dnzjXUos"); !errors.Is(err, peer.ErrInvalid) {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

// TestSeventeenthAddr: of more addresses than are kept, the oldest goes, and
// what a person has given outlasts what the peer tells.
func TestSeventeenthAddr(t *testing.T) {
	a := peer.Config{Dir: t.TempDir()}
	na, nb, _, sb := pair(t, a, peer.Config{}, peer.Policy{})
	sync1(t, sb, na.ID())
	told, _ := addrsOf(na, nb.ID())
	if len(told) == 0 {
		t.Fatal("what the peer tells is not remembered")
	}
	given := func(i int) string { return fmt.Sprintf("/ip4/192.0.2.1/tcp/%d", 1000+i) }
	for i := range peer.MaxAddrs + 1 {
		addPeer(t, na, nb.ID(), given(i))
	}
	shut(t, na)
	na = open(t, a)
	got, _ := addrsOf(na, nb.ID())
	if len(got) != peer.MaxAddrs || slices.Contains(got, given(0)) || !slices.Contains(got, given(peer.MaxAddrs)) {
		t.Errorf("%d addresses: %v", len(got), got)
	}
	// The peer, when it is heard of, has a place again.
	must(t, errOf(nb.AddPeer(t.Context(), na.Addrs()[0])))
	sync1(t, sb, na.ID())
	eventually(t, "the peer's own address is learnt", func() bool {
		got, _ = addrsOf(na, nb.ID())
		return slices.Contains(got, told[0])
	})
	if len(got) != peer.MaxAddrs || !slices.Contains(got, given(peer.MaxAddrs)) || slices.Contains(got, given(1)) {
		t.Errorf("%d addresses: %v", len(got), got)
	}
}

// TestRemovedPeerStaysAway: a peer that is removed is not listed again because
// it is a member, syncs, or tells its addresses, until it is added.
func TestRemovedPeerStaysAway(t *testing.T) {
	a := peer.Config{Dir: t.TempDir()}
	na, nb, sa, sb := pair(t, a, peer.Config{}, peer.Policy{})
	sync1(t, sa, nb.ID())
	must(t, na.RemovePeer(t.Context(), nb.ID()))
	gone := func(when string) {
		t.Helper()
		if addrs, listed := addrsOf(na, nb.ID()); listed {
			t.Errorf("%s the removed peer is listed with %v", when, addrs)
		}
	}
	gone("at once")
	sync1(t, sb, na.ID())
	gone("after a sync that it began")
	if err := na.RemovePeer(t.Context(), nb.ID()); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	shut(t, na)
	na = open(t, a)
	gone("after a restart")
	if _, err := notes(t, na).Sync(t.Context(), nb.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("a sync with it: %v", err)
	}
	must(t, errOf(na.AddPeer(t.Context(), nb.Addrs()[0])))
	sync1(t, notes(t, na), nb.ID())
	if addrs, _ := addrsOf(na, nb.ID()); len(addrs) == 0 {
		t.Error("after it was added it has no address")
	}
}

// TestRemoveMemberWithoutAddr: what Peers lists can be removed.
func TestRemoveMemberWithoutAddr(t *testing.T) {
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	must(t, create(t, na, peer.Policy{}).SetRole(t.Context(), nb.ID(), peer.RoleRead))
	if _, listed := addrsOf(na, nb.ID()); !listed {
		t.Fatal("the member is not listed")
	}
	if err := na.RemovePeer(t.Context(), nb.ID()); err != nil {
		t.Error(err)
	}
	if _, listed := addrsOf(na, nb.ID()); listed {
		t.Error("the removed member is listed")
	}
}
