package peer

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// What a neighbour says buys dials to members only, at addresses that can be its
// own, now and then.
func TestNeighbours(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	m := &neighbours{node: a, dialed: map[ID]time.Time{}}
	if m.begin(b.self.id) {
		t.Error("a stranger would be dialled")
	}
	joinForTest(t, sa, b)
	if m.begin(b.self.id) {
		t.Error("a member that is connected would be dialled")
	}
	if err := a.host.Network().ClosePeer(b.self.id); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection is gone", func() bool { return !a.connected(b.self.id) && !b.connected(a.self.id) })
	// An address of this machine itself is not dialled.
	m.HandlePeerFound(peer.AddrInfo{ID: b.self.id, Addrs: b.dialable()})
	if a.connected(b.self.id) {
		t.Error("a neighbour was dialled on loopback")
	}
	if !m.begin(b.self.id) {
		t.Error("a member would not be dialled")
	}
	if m.begin(b.self.id) {
		t.Error("a member would be dialled twice at once")
	}
	m.end()
	if m.begin(b.self.id) {
		t.Error("a member would be dialled again at once")
	}
	if err := a.RemovePeer(t.Context(), b.self.id); err != nil {
		t.Fatal(err)
	}
	m.dialed = map[ID]time.Time{}
	if m.begin(b.self.id) {
		t.Error("a peer that was removed would be dialled")
	}
}

func TestIsNear(t *testing.T) {
	for addr, near := range map[string]bool{
		"/ip4/10.0.0.1/tcp/1":           true,
		"/ip6/fe80::1/udp/1/quic-v1":    true,
		"/ip4/127.0.0.1/tcp/1":          false,
		"/ip4/0.0.0.0/tcp/1":            false,
		"/dns4/host.example/tcp/1":      false,
		"/ip4/10.0.0.1/udp/1":           false,
		"/ip4/10.0.0.1/tcp/1/ws":        false,
		"/ip6/::1/udp/1/quic-v1":        false,
		"/dnsaddr/host.example/tcp/443": false,
	} {
		if isNear(ma.StringCast(addr)) != near {
			t.Errorf("%s: want %v", addr, near)
		}
	}
}
