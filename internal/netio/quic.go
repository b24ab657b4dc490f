package netio

import (
	"context"
	"errors"
	"net"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"
	"go.uber.org/fx"
)

// quicTransport is libp2p's QUIC, whose inbound connections take places as those
// over TCP do; see connections.
type quicTransport struct {
	transport.Transport
	connections *connections
}

func newQUICTransport(key crypto.PrivKey, sockets *quicreuse.ConnManager, r network.ResourceManager, c *connections) (*quicTransport, error) {
	inner, err := libp2pquic.NewTransport(key, sockets, nil, nil, r)
	if err != nil {
		return nil, err
	}
	return &quicTransport{inner, c}, nil
}

// Dial implements transport.Transport.
func (t *quicTransport) Dial(ctx context.Context, addr ma.Multiaddr, to peer.ID) (transport.CapableConn, error) {
	ctx, cancel := context.WithTimeout(ctx, quicDialTimeout)
	defer cancel()
	conn, err := t.Transport.Dial(ctx, addr, to)
	if err != nil {
		return nil, err
	}
	// With hole punching the dial of the one side is an inbound connection.
	if !accepted(conn) {
		return nil, errGaveWay
	}
	return conn, nil
}

// Listen implements transport.Transport.
func (t *quicTransport) Listen(addr ma.Multiaddr) (transport.Listener, error) {
	l, err := t.Transport.Listen(addr)
	if err != nil {
		return nil, err
	}
	return &quicListener{l}, nil
}

type quicListener struct{ transport.Listener }

// Accept implements transport.Listener.
func (l *quicListener) Accept() (transport.CapableConn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || accepted(conn) {
			return conn, err
		}
	}
}

// accepted gives the account of an inbound connection the means to close it now
// that its handshake is over. It closes the connection, and reports false, if that
// has given way to another meanwhile.
func accepted(conn transport.CapableConn) bool {
	in, ok := conn.Scope().(*inbound)
	if !ok || in.hold(conn) {
		return true
	}
	conn.Close()
	return false
}

// errGaveWay ends a connection that was pushed out.
var errGaveWay = errors.New("the connection has given way to another")

// openSockets makes the UDP sockets of a host. libp2p's own would open the account
// of an inbound connection without a place.
func (c *connections) openSockets(key quic.StatelessResetKey, token quic.TokenGeneratorKey, life fx.Lifecycle) (*quicreuse.ConnManager, error) {
	sockets, err := quicreuse.NewConnManager(key, token,
		quicreuse.ConnContext(c.arriveQUIC),
		quicreuse.VerifySourceAddress(func(net.Addr) bool { return c.wantProof() }),
	)
	if err != nil {
		return nil, err
	}
	life.Append(fx.StopHook(sockets.Close))
	return sockets, nil
}

// arriveQUIC takes a place for a QUIC connection, whose first packet has come. Until the
// handshake is over quic-go lets nothing close the connection. One that gives way is
// closed once it is over, when libp2p asks for its account, and quic-go ends what stays
// silent after 5 s. To cancel its context would end the handshake with the peer's next
// message. But if the handshake is just over, quic-go goes on with the connection, and
// nothing ever accepts it.
func (c *connections) arriveQUIC(ctx context.Context, from *quic.ClientInfo) (context.Context, error) {
	addr, err := quicreuse.ToQuicMultiaddr(from.RemoteAddr, quic.Version1)
	if err != nil {
		return nil, err
	}
	in, err := c.arrive(addr, unopened{}, arrival{proved: from.AddrVerified})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, in.Done) // quic-go ends the context with the connection
	return network.WithConnManagementScope(ctx, in), nil
}

// unopened is a connection that nothing can close yet.
type unopened struct{}

// Close implements io.Closer.
func (unopened) Close() error { return nil }
