package peer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// A node tells its announced addresses, instead of those that it listens on, to
// all that ask: callers, tickets, and the peers that it connects to.
func TestAnnouncedAddrs(t *testing.T) {
	const nat = "/ip4/192.0.2.7/tcp/4001"
	na, nb := open(t, peer.Config{}), open(t, peer.Config{})
	port, _, _ := strings.Cut(strings.TrimPrefix(na.Addrs()[0], "/ip4/127.0.0.1/"), "/p2p/")
	announce := []string{nat, "/dns4/localhost/" + port, nat + "/p2p/" + na.ID().String()}
	key := na.Key()
	shut(t, na)
	na = open(t, peer.Config{Identity: key, ListenAddrs: []string{"/ip4/127.0.0.1/" + port}, AnnounceAddrs: announce})
	id := "/p2p/" + na.ID().String()
	if want := []string{nat + id, "/dns4/localhost/" + port + id}; !slices.Equal(na.Addrs(), want) {
		t.Errorf("the node has the addresses %v, want %v", na.Addrs(), want)
	}
	// No node listens at the ticket's first address; its second is a name.
	sa := create(t, na, peer.Policy{})
	sb := join(t, sa, nb, peer.RoleWrite)
	put(t, sb, "k", "v")
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	for _, p := range nb.Peers() {
		if p.ID == na.ID() && (!slices.Contains(p.Addrs, nat) || slices.Contains(p.Addrs, "/ip4/127.0.0.1/"+port)) {
			t.Errorf("the peer remembers %v, want what was announced", p.Addrs)
		}
	}
}

func TestAnnouncedAddrsAreChecked(t *testing.T) {
	other := open(t, peer.Config{}).ID().String()
	for addr, why := range map[string]string{
		"":                                     "empty",
		"192.0.2.1:4001":                       "must begin with /",
		"/ip4/192.0.2.1":                       "TCP port",
		"/ip4/192.0.2.1/udp/4001":              "quic-v1",
		"/ip4/192.0.2.1/udp/0/quic-v1":         "port 0",
		"/ip6/::/udp/4001/quic-v1":             "all interfaces",
		"/ip4/192.0.2.1/tcp/4001/ws":           "TCP port",
		"/ip4/192.0.2.1/tcp/0":                 "port 0",
		"/ip4/0.0.0.0/tcp/4001":                "all interfaces",
		"/ip6/::/tcp/4001":                     "all interfaces",
		"/unix/tcp/tcp/4001":                   "TCP port",
		"/ip4/192.0.2.1/tcp/4001/p2p/" + other: "names node " + other,
		"/p2p/" + other:                        "names node",
		"/dns4/" + strings.Repeat("x.", 300) + "example/tcp/1": "512 bytes",
	} {
		_, err := peer.Open(t.Context(), peer.Config{AnnounceAddrs: []string{addr}})
		if !errors.Is(err, peer.ErrInvalid) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "announce") {
			t.Errorf("announce %q: %v, want an error that says %q", addr, err, why)
		}
	}
	many := slices.Repeat([]string{"/ip4/192.0.2.1/tcp/4001"}, peer.MaxAddrs+1)
	if _, err := peer.Open(t.Context(), peer.Config{AnnounceAddrs: many}); !errors.Is(err, peer.ErrLimit) {
		t.Errorf("%d addresses: %v", len(many), err)
	}
	h, err := peer.NewHost(peer.Config{AnnounceAddrs: many[:1]})
	must(t, err)
	defer h.Close()
	if _, err := peer.Open(t.Context(), peer.Config{Host: h, AnnounceAddrs: many[:1]}); !errors.Is(err, peer.ErrInvalid) {
		t.Errorf("a host of the caller's, and addresses to announce: %v", err)
	}
}
