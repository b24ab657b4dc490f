package netio

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"
)

// Of a peer that has both transports, a node dials TCP first. A machine
// that is busy for longer than the dial over QUIC waits may connect over QUIC: of
// ten connections one over TCP is enough.
func TestTCPComesFirst(t *testing.T) {
	a, b := serveForTest(t, Config{}, nil), serveForTest(t, Config{ListenAddrs: []string{}}, nil)
	for range 10 {
		must(t, b.Dial(t.Context(), a.ID(), a.Dialable()))
		for _, conn := range b.Network().ConnsToPeer(a.ID()) {
			if isTCP(conn.RemoteMultiaddr()) {
				return
			}
		}
		must(t, b.Network().ClosePeer(a.ID()))
	}
	t.Error("ten connections to a node with both transports are over QUIC")
}

func TestRankDials(t *testing.T) {
	const (
		publicTCP   = "/ip4/198.51.100.1/tcp/4747"
		publicQUIC  = "/ip4/198.51.100.1/udp/4747/quic-v1"
		realTCP     = "/ip4/8.8.8.8/tcp/4747" // those above are for documents, and count as not public
		realQUIC    = "/ip4/8.8.8.8/udp/4747/quic-v1"
		privateTCP  = "/ip4/10.0.0.1/tcp/4747"
		privateQUIC = "/ip4/10.0.0.1/udp/4747/quic-v1"
		relayed     = "/ip4/203.0.113.1/tcp/4747/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA/p2p-circuit"
	)
	for _, c := range []struct {
		behindRouter bool
		addrs        []string
		want         map[string]time.Duration
	}{
		{true, []string{realTCP, realQUIC, privateQUIC, privateTCP, relayed}, map[string]time.Duration{
			realQUIC: 0, realTCP: swarm.PublicTCPDelay, privateTCP: 0, privateQUIC: privateQUICWait, relayed: swarm.RelayDelay,
		}},
		{true, []string{realTCP, relayed}, map[string]time.Duration{realTCP: 0, relayed: swarm.RelayDelay}},
		{false, []string{publicQUIC, publicTCP}, map[string]time.Duration{publicTCP: 0, publicQUIC: publicQUICWait}},
		{false, []string{privateQUIC, privateTCP}, map[string]time.Duration{privateTCP: 0, privateQUIC: privateQUICWait}},
		{false, []string{publicQUIC}, map[string]time.Duration{publicQUIC: 0}},
		{false, []string{relayed}, map[string]time.Duration{relayed: 0}},
		{false, []string{relayed, privateQUIC}, map[string]time.Duration{privateQUIC: 0, relayed: swarm.RelayDelay}},
		// TCP on another network says nothing about this one.
		{false, []string{publicQUIC, privateTCP}, map[string]time.Duration{privateTCP: 0, publicQUIC: 0}},
	} {
		var addrs []ma.Multiaddr
		for _, a := range c.addrs {
			addrs = append(addrs, ma.StringCast(a))
		}
		rank := rankDials
		if c.behindRouter {
			rank = rankBehindRouter
		}
		got := rank(addrs)
		if len(got) != len(c.want) {
			t.Errorf("%v: ranked %v", c.addrs, got)
		}
		for _, d := range got {
			if want, ok := c.want[d.Addr.String()]; !ok || d.Delay != want {
				t.Errorf("%v, behind a router %t: %s after %s, want %s", c.addrs, c.behindRouter, d.Addr, d.Delay, want)
			}
		}
	}
}

// A place, and the account with libp2p, end with the connection.
func TestQUICPlacesAreGivenBack(t *testing.T) {
	a := serveForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}}, nil)
	c := a.ConnManager().(*connections)
	taken := func() (int, int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.handshakes.taken), len(c.strangers.taken)
	}
	b := serveForTest(t, Config{ListenAddrs: []string{}}, nil)
	must(t, b.Dial(t.Context(), a.ID(), a.Dialable()))
	waitFor(t, "the stranger has a place", func() bool { h, s := taken(); return h == 0 && s == 1 })
	must(t, b.Network().ClosePeer(a.ID()))
	waitFor(t, "the place is given back", func() bool { h, s := taken(); return h == 0 && s == 0 })
	waitFor(t, "the connection is off the books", func() bool {
		n := -1
		err := c.resources.ViewSystem(func(s network.ResourceScope) error { n = s.Stat().NumConnsInbound; return nil })
		return err == nil && n == 0
	})
}

// deafConn is a socket that hears no more than what its owner lets through.
type deafConn struct {
	net.PacketConn
	lets func(packet []byte) bool
}

func (c *deafConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil || n > 0 && c.lets(b[:n]) {
			return n, from, err
		}
	}
}

// isRetry reports whether a QUIC packet asks for a proof of the address (RFC 9000,
// section 17.2.5).
func isRetry(packet []byte) bool { return packet[0]&0xf0 == 0xf0 }

