package netio

import (
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// What a neighbour says buys dials to members only, at addresses that can be its
// own, now and then.
func TestNeighbours(t *testing.T) {
	members := &known{}
	a, b := serveForTest(t, Config{}, members), serveForTest(t, Config{}, nil)
	m := &neighbours{network: a, dialed: map[peer.ID]time.Time{}}
	if m.begin(b.ID()) {
		t.Error("a stranger would be dialled")
	}
	members.Store(b.ID(), true)
	must(t, a.Dial(t.Context(), b.ID(), b.Dialable()))
	if m.begin(b.ID()) {
		t.Error("a member that is connected would be dialled")
	}
	must(t, a.Network().ClosePeer(b.ID()))
	waitFor(t, "the connection is gone", func() bool { return !a.Connected(b.ID()) && !b.Connected(a.ID()) })
	// An address of this machine itself is not dialled.
	m.HandlePeerFound(peer.AddrInfo{ID: b.ID(), Addrs: b.Dialable()})
	if a.Connected(b.ID()) {
		t.Error("a neighbour was dialled on loopback")
	}
	if !m.begin(b.ID()) {
		t.Error("a member would not be dialled")
	}
	if m.begin(b.ID()) {
		t.Error("a member would be dialled twice at once")
	}
	m.end()
	if m.begin(b.ID()) {
		t.Error("a member would be dialled again at once")
	}
	must(t, a.node.Book.Remove(b.ID()))
	m.dialed = map[peer.ID]time.Time{}
	if m.begin(b.ID()) {
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
