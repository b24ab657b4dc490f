package netio

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

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

// A member that connects anew is marked, also where its connection of before ends in between.
func TestReturningMemberIsKept(t *testing.T) {
	c, err := newConnections(defaults, &network.NullResourceManager{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var members known
	members.Store(peer.ID("member"), true)
	c.carry(&members)
	before, after := &endedConn{id: "member"}, &endedConn{id: "member"}
	manager := c.Notifee()
	for _, step := range []func(){
		func() { c.identified(&inbound{}, "member") },
		func() { manager.Connected(nil, before) },
		func() { c.identified(&inbound{}, "member") },
		func() { manager.Disconnected(nil, before) },
		func() { manager.Connected(nil, after) },
	} {
		step()
	}
	if info := c.GetTagInfo("member"); info == nil || info.Tags["syncd"] != 1 {
		t.Errorf("it is not marked: %+v", info)
	}
}

// endedConn is a connection that has a peer and nothing else.
type endedConn struct {
	network.Conn
	id peer.ID
}

func (c *endedConn) RemotePeer() peer.ID           { return c.id }
func (c *endedConn) RemoteMultiaddr() ma.Multiaddr { return ma.StringCast("/ip4/127.0.0.1/tcp/1") }
func (c *endedConn) Stat() network.ConnStats       { return network.ConnStats{} }
