package netio

import (
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
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
