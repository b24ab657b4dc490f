package peer

import (
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

// A node says at once under which addresses it can be dialled, and again when
// these have changed while it runs, and only then.
func TestFollowAddrs(t *testing.T) {
	n := openForTest(t, Config{})
	told := make(chan []ma.Multiaddr, 16)
	if err := n.followAddrs(func(addrs []ma.Multiaddr) { told <- addrs }); err != nil {
		t.Fatal(err)
	}
	next := func() []ma.Multiaddr {
		t.Helper()
		select {
		case addrs := <-told:
			return addrs
		case <-time.After(5 * time.Minute): // libp2p looks every 5 s
			t.Fatal("the node says nothing of its addresses")
			return nil
		}
	}
	first := next()
	if !sameAddrs(first, n.dialable()) || len(first) == 0 {
		t.Errorf("told %v, the node has %v", first, n.dialable())
	}
	if err := n.host.Network().Listen(ma.StringCast("/ip4/127.0.0.1/tcp/0")); err != nil {
		t.Fatal(err)
	}
	second := next()
	if len(second) != len(first)+1 {
		t.Errorf("told %v after one more address than %v", second, first)
	}
	for _, a := range first {
		if !ma.Contains(second, a) {
			t.Errorf("%s is missing in %v", a, second)
		}
	}
	if len(told) != 0 {
		t.Errorf("told again: %v", <-told)
	}
}

// Where a copy of the data folder has run and told the members its own addresses, the
// node tells them its own again.
func TestAddressesOfACopyAreReplaced(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	sb := joinForTest(t, sa, b)
	of := func(ns *Namespace, id ID) []ma.Multiaddr {
		t.Helper()
		all, err := ns.core.Addresses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if ID(one.ID) == id {
				return parseAddrs(one.Addrs)
			}
		}
		return nil
	}
	sync := func() {
		t.Helper()
		if _, err := sb.Sync(t.Context(), a.ID(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ofCopy := []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	sb.announce(ofCopy)
	sync()
	if got := of(sa, b.ID()); !sameAddrs(got, ofCopy) {
		t.Fatalf("a knows %v", got)
	}
	sb.tend()
	sync()
	if got := of(sa, b.ID()); !sameAddrs(got, b.dialable()) {
		t.Errorf("a knows %v, b has %v", got, b.dialable())
	}
}

func TestSameAddrs(t *testing.T) {
	a, b := ma.StringCast("/ip4/192.0.2.1/tcp/1"), ma.StringCast("/ip4/192.0.2.1/tcp/2")
	for _, c := range []struct {
		left, right []ma.Multiaddr
		same        bool
	}{
		{nil, nil, true},
		{[]ma.Multiaddr{a, b}, []ma.Multiaddr{b, a}, true},
		{[]ma.Multiaddr{a, a}, []ma.Multiaddr{a}, true},
		{[]ma.Multiaddr{a}, []ma.Multiaddr{b}, false},
		{[]ma.Multiaddr{a}, nil, false},
	} {
		before := slices.Clone(c.left)
		if sameAddrs(c.left, c.right) != c.same {
			t.Errorf("%v and %v: want %v", c.left, c.right, c.same)
		}
		if !slices.EqualFunc(before, c.left, ma.Multiaddr.Equal) {
			t.Error("the order of the argument has changed")
		}
	}
}

// The node closes while it follows its addresses.
func TestFollowAddrsEnds(t *testing.T) {
	n, err := Open(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.followAddrs(func([]ma.Multiaddr) {}); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.followAddrs(func([]ma.Multiaddr) { t.Error("told after closing") }); err != nil {
		t.Error(err)
	}
}
