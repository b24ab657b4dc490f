package netio

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// The dials over QUIC wait for those over TCP; libp2p's own ranker has it the other way
// round. The wait is 250 ms, a round trip on most paths (RFC 8305), or 30 ms within a
// network of one's own. TCP with TLS carries three times as much on a fast link, where
// its handshake ends within the wait. It takes four round trips and QUIC two. So QUIC
// wins where a round trip is long, and where the network has no TCP.
const (
	publicQUICWait  = swarm.PublicQUICDelay
	privateQUICWait = swarm.PrivateQUICDelay
)

// rankDials says when each address of a peer is dialled. The first dial that
// succeeds ends the others.
func rankDials(addrs []ma.Multiaddr) []network.AddrDelay { return rank(addrs, false) }

// rankBehindRouter is rankDials for a node with relays. It dials public addresses over
// QUIC first. Only what sees the UDP socket on which the node listens can tell it under
// which public address its router shows that, and holes are punched to there.
func rankBehindRouter(addrs []ma.Multiaddr) []network.AddrDelay { return rank(addrs, true) }

func rank(addrs []ma.Multiaddr, behindRouter bool) []network.AddrDelay {
	var tcp, quic, public, relayed []ma.Multiaddr
	for _, a := range addrs {
		switch {
		case isRelayed(a):
			relayed = append(relayed, a)
		case behindRouter && manet.IsPublicAddr(a):
			public = append(public, a)
		case isQUIC(a):
			quic = append(quic, a)
		default:
			tcp = append(tcp, a)
		}
	}
	out := slices.Concat(swarm.DefaultDialRanker(tcp), swarm.DefaultDialRanker(public)) // which puts QUIC first
	quicWait := func(a ma.Multiaddr) time.Duration {
		isSame := func(other ma.Multiaddr) bool { return manet.IsPrivateAddr(other) == manet.IsPrivateAddr(a) }
		switch {
		case !slices.ContainsFunc(tcp, isSame):
			return 0
		case manet.IsPrivateAddr(a):
			return privateQUICWait
		}
		return publicQUICWait
	}
	for _, d := range swarm.DefaultDialRanker(quic) {
		d.Delay += quicWait(d.Addr)
		out = append(out, d)
	}
	for _, d := range swarm.DefaultDialRanker(relayed) {
		if len(tcp)+len(quic)+len(public) > 0 {
			d.Delay += swarm.RelayDelay
		}
		out = append(out, d)
	}
	return out
}

// hostUpgrader makes secure connections out of TCP connections and of circuits
// through relays, as libp2p's upgrader does. Inbound ones take a place first; see connections.
type hostUpgrader struct {
	transport.Upgrader
	connections *connections
	// dialed is Config.Dialed. A dialer in the transport's place would do the same. But
	// libp2p logs an error for each connection of it that is not a *net.TCPConn.
	dialed func(ctx context.Context, to peer.ID, conn net.Conn) (net.Conn, error)
}

// Upgrade implements transport.Upgrader. libp2p calls it for outbound connections
// only: it upgrades a listener once, not its connections.
func (u *hostUpgrader) Upgrade(ctx context.Context, t transport.Transport, conn manet.Conn, dir network.Direction, to peer.ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	if u.dialed != nil && isTCP(conn.RemoteMultiaddr()) {
		wrapped, err := u.dialed(ctx, to, conn)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		conn = &dialedConn{wrapped, conn}
	}
	return u.Upgrader.Upgrade(ctx, t, conn, dir, to, scope)
}

// GateMaListener implements transport.Upgrader.
func (u *hostUpgrader) GateMaListener(l manet.Listener) transport.GatedMaListener {
	return &gatedListener{l, u.connections}
}

// UpgradeGatedMaListener implements transport.Upgrader.
func (u *hostUpgrader) UpgradeGatedMaListener(t transport.Transport, l transport.GatedMaListener) transport.Listener {
	return u.Upgrader.UpgradeGatedMaListener(t, &countedListener{l})
}

// countedListener ends the account of a connection when the connection is closed.
// libp2p does not end it if the peer closes the connection after the handshake and
// before the host has accepted it. Such a connection would count against the limits
// until the host closes.
type countedListener struct{ transport.GatedMaListener }

// Accept implements transport.GatedMaListener.
func (l *countedListener) Accept() (manet.Conn, network.ConnManagementScope, error) {
	conn, scope, err := l.GatedMaListener.Accept()
	if err != nil || scope == nil {
		return conn, scope, err
	}
	return &countedConn{conn, scope}, scope, nil
}

type countedConn struct {
	manet.Conn
	scope network.ConnManagementScope
}

// Close implements net.Conn. libp2p may end the account, too.
func (c *countedConn) Close() error {
	defer c.scope.Done()
	return c.Conn.Close()
}

// Stat implements network.ConnStat: a connection through a relay has limits.
func (c *countedConn) Stat() network.ConnStats {
	if s, ok := c.Conn.(network.ConnStat); ok {
		return s.Stat()
	}
	return network.ConnStats{}
}

// dialedConn carries the bytes of the connection that Config.Dialed returned,
// and has the addresses of the one that it was given.
type dialedConn struct {
	net.Conn
	within manet.Conn
}

// LocalMultiaddr implements manet.Conn.
func (c *dialedConn) LocalMultiaddr() ma.Multiaddr { return c.within.LocalMultiaddr() }

// RemoteMultiaddr implements manet.Conn.
func (c *dialedConn) RemoteMultiaddr() ma.Multiaddr { return c.within.RemoteMultiaddr() }
