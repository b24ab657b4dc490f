package netio

import (
	"math"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
)

// Limits are the bounds of a host that its node chooses.
type Limits struct {
	// Connections is the high-water mark of the connections.
	Connections int
	// DialTimeout bounds a dial.
	DialTimeout time.Duration
	// Sessions is how many syncs the node begins at once.
	Sessions int
	// PeerStreams is how many streams a peer may have open at once, less those of identify.
	PeerStreams int
}

const (
	// MaxAddrs is how many addresses are kept of a peer.
	MaxAddrs = 16
	// MaxRelays is how many relays a node has.
	MaxRelays = 4
	// MaxPeers is how many peers the address book holds.
	MaxPeers = 10_000
	// maxAddrSize is above any multiaddr of use: a DNS name takes 253 bytes.
	maxAddrSize = 512
)

// The bounds of the relay that a node can be for its members; see relayLimits.
const (
	// maxReservations members have a place each.
	maxReservations = 128
	// maxCircuits is how many circuits a member may have at once. With its syncs
	// they are fewer than the streams that it may have; see peerStreams.
	maxCircuits = 8
	// relayedTime and relayedBytes, in each direction, are what a circuit carries
	// before it is cut. A sync that is cut is tried again over a new one.
	relayedTime  = time.Hour
	relayedBytes = 1 << 30
	// relayBuffer is taken twice for each circuit: 16 MiB for 256.
	relayBuffer = 32 << 10
	// relayReservation is how long a place is kept without being renewed.
	relayReservation = time.Hour
)

// What an answer over mDNS may cost: neighbourDials run at once, and a member is
// dialled at most once each neighbourPause.
const (
	neighbourDials = 8
	neighbourPause = 10 * time.Second
)

// How a node keeps its places at relays.
const (
	// relayTimeout bounds connecting to a relay and asking for a place.
	relayTimeout = 20 * time.Second
	// relayRetry follows a failure, and relayPause the end of the connection.
	relayRetry = 30 * time.Second
	relayPause = time.Second
	// relayRenewal renews a place that would last longer.
	relayRenewal = 30 * time.Minute
)

// The bounds of a host's connections. They are the same on every machine, so that a
// node behaves the same on each. libp2p's own scale with the memory and the file
// descriptors that it finds. See connections for how they work together.
const (
	// maxHandshakes inbound connections may be without a proved identity. Each takes
	// some 20 KiB, and over TCP a file descriptor. It does so at most until libp2p
	// gives up, after 15 s (TCP) or 10 s (QUIC).
	maxHandshakes = 256
	// maxSiteHandshakes of them may come from one address. So many nodes behind one
	// router can connect again at once, and four hostile addresses are needed to fill
	// all places.
	maxSiteHandshakes = 64
	// maxUnproved of them may be there before a connection over QUIC must prove its
	// address first. As many nodes can begin at once in two round trips. A place that a
	// forged address took is free after 5 s.
	maxUnproved = 32
	// siteIPv4 and siteIPv6 are the lengths of the prefixes that count as one address.
	// They are one IPv4 address, and the largest IPv6 network that one site is given
	// (RIPE-690).
	siteIPv4 = 32
	siteIPv6 = 48
	// mostStrangers bounds the connections of peers that are not members, whatever
	// Limits.Connections. Their streams, all open and silent, reserve 80 × 40 × 256 KiB
	// = 800 MiB of hostMemory.
	mostStrangers = 80
	// peerConnections is how many connections a peer may have. One is enough, and two
	// are there for a while when two nodes dial one another at once. Those that broke
	// unseen are counted until their time-out.
	peerConnections = 8
	// identifyStreams is room for the streams with which two hosts of libp2p tell
	// one another their addresses; two at once are usual.
	identifyStreams = 8
	// dials is how many outbound connections may be about to learn where they lead.
	// libp2p dials up to 8 addresses of a peer at once.
	dials = 64
	// quicDialTimeout bounds a dial over QUIC: a closed UDP port says nothing, where
	// a TCP port refuses at once. The handshake takes one round trip, or two, and
	// two of its packets may be lost.
	quicDialTimeout = 3 * time.Second
	// freshFailure is how long a failed dial may have taken for another to follow. It may have begun before it was
	// asked for.
	freshFailure = time.Second
	// streamMemory is what yamux may reserve for one stream or connection. Its receive
	// window grows to 16 MiB, and is copied when it grows. QUIC's windows grow to 10
	// MiB a stream and 15 MiB a connection.
	streamMemory = 32 << 20
	// peerMemory lets SessionsPerPeer streams of a peer have their whole window.
	peerMemory = 256 << 20
	// hostMemory is for all peers. Windows grow only while less than half of it is
	// taken, so that new streams, of 256 KiB each, find room.
	hostMemory = 1 << 30
)

// arrivals is how fast inbound connections may come from one address. A whole handshake
// was measured at 1 ms of a processor a side, so that 200 a second take a fifth of one.
// A handshake then has 320 ms before 64 later ones from its address push it out. The
// burst lets all nodes behind one router come back at once.
var arrivals = rate.Limit{RPS: 200, Burst: 500}

// maxStrangers is how many connections of peers that are not members are kept. It is
// half of those that the host may have, so that they push out few members.
func maxStrangers(l Limits) int { return min(mostStrangers, max(2, l.Connections/2)) }

// maxSiteStrangers of them may come from one address. So several nodes behind one
// router can join at once, and two hostile addresses are needed to fill all places.
func maxSiteStrangers(l Limits) int { return maxStrangers(l) / 2 }

// peerStreams is how many streams a peer may have open in one direction.
func peerStreams(l Limits) int { return identifyStreams + l.PeerStreams }

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