// Handshakes over QUIC that go no further keep no member out, from their own
// address: those that do not prove it take few places, and those that do push out
// one another.
func TestSilentQUICHandshakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lets func([]byte) bool
		most int
	}{
		"unproved": {func([]byte) bool { return false }, maxUnproved},
		"proved":   {isRetry, maxSiteHandshakes},
	} {
		t.Run(name, func(t *testing.T) {
			members := &known{}
			a, b := serveForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/udp/0/quic-v1"}}, members), serveForTest(t, Config{}, nil)
			members.Store(b.ID(), true)
			socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
			must(t, err)
			defer socket.Close()
			tr := &quic.Transport{Conn: &deafConn{socket, c.lets}}
			defer tr.Close()
			at, _, err := quicreuse.FromQuicMultiaddr(a.Dialable()[0])
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			const count = 300
			ended := make(chan struct{}, count)
			for range count {
				go func() {
					defer func() { ended <- struct{}{} }()
					for ctx.Err() == nil { // each goes on for some seconds
						tr.Dial(ctx, at, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"libp2p"}}, nil)
					}
				}()
			}
			connections := a.ConnManager().(*connections)
			taken := func() int {
				connections.mu.Lock()
				defer connections.mu.Unlock()
				return len(connections.handshakes.taken)
			}
			waitFor(t, "the places are taken", func() bool { return taken() >= c.most })
			for range 3 {
				// A busy machine takes longer for so many handshakes than quicDialTimeout.
				waitFor(t, "a member's dial succeeds", func() bool { return b.Dial(t.Context(), a.ID(), a.Dialable()) == nil })
				if n := taken(); n > c.most {
					t.Errorf("%d places are taken, want at most %d", n, c.most)
				}
				must(t, b.Network().ClosePeer(a.ID()))
			}
			newcomer := serveForTest(t, Config{ListenAddrs: []string{}}, nil)
			waitFor(t, "a newcomer's dial succeeds", func() bool { return newcomer.Dial(t.Context(), a.ID(), a.Dialable()) == nil })
			cancel()
			for range count {
				<-ended
			}
			if name == "unproved" { // which takes quic-go 5 s
				waitFor(t, "the places are free again", func() bool { return taken() == 0 })
			}
		})
	}
}

// openConnections is a connection manager with the default limits, until the test ends.
func openConnections(t *testing.T) *connections {
	t.Helper()
	limits := defaults
	resources, err := newResources(limits)
	must(t, err)
	t.Cleanup(func() { _ = resources.Close() })
	c, err := newConnections(limits, resources)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A packet with a forged address pushes nothing out, and its connection waits for
// a proof once some are in their handshake.
func TestForgedAddressTakesNoPlace(t *testing.T) {
	c := openConnections(t)
	come := func(proved bool) error {
		from := &quic.ClientInfo{RemoteAddr: net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1")), AddrVerified: proved}
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		_, err := c.arriveQUIC(ctx, from)
		return err
	}
	for i := range maxUnproved {
		if c.wantProof() {
			t.Fatalf("connection %d must prove its address", i)
		}
		must(t, come(false))
	}
	if err := come(false); err == nil || !c.wantProof() {
		t.Errorf("one more took a place without a proof: %v", err)
	}
	for range 2 * maxSiteHandshakes {
		if err := come(true); err != nil {
			t.Errorf("the address itself, with a proof: %v", err)
		}
	}
	if n := len(c.handshakes.taken); n != maxSiteHandshakes {
		t.Errorf("%d places are taken, want %d", n, maxSiteHandshakes)
	}
}

// A connection over QUIC that gives way in its handshake keeps its context, since quic-go
// loses one whose context ends when the handshake is just over: it stays open, and nothing
// accepts it. It is refused once the handshake is over, and closed if it has given way
// after that.
func TestGivingWayOverQUIC(t *testing.T) {
	c := openConnections(t)
	from := &quic.ClientInfo{RemoteAddr: net.UDPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1")), AddrVerified: true}
	come := func() (context.Context, *inbound) {
		ctx, err := c.arriveQUIC(t.Context(), from)
		must(t, err)
		scope, err := network.UnwrapConnManagementScope(ctx)
		must(t, err)
		return ctx, scope.(*inbound)
	}
	early, before := come()
	late, after := come()
	must(t, after.SetPeer(peer.ID("some peer")))
	for range 2 * maxSiteHandshakes {
		come()
	}
	after.close() // as a place that was taken while SetPeer ran
	if early.Err() != nil || late.Err() != nil {
		t.Errorf("a context has ended: %v, %v", early.Err(), late.Err())
	}
	if err := before.SetPeer(peer.ID("some peer")); !errors.Is(err, errGaveWay) {
		t.Errorf("after the handshake: %v", err)
	}
	if after.hold(unopened{}) {
		t.Error("what has given way is accepted")
	}
}
