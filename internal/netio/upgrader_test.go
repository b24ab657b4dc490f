package netio

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
)

// tcpTransport is the transport of a host, with a resource manager of its own.
func tcpTransport(t *testing.T) (*tcp.TcpTransport, peer.ID, network.ResourceManager) {
	t.Helper()
	key, id := freshKey(t)
	resources, err := newResources(defaults)
	must(t, err)
	t.Cleanup(func() { resources.Close() })
	connections, err := newConnections(defaults, resources)
	must(t, err)
	t.Cleanup(func() { connections.Close() })
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	secure, err := noise.New(noise.ID, key, muxers)
	must(t, err)
	u, err := upgrader.New([]sec.SecureTransport{secure}, muxers, nil, resources, nil, upgrader.WithAcceptTimeout(time.Hour))
	must(t, err)
	made, err := tcp.NewTCPTransport(&hostUpgrader{Upgrader: u, connections: connections}, resources, nil, tcp.DisableReuseport())
	must(t, err)
	return made, id, resources
}

// A connection that its dialler closes before it has been accepted is off the
// books as soon as it is closed.
func TestConnectionClosedBeforeItIsAccepted(t *testing.T) {
	server, id, books := tcpTransport(t)
	client, _, _ := tcpTransport(t)
	listener, err := server.Listen(ma.StringCast("/ip4/127.0.0.1/tcp/0"))
	must(t, err)
	defer listener.Close()
	conn, err := client.Dial(context.Background(), listener.Multiaddr(), id)
	must(t, err)
	counted := func() (n int) {
		err := books.ViewSystem(func(s network.ResourceScope) error { n = s.Stat().NumConnsInbound; return nil })
		if err != nil {
			t.Error(err)
		}
		return n
	}
	// A stream shows that the handshake is over on the other side, too.
	stream, err := conn.OpenStream(context.Background())
	must(t, err)
	if _, err := stream.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n := counted(); n != 1 {
		t.Errorf("%d connections are counted", n)
	}
	must(t, conn.Close())
	waitFor(t, "the connection is off the books", func() bool { return counted() == 0 })
}
