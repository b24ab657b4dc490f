package peer

import (
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// The places of strangers with Limits{Connections: 12}, in all and of one address, and the
// streams that each peer may open; see package netio.
const (
	strangers     = 6
	siteStrangers = 3
	peerStreams   = 80
)

func overQUIC(a ma.Multiaddr) bool { return strings.HasSuffix(a.String(), "/quic-v1") }

func overTCP(a ma.Multiaddr) bool { return strings.Contains(a.String(), "/tcp/") }

// overEach runs a test with a node that listens over TCP only, and with one that
// listens over QUIC only.
func overEach(t *testing.T, test func(t *testing.T, listen []string)) {
	for name, listen := range map[string]string{"tcp": "/ip4/127.0.0.1/tcp/0", "quic": "/ip4/127.0.0.1/udp/0/quic-v1"} {
		t.Run(name, func(t *testing.T) { test(t, []string{listen}) })
	}
}

// By default a node listens over both transports. Where a peer has one alone, they
// sync over that.
func TestTransports(t *testing.T) {
	a := openForTest(t, Config{})
	if got := a.host.Dialable(); len(got) != 2 || !overTCP(got[0]) || !overQUIC(got[1]) {
		t.Errorf("a node listens on %v by default, want TCP and QUIC", got)
	}
	for _, c := range []struct {
		listen []string
		is     func(ma.Multiaddr) bool
	}{
		{[]string{"/ip4/127.0.0.1/tcp/0"}, overTCP},
		{[]string{"/ip4/127.0.0.1/udp/0/quic-v1"}, overQUIC},
	} {
		a, b := openForTest(t, Config{ListenAddrs: c.listen}), openForTest(t, Config{ListenAddrs: []string{}})
		sa := createForTest(t, a, Policy{})
		must(t, errOf(sa.Put(t.Context(), []byte("k"), make([]byte, 1<<20))))
		sb := joinForTest(t, sa, b, RoleWrite)
		if r, err := sb.Sync(t.Context(), a.self.id, SyncOptions{}); err != nil || !r.Verified {
			t.Errorf("listening on %v: %+v, %v", c.listen, r, err)
		}
		for _, conn := range b.host.Network().ConnsToPeer(a.self.id) {
			if !c.is(conn.RemoteMultiaddr()) {
				t.Errorf("listening on %v: connected over %s", c.listen, conn.RemoteMultiaddr())
			}
		}
	}
}

// Strangers that hold on to their connections, and to all the streams that they
// may open on them, push out one another and keep out no member.
func TestCrowdOfStrangersKeepsNoConnection(t *testing.T) { overEach(t, crowdOfStrangers) }

func crowdOfStrangers(t *testing.T, listen []string) {
	limits := Limits{Connections: 12}
	a, b := openForTest(t, Config{Limits: limits, ListenAddrs: listen}), openForTest(t, Config{})
	sa := createForTest(t, a, Policy{})
	sb := joinForTest(t, sa, b, RoleWrite)
	at := peer.AddrInfo{ID: a.self.id}
	for _, s := range a.Addrs() {
		full := ma.StringCast(s)
		addr, _ := peer.SplitAddr(full)
		at.Addrs = append(at.Addrs, addr)
	}
	var crowd []host.Host
	for range 4 * strangers {
		h, err := NewHost(Config{ListenAddrs: []string{}})
		must(t, err)
		defer h.Close()
		crowd = append(crowd, h)
		must(t, h.Connect(t.Context(), at))
		for range 2 * peerStreams {
			if _, err := h.Network().NewStream(t.Context(), a.self.id); err != nil {
				break // it has been pushed out
			}
		}
	}
	eventually(t, "the crowd has left", func() bool {
		connected := 0
		for _, h := range crowd {
			if a.host.Network().Connectedness(h.ID()) == network.Connected {
				connected++
			}
		}
		return connected == siteStrangers && a.host.Connected(b.self.id)
	})
	for range 2 { // as it is connected, and anew
		if r, err := sb.Sync(t.Context(), a.self.id, SyncOptions{}); err != nil || !r.Verified {
			t.Errorf("a member's sync: %+v, %v", r, err)
		}
		must(t, b.host.Network().ClosePeer(a.self.id))
	}
	joinForTest(t, sa, openForTest(t, Config{}), RoleWrite)
}

// More members than there are places for strangers stay connected from one
// address.
func TestMembersHaveNoPlacesOfStrangers(t *testing.T) { overEach(t, membersAndStrangers) }

func membersAndStrangers(t *testing.T, listen []string) {
	limits := Limits{Connections: 12}
	a := openForTest(t, Config{Limits: limits, ListenAddrs: listen})
	sa := createForTest(t, a, Policy{})
	var members []*Node
	for range 2 * siteStrangers {
		m := openForTest(t, Config{})
		joinForTest(t, sa, m, RoleWrite)
		members = append(members, m)
	}
	for _, m := range members {
		if !m.host.Connected(a.self.id) {
			t.Errorf("member %s has lost its connection", m.self.id)
		}
		// A member that connects is known as one at once.
		must(t, m.host.Network().ClosePeer(a.self.id))
		must(t, errOf(m.Connect(t.Context(), a.Addrs()[0])))
		eventually(t, "the connection is marked to be kept", func() bool {
			info := a.host.ConnManager().GetTagInfo(m.self.id)
			return info != nil && info.Tags["syncd"] == 1
		})
	}
}
