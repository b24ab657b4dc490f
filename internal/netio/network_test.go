package netio

import (
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

// A node says at once under which addresses it can be dialled, and again when
// these have changed while it runs, and only then.
func TestFollowAddrs(t *testing.T) {
	n := serveForTest(t, Config{}, nil)
	told := make(chan []ma.Multiaddr, 16)
	must(t, n.FollowAddrs(func(addrs []ma.Multiaddr) { told <- addrs }))
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
	if !sameAddrs(first, n.Dialable()) || len(first) == 0 {
		t.Errorf("told %v, the node has %v", first, n.Dialable())
	}
	must(t, n.Network().Listen(ma.StringCast("/ip4/127.0.0.1/tcp/0")))
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

// A host that leaves its node tells it no more.
func TestFollowAddrsEnds(t *testing.T) {
	n := serveForTest(t, Config{}, nil)
	calls := 0
	must(t, n.FollowAddrs(func([]ma.Multiaddr) { calls++ }))
	n.Leave()
	was := calls
	must(t, n.Host.Network().Listen(ma.StringCast("/ip4/127.0.0.1/tcp/0")))
	if calls != was {
		t.Error("told after leaving")
	}
}
