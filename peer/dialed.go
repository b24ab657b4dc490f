package peer

import (
	"context"
	"errors"
	"net"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/transport"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// dialedUpgrader gives each dialled connection to HostConfig.Dialed before its
// handshake. (A dialer of one's own is no way in: libp2p then logs an error for
// every connection that is not a *net.TCPConn.)
type dialedUpgrader struct {
	transport.Upgrader
	dialed func(ctx context.Context, to ID, conn net.Conn) (net.Conn, error)
}

// Upgrade implements transport.Upgrader. Only dials come here; listeners are
// upgraded as a whole.
func (u *dialedUpgrader) Upgrade(ctx context.Context, t transport.Transport, conn manet.Conn, dir network.Direction, to ID, scope network.ConnManagementScope) (transport.CapableConn, error) {
	wrapped, err := u.dialed(ctx, to, conn)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return u.Upgrader.Upgrade(ctx, t, &dialedConn{wrapped, conn}, dir, to, scope)
}

// dialedConn carries bytes as the wrapped connection does, between the addresses
// of the one within.
type dialedConn struct {
	net.Conn
	within manet.Conn
}

// LocalMultiaddr implements manet.Conn.
func (c *dialedConn) LocalMultiaddr() ma.Multiaddr { return c.within.LocalMultiaddr() }

// RemoteMultiaddr implements manet.Conn.
func (c *dialedConn) RemoteMultiaddr() ma.Multiaddr { return c.within.RemoteMultiaddr() }
