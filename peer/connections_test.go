package peer

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// The oldest connection of a crowded address gives way, and no address loses
// connections to one that has more.
func TestPlaces(t *testing.T) {
	const total, most = 7, 3
	sites := map[byte]site{}
	for _, name := range []byte("abcdefgh") {
		sites[name] = site{network: siteOf(netip.AddrFrom4([4]byte{192, 0, 2, name}))}
	}
	for arrivals, want := range map[string]string{
		"aaa":      "aaa",
		"abcd":     "abcd",
		"aaaa":     "aaa", // the oldest a is gone
		"bababaa":  "bbabaa",
		"aaabbbc":  "aaabbbc", // full
		"aaabbbcd": "aabbbcd", // the oldest of those that have most
		"aaabbbcc": "aabbbcc",
		"aabbccde": "abbccde",
		"abcdefga": "bcdefga", // it pushes out its own
		"abcdefgh": "bcdefgh",
	} {
		p := places{total: total, site: most}
		var out []*inbound
		for _, name := range []byte(arrivals) {
			if gone := p.take(&inbound{site: sites[name]}); gone != nil {
				out = append(out, gone)
			}
		}
		var got strings.Builder
		for _, in := range p.taken {
			for name, site := range sites {
				if site == in.site {
					got.WriteByte(name)
				}
			}
		}
		if got.String() != want {
			t.Errorf("%s: %s is left, want %s", arrivals, got.String(), want)
		}
		if len(out) != len(arrivals)-len(p.taken) {
			t.Errorf("%s: %d gave way", arrivals, len(out))
		}
		for _, in := range slices.Clone(p.taken) {
			p.remove(in)
			p.remove(in)
		}
		if len(p.taken) != 0 {
			t.Errorf("%s: places are left", arrivals)
		}
	}
}

func TestSiteOf(t *testing.T) {
	for _, same := range [][2]string{
		{"192.0.2.1", "192.0.2.1"}, {"2001:db8:1::1", "2001:db8:1:ffff::2"},
	} {
		if siteOf(netip.MustParseAddr(same[0])) != siteOf(netip.MustParseAddr(same[1])) {
			t.Errorf("%v are two sites", same)
		}
	}
	for _, other := range [][2]string{
		{"192.0.2.1", "192.0.2.2"}, {"2001:db8:1::1", "2001:db8:2::1"}, {"192.0.2.1", "2001:db8:1::1"},
	} {
		if siteOf(netip.MustParseAddr(other[0])) == siteOf(netip.MustParseAddr(other[1])) {
			t.Errorf("%v are one site", other)
		}
	}
}

// Strangers that hold on to their connections, and to all the streams that they
// may open on them, push out one another and keep out no member.
func TestCrowdOfStrangersKeepsNoConnection(t *testing.T) { overEach(t, crowdOfStrangers) }

func crowdOfStrangers(t *testing.T, listen []string) {
	limits := Limits{Connections: 12}.withDefaults()
	a, b := openForTest(t, Config{Limits: limits, ListenAddrs: listen}), openForTest(t, Config{})
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	sb := joinForTest(t, sa, b)
	at := peer.AddrInfo{ID: a.self.id}
	for _, s := range a.Addrs() {
		full := ma.StringCast(s)
		addr, _ := peer.SplitAddr(full)
		at.Addrs = append(at.Addrs, addr)
	}
	var crowd []host.Host
	for range 4 * maxStrangers(limits) {
		h, err := NewHost(Config{ListenAddrs: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		crowd = append(crowd, h)
		if err := h.Connect(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		for range 2 * peerStreams(limits) {
			if _, err := h.Network().NewStream(t.Context(), a.self.id); err != nil {
				break // it has been pushed out
			}
		}
	}
	waitFor(t, "the crowd has left", func() bool {
		strangers := 0
		for _, h := range crowd {
			if a.host.Network().Connectedness(h.ID()) == network.Connected {
				strangers++
			}
		}
		return strangers == maxSiteStrangers(limits) && a.connected(b.self.id)
	})
	for range 2 { // as it is connected, and anew
		if r, err := sb.Sync(t.Context(), a.self.id, SyncOptions{}); err != nil || !r.Verified {
			t.Errorf("a member's sync: %+v, %v", r, err)
		}
		if err := b.host.Network().ClosePeer(a.self.id); err != nil {
			t.Fatal(err)
		}
	}
	joinForTest(t, sa, openForTest(t, Config{}))
}

// More members than there are places for strangers stay connected from one
// address.
func TestMembersHaveNoPlacesOfStrangers(t *testing.T) { overEach(t, membersAndStrangers) }

func membersAndStrangers(t *testing.T, listen []string) {
	limits := Limits{Connections: 12}.withDefaults()
	a := openForTest(t, Config{Limits: limits, ListenAddrs: listen})
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var members []*Node
	for range 2 * maxSiteStrangers(limits) {
		m := openForTest(t, Config{})
		joinForTest(t, sa, m)
		members = append(members, m)
	}
	for _, m := range members {
		if !m.connected(a.self.id) {
			t.Errorf("member %s has lost its connection", m.self.id)
		}
		// A member that connects is known as one at once.
		if err := m.host.Network().ClosePeer(a.self.id); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Connect(t.Context(), a.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the connection is marked to be kept", func() bool {
			info := a.host.ConnManager().GetTagInfo(m.self.id)
			return info != nil && info.Tags["syncd"] == 1
		})
	}
}
