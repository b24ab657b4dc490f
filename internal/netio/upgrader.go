package netio

import (
	"context"
	"errors"
	"net"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

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
	u.connections.keep(to) // this node dials members, and inviters
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
