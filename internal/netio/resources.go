package netio

import (
	"math"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// newResources makes libp2p's resource manager with the bounds of limits.go. Its
// own bounds for each address are lifted: connections has them.
func newResources(l Limits) (network.ResourceManager, error) {
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(resourceLimits(l)),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithConnRateLimiters(&rate.Limiter{}),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: siteIPv4, ConnCount: math.MaxInt}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: siteIPv6, ConnCount: math.MaxInt}},
		),
	)
}

// resourceLimits are the bounds in libp2p's terms. They are of the whole host (system),
// of what belongs to no peer or protocol yet (transient), and of each peer, connection
// and stream. Services and protocols, of which a host has a handful, are bounded by the
// whole.
func resourceLimits(l Limits) rcmgr.ConcreteLimitConfig {
	// The connection manager closes connections above Limits.Connections once in 10 s
	// and never in their first minute. Until then there may be twice as many.
	known := 2 * l.Connections
	strangers := maxStrangers(l)
	outbound := known + dials
	inbound := maxHandshakes + strangers + known
	// Of strangers' streams, all may be open and silent. Of members', each has
	// those of identify, and the sessions their own.
	quiet := strangers * peerStreams(l)
	streams := identifyStreams*known + 4*l.Sessions

	system := bounds(outbound, inbound, streams, quiet+streams, hostMemory)
	// An account is opened before that of the connection which gives way is ended:
	// one more for each listener.
	transient := bounds(dials, maxHandshakes+MaxAddrs, streams, quiet+streams, hostMemory)
	perPeer := bounds(peerConnections, peerConnections, peerStreams(l)+l.Sessions, peerStreams(l), peerMemory)
	one := bounds(1, 1, 1, 1, streamMemory)
	config := rcmgr.PartialLimitConfig{
		System: system, Transient: transient,
		ServiceDefault: system, ServicePeerDefault: perPeer,
		ProtocolDefault: system, ProtocolPeerDefault: perPeer,
		PeerDefault: perPeer, Conn: one, Stream: one,
	}
	// What is not named above stays at zero, which blocks.
	return config.Build(rcmgr.ConcreteLimitConfig{})
}

// bounds makes the limits of a scope. A connection takes one file descriptor.
func bounds(connsOut, connsIn, streamsOut, streamsIn int, memory int64) rcmgr.ResourceLimits {
	limit := func(n int) rcmgr.LimitVal { return rcmgr.LimitVal(n) }
	return rcmgr.ResourceLimits{
		Conns: limit(connsOut + connsIn), ConnsOutbound: limit(connsOut), ConnsInbound: limit(connsIn),
		Streams: limit(streamsOut + streamsIn), StreamsOutbound: limit(streamsOut), StreamsInbound: limit(streamsIn),
		FD: limit(connsOut + connsIn), Memory: rcmgr.LimitVal64(memory),
	}
}
