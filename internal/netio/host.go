package netio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"go.uber.org/fx"
)

// defaultListen lets no other machine connect until the user says so.
var defaultListen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}

// Config says how a host is made.
type Config struct {
	// Identity is the host's key.
	Identity crypto.PrivKey
	// ListenAddrs are multiaddrs. Default (nil): TCP and QUIC on the loopback, on free ports.
	ListenAddrs []string
	// AnnounceAddrs are announced in place of those, at most MaxAddrs.
	AnnounceAddrs []string
	// Relays are multiaddrs that end in /p2p/ and the relay's id, of at most MaxRelays.
	Relays []string
	// RelayService makes the host a relay between members.
	RelayService bool
	// Dialed, if not nil, exchanges each TCP connection that was opened to a peer, before the
	// handshake.
	Dialed func(ctx context.Context, to peer.ID, conn net.Conn) (net.Conn, error)
	// Limits are the bounds; all fields are set.
	Limits Limits
}

// NewHost makes a host that listens. The caller closes it.
func NewHost(cfg Config) (host.Host, error) {
	self, err := peer.IDFromPrivateKey(cfg.Identity)
	if err != nil {
		return nil, err
	}
	announced, err := parseAnnounced(self, cfg.AnnounceAddrs)
	if err != nil {
		return nil, err
	}
	relays, err := parseRelays(self, cfg.Relays)
	if err != nil {
		return nil, err
	}
	h, kept, err := silentHost(cfg, announced, relays)
	if err != nil {
		return nil, err
	}
	if err := listenOn(h, cfg.ListenAddrs); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	kept.start()
	return h, nil
}

// silentHost makes a host with two transports, TCP and QUIC. No part of it dials or listens
// by itself, unless its relays are started: no port mapping, no search. libp2p's default
// limits scale with the machine's memory, and its default metrics register globally. So
// both are set here. The host does not listen yet: a libp2p host that fails to listen while
// it is made leaves goroutines behind.
func silentHost(cfg Config, announced []ma.Multiaddr, at []peer.AddrInfo) (host.Host, *relays, error) {
	resources, err := newResources(cfg.Limits)
	if err != nil {
		return nil, nil, err
	}
	connections, err := newConnections(cfg.Limits, resources)
	if err != nil {
		return nil, nil, errors.Join(err, resources.Close())
	}
	newTCP := func(u transport.Upgrader, r network.ResourceManager) (*tcp.TcpTransport, error) {
		u = &hostUpgrader{u, connections, cfg.Dialed}
		// With SO_REUSEPORT a second node could listen on the port, and each would
		// get some of the connections.
		return tcp.NewTCPTransport(u, r, nil, tcp.DisableReuseport())
	}
	newQUIC := func(key crypto.PrivKey, sockets *quicreuse.ConnManager, r network.ResourceManager) (*quicTransport, error) {
		return newQUICTransport(key, sockets, r, connections)
	}
	relays := &relays{at: at, reserved: map[peer.ID]bool{}}
	announce := func(listening []ma.Multiaddr) []ma.Multiaddr {
		if len(announced) > 0 {
			listening = announced
		}
		return slices.Concat(listening, relays.circuits())
	}
	ranker := rankDials
	if len(at) > 0 {
		ranker = rankBehindRouter
	}
	options := []libp2p.Option{
		libp2p.Identity(cfg.Identity),
		libp2p.NoListenAddrs,
		libp2p.AddrsFactory(announce),
		libp2p.Transport(newTCP),
		libp2p.Transport(newQUIC),
		libp2p.QUICReuse(connections.openSockets),
		libp2p.SwarmOpts(swarm.WithDialRanker(ranker)),
		libp2p.Security(libp2ptls.ID, libp2ptls.New),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, streams()),
		libp2p.ResourceManager(resources),
		libp2p.ConnectionManager(connections),
		libp2p.WithDialTimeout(cfg.Limits.DialTimeout),
		libp2p.UserAgent("syncd"),
		libp2p.DisableRelay(),
		libp2p.DisableMetrics(),
		libp2p.Ping(false),
		libp2p.WithFxOption(fx.Invoke(func(h host.Host, u transport.Upgrader, life fx.Lifecycle) error {
			if len(at) > 0 {
				life.Append(fx.StopHook(relays.stop))
			}
			if cfg.RelayService {
				service, err := connections.serveRelay(h)
				if err != nil {
					return err
				}
				life.Append(fx.StopHook(service.Close))
			}
			return relays.attach(h, &hostUpgrader{u, connections, nil})
		})),
	}
	if len(at) > 0 {
		// Peers tell the node under which public address they see it: hole punching
		// is to that.
		options = append(options, libp2p.EnableHolePunching())
	} else {
		options = append(options, libp2p.DisableIdentifyAddressDiscovery())
	}
	h, err := libp2p.New(options...)
	if err != nil {
		return nil, nil, errors.Join(err, resources.Close(), connections.Close())
	}
	return h, relays, nil
}

// streams is libp2p's yamux, which asks half as often whether the peer of an idle
// connection is still there. These questions are most of what a node sends at rest.
func streams() *yamux.Transport {
	t := *yamux.DefaultTransport
	t.KeepAliveInterval = time.Minute
	return &t
}

// listenOn makes a host listen on all of the addresses.
func listenOn(h host.Host, addrs []string) error {
	if addrs == nil {
		addrs = defaultListen
	}
	for _, s := range addrs {
		a, err := ma.NewMultiaddr(s)
		if err != nil {
			return fmt.Errorf("listen on %q: want a multiaddr such as /ip4/0.0.0.0/tcp/4001 or /ip4/0.0.0.0/udp/4001/quic-v1: %w", s, err)
		}
		if err := h.Network().Listen(a); err != nil {
			return fmt.Errorf("listen on %s: %w", s, err)
		}
	}
	return nil
}
