package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	manet "github.com/multiformats/go-multiaddr/net"
	"go.uber.org/fx"
)

// defaultListen lets no other machine connect until the user says so.
var defaultListen = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}

// NewHost makes the host that Open would make, for callers that share it with other protocols or see
// its connections. It reads Identity, ListenAddrs, AnnounceAddrs, Relays, RelayService, Dialed and
// Limits of the Config, and opens no file. Without an Identity it draws a fresh one. The caller sets
// the host as the Host of the Config that it gives to Open, and closes it after the node.
func NewHost(cfg Config) (host.Host, error) {
	h, err := newHost(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a host: %w", err)
	}
	return h, nil
}

func newHost(cfg Config) (_ host.Host, err error) {
	if cfg.Identity == nil {
		if cfg.Identity, err = freshIdentity(); err != nil {
			return nil, err
		}
	}
	self, err := newIdentity(cfg.Identity)
	if err != nil {
		return nil, err
	}
	announced, err := parseAnnounced(self.id, cfg.AnnounceAddrs)
	if err != nil {
		return nil, err
	}
	relays, err := parseRelays(self.id, cfg.Relays)
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
	limits := cfg.Limits.withDefaults()
	resources, err := newResources(limits)
	if err != nil {
		return nil, nil, err
	}
	connections, err := newConnections(limits, resources)
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
	relays := &relays{at: at, reserved: map[ID]bool{}}
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
		libp2p.WithDialTimeout(limits.DialTimeout),
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

// Addrs are the multiaddrs that the node tells to others, each ending in /p2p/ and the
// node's id: Config.AnnounceAddrs if there are any, otherwise those that it listens on.
// A node that listens on all interfaces (/ip4/0.0.0.0) has an address for each of them.
// That of the loopback is the last.
func (n *Node) Addrs() []string {
	out := []string{}
	for _, a := range n.dialable() {
		out = append(out, a.String()+"/p2p/"+n.self.id.String())
	}
	return out
}

// dialable lists at most MaxAddrs of the node's addresses, those that are of most
// use to others first.
func (n *Node) dialable() []ma.Multiaddr {
	out := slices.Clone(n.host.Addrs())
	slices.SortStableFunc(out, func(a, b ma.Multiaddr) int { return cmp.Compare(farness(a), farness(b)) })
	return out[:min(len(out), MaxAddrs)]
}

// farness is lower for addresses that serve more peers better.
func farness(a ma.Multiaddr) (n int) {
	if manet.IsIPLoopback(a) && !isRelayed(a) {
		n += 2
	}
	if isQUIC(a) {
		n++
	}
	return n
}

// dial connects to a peer, unless this node is connected to it already.
func (n *Node) dial(ctx context.Context, id ID, addrs []ma.Multiaddr) error {
	if id == n.self.id {
		return fmt.Errorf("connect to %s: %w: that is this node itself", id, ErrUnreachable)
	}
	ctx, cancel := context.WithTimeout(overRelays(ctx), n.limits.DialTimeout)
	defer cancel()
	addrs = append(addrs, n.book.of(id)...)
	end, err := n.dialling.turn(ctx, id)
	if err != nil {
		return fmt.Errorf("connect to %s: %w: %w", id, ErrUnreachable, err)
	}
	defer end()
	begun := time.Now()
	err = n.dialOnce(ctx, id, addrs)
	if err != nil && ctx.Err() == nil && time.Since(begun) < freshFailure {
		// This dial may have joined one that libp2p began earlier, for a stream. That
		// one may have failed for a reason that is gone; see dialling.
		err = n.dialOnce(ctx, id, addrs)
	}
	if err != nil {
		if len(addrs) == 0 && len(n.host.Peerstore().Addrs(id)) == 0 {
			return fmt.Errorf("connect to %s: %w: no address of it is known: add one", id, ErrUnreachable)
		}
		return fmt.Errorf("connect to %s: %w: %w", id, ErrUnreachable, err)
	}
	return nil
}

func (n *Node) dialOnce(ctx context.Context, id ID, addrs []ma.Multiaddr) error {
	// After a failure libp2p does not dial an address for a while. A caller that
	// asks for a connection wants one now; background syncs have rests of their own.
	if dialer, ok := n.host.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		dialer.Backoff().Clear(id)
	}
	return n.host.Connect(ctx, peer.AddrInfo{ID: id, Addrs: addrs})
}

// connected reports whether there is a connection to a peer, be it through a relay.
func (n *Node) connected(id ID) bool {
	return slices.Contains([]network.Connectedness{network.Connected, network.Limited}, n.host.Network().Connectedness(id))
}
