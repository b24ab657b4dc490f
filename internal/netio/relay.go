package netio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/dbadapter"
)

// relays keeps this node's reservations at its relays (libp2p's circuit relay v2),
// under which others can dial a node behind a router. It takes the place of libp2p's
// AutoRelay, which begins only after strangers have found that the node cannot be
// reached. AutoRelay would also announce no relay with a private address, and rest for
// an hour after a failure.
type relays struct {
	at   []peer.AddrInfo
	host host.Host

	ctx     context.Context
	cancel  context.CancelFunc
	keepers sync.WaitGroup
	changed event.Emitter

	mu       sync.Mutex
	reserved map[peer.ID]bool
}

// parseRelays reads the multiaddrs of relays.
func parseRelays(self peer.ID, addrs []string) ([]peer.AddrInfo, error) {
	var out []peer.AddrInfo
	for _, s := range addrs {
		info, err := ParsePeer(s)
		if err == nil && (info.ID == self || isRelayed(info.Addrs[0])) {
			err = errors.New("it is this node itself, or behind a relay")
		}
		if err != nil {
			return nil, fmt.Errorf("relay %q: %w: %w", s, ErrAddr, err)
		}
		i := slices.IndexFunc(out, func(other peer.AddrInfo) bool { return other.ID == info.ID })
		if i < 0 {
			out = append(out, info)
		} else if !ma.Contains(out[i].Addrs, info.Addrs[0]) {
			out[i].Addrs = append(out[i].Addrs, info.Addrs...)
		}
	}
	if len(out) > MaxRelays || len(addrs) > MaxRelays*2 {
		return nil, fmt.Errorf("%w: %d relays; a node has at most %d, with two addresses each", dbadapter.ErrLimit, len(out), MaxRelays)
	}
	return out, nil
}

// attach lets the host dial through relays, and, if there are any of its own, be
// dialled through them.
func (r *relays) attach(h host.Host, u transport.Upgrader) error {
	circuits, err := client.New(h, u)
	if err != nil {
		return err
	}
	if err := h.Network().(transport.TransportNetwork).AddTransport(circuits); err != nil { // which closes it
		return err
	}
	if len(r.at) == 0 {
		return nil
	}
	r.host = h
	if err := h.Network().Listen(ma.StringCast("/p2p-circuit")); err != nil {
		return err
	}
	circuits.Start()
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.changed, err = h.EventBus().Emitter(new(event.EvtAutoRelayAddrsUpdated), eventbus.Stateful)
	return err
}

// start begins to keep the reservations, once the host listens. From then on dials over
// QUIC leave by the socket on which it does, and a relay tells the node how its router
// shows that one.
func (r *relays) start() {
	for _, at := range r.at {
		r.host.ConnManager().Protect(at.ID, "relay")
		r.keepers.Go(func() { r.keep(at) })
	}
}

// stop ends the reservations' keeping, and waits.
func (r *relays) stop() error {
	r.cancel()
	r.keepers.Wait()
	return r.changed.Close()
}

// keep reserves a place at a relay, renews it, and reserves it anew when the
// connection to the relay has ended.
func (r *relays) keep(at peer.AddrInfo) {
	links, err := r.host.EventBus().Subscribe(new(event.EvtPeerConnectednessChanged), eventbus.BufSize(64))
	if err != nil {
		return // the host is closing
	}
	defer links.Close()
	again := time.NewTimer(0)
	defer again.Stop()
	reserved := make(chan time.Duration, 1)
	for asking, lost := false, false; ; {
		select {
		case <-r.ctx.Done():
			return
		case <-again.C:
			// Beside the events, which wait for all that take them: a relay that does not
			// answer would hold up the whole host.
			asking, lost = true, false
			r.keepers.Go(func() { reserved <- r.reserve(at) })
		case wait := <-reserved:
			if asking = false; lost { // maybe what was reserved just now
				wait = min(wait, relayPause)
			}
			again.Reset(wait)
		case e := <-links.Out():
			link := e.(event.EvtPeerConnectednessChanged)
			if link.Peer != at.ID || link.Connectedness != network.NotConnected {
				continue
			}
			if lost = asking; r.set(at.ID, false) && !asking {
				again.Reset(relayPause)
			}
		}
	}
}

// reserve asks a relay for a place, and returns when to ask again.
func (r *relays) reserve(at peer.AddrInfo) time.Duration {
	ctx, cancel := context.WithTimeout(r.ctx, relayTimeout)
	defer cancel()
	at.Addrs = slices.Concat(at.Addrs, overQUIC(at.Addrs))
	place, err := client.Reserve(ctx, endingHost{r.host}, at)
	r.set(at.ID, err == nil)
	if err != nil {
		return relayRetry
	}
	return min(max(time.Until(place.Expiration)/2, relayRetry), relayRenewal)
}

// endingHost resets the streams that it opens when the context ends in which it did. By
// itself client.Reserve waits for an answer for a minute, whatever becomes of its
// context.
type endingHost struct{ host.Host }

func (h endingHost) NewStream(ctx context.Context, id peer.ID, protocols ...protocol.ID) (network.Stream, error) {
	s, err := h.Host.NewStream(ctx, id, protocols...)
	if err == nil {
		context.AfterFunc(ctx, func() { s.Reset() })
	}
	return s, err
}

// overQUIC are the addresses over QUIC of a node that listens at the given ones over
// TCP, unless its user says otherwise.
func overQUIC(addrs []ma.Multiaddr) (out []ma.Multiaddr) {
	for _, a := range addrs {
		if isTCP(a) {
			out = append(out, a[:1].Encapsulate(ma.StringCast("/udp/"+a[1].Value()+"/quic-v1")))
		}
	}
	return out
}

// set notes whether a relay has a place for this node, and makes the host tell its
// peers of a change.
func (r *relays) set(id peer.ID, reserved bool) (changed bool) {
	r.mu.Lock()
	changed = r.reserved[id] != reserved
	r.reserved[id] = reserved
	r.mu.Unlock()
	if changed {
		// The addresses come from circuits, by way of the host's factory of addresses.
		_ = r.changed.Emit(event.EvtAutoRelayAddrsUpdated{})
	}
	return changed
}

// circuits are the addresses through the relays that have a place for this node.
func (r *relays) circuits() (out []ma.Multiaddr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.at {
		if !r.reserved[at.ID] {
			continue
		}
		for _, a := range at.Addrs {
			out = append(out, ma.Join(a, ma.StringCast("/p2p/"+at.ID.String()+"/p2p-circuit")))
		}
	}
	return out
}

// overRelays lets a dial or a stream use a connection through a relay, which libp2p
// keeps for those that ask for it.
func overRelays(ctx context.Context) context.Context {
	return network.WithAllowLimitedConn(ctx, "syncd")
}

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
func (c *connections) AllowReserve(id peer.ID, _ ma.Multiaddr) bool { return c.isMember(id) }

// AllowConnect implements relay.ACLFilter: two members of one namespace reach one
// another.
func (c *connections) AllowConnect(from peer.ID, _ ma.Multiaddr, to peer.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members != nil && c.members.Share(from, to)
}
