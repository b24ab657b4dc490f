package peer

import (
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"
)

// relayLimits are the bounds of the relay that a node can be. A circuit holds two
// buffers and a stream of each of its ends. It holds nothing of what is said: the ends
// encrypt it for one another.
func relayLimits() relay.Resources {
	return relay.Resources{
		Limit:                 &relay.RelayLimit{Duration: relayedTime, Data: relayedBytes},
		ReservationTTL:        relayReservation,
		MaxReservations:       maxReservations,
		MaxCircuits:           maxCircuits,
		BufferSize:            relayBuffer,
		MaxReservationsPerIP:  maxReservations, // members behind one router
		MaxReservationsPerASN: maxReservations,
	}
}

// serveRelay makes a host a relay for the members of the node that it carries.
func (c *connections) serveRelay(h host.Host) (*relay.Relay, error) {
	return relay.New(h,
		relay.WithResources(relayLimits()),
		relay.WithACL(c),
		// By default a relay tells no member of addresses in a private network.
		relay.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }),
	)
}

// AllowReserve implements relay.ACLFilter: members have places.
func (c *connections) AllowReserve(id ID, _ ma.Multiaddr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members != nil && c.members.isMember(id)
}

// AllowConnect implements relay.ACLFilter: two members of one namespace reach one
// another.
func (c *connections) AllowConnect(from ID, _ ma.Multiaddr, to ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members != nil && c.members.share(from, to)
}
