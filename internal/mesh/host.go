package mesh

import (
	"context"
	"errors"
	"sync"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/reconcile"
)

// pushProtocol is that of the streams that carry pushes: GossipSub 1.2 between members.
const pushProtocol protocol.ID = "/syncd/push/1"

// memberHost is the host as GossipSub sees it: it has no peers but the members of this
// node's namespaces. GossipSub names all its topics to each peer that it sees. Streams of direct
// pushes go over it, too.
type memberHost struct {
	host.Host
	mesh *Mesh
	bus  event.Bus
	joined,
	identified event.Emitter
	heard event.Subscription

	mu      sync.Mutex // guards streams
	streams map[network.Stream]struct{}
}

func newMemberHost(m *Mesh) (_ *memberHost, err error) {
	h := &memberHost{Host: m.cfg.Host, mesh: m, bus: eventbus.NewBus(), streams: map[network.Stream]struct{}{}}
	if h.heard, err = m.cfg.Host.EventBus().Subscribe([]any{new(event.EvtPeerIdentificationCompleted), new(event.EvtPeerProtocolsUpdated)}); err != nil {
		return nil, err
	}
	if h.identified, err = h.bus.Emitter(new(event.EvtPeerIdentificationCompleted)); err != nil {
		return nil, errors.Join(err, h.heard.Close())
	}
	if h.joined, err = h.bus.Emitter(new(event.EvtPeerProtocolsUpdated)); err != nil {
		return nil, errors.Join(err, h.heard.Close())
	}
	return h, nil
}

// admits reports whether GossipSub is to see a peer: a member that is not paused.
func (h *memberHost) admits(id peer.ID) bool {
	return h.mesh.cfg.Members.IsMember(id) && !h.mesh.cfg.Book.Paused(id)
}

// forward passes on what the host says of members, until close.
func (h *memberHost) forward() {
	pass := func(id peer.ID, to event.Emitter, e any) {
		if h.admits(id) {
			_ = to.Emit(e)
			h.mesh.direct.meet(id)
		}
	}
	for e := range h.heard.Out() {
		switch e := e.(type) {
		case event.EvtPeerIdentificationCompleted:
			pass(e.Peer, h.identified, e)
		case event.EvtPeerProtocolsUpdated:
			pass(e.Peer, h.joined, e)
		}
	}
}

// membersChanged makes GossipSub see the peers that have become members. It ends the
// streams with those that are members no more, or of fewer namespaces. They are opened
// anew, and each topic is then served to its own members only.
func (h *memberHost) membersChanged(lost func(peer.ID) bool) {
	h.mu.Lock()
	var cut []network.Stream
	for s := range h.streams {
		if lost(s.Conn().RemotePeer()) {
			cut = append(cut, s)
		}
	}
	h.mu.Unlock()
	for _, s := range cut {
		s.Reset()
	}
	for _, id := range h.Host.Network().Peers() {
		if h.admits(id) {
			h.see(id)
		}
	}
}

// see makes GossipSub open a stream to a peer, unless it has one, and has a line opened.
func (h *memberHost) see(id peer.ID) {
	h.mesh.direct.meet(id)
	_ = h.joined.Emit(event.EvtPeerProtocolsUpdated{Peer: id, Added: []protocol.ID{pushProtocol}})
}

// close ends forward. The host stays open.
func (h *memberHost) close() error {
	return errors.Join(h.heard.Close(), h.joined.Close(), h.identified.Close())
}

func (h *memberHost) EventBus() event.Bus { return h.bus }

func (h *memberHost) Network() network.Network { return memberNetwork{h.Host.Network(), h} }

func (h *memberHost) SetStreamHandler(id protocol.ID, handle network.StreamHandler) {
	h.Host.SetStreamHandler(id, func(s network.Stream) {
		id := s.Conn().RemotePeer()
		if !h.admits(id) {
			s.Reset()
			return
		}
		// GossipSub has given up a peer that took no stream for a second. The peer had
		// paused this node, or did not know it for a member yet. Now it does.
		h.see(id)
		handle(h.track(s))
	})
}

func (h *memberHost) NewStream(ctx context.Context, id peer.ID, protocols ...protocol.ID) (network.Stream, error) {
	if !h.admits(id) {
		return nil, reconcile.ErrDenied
	}
	s, err := h.Host.NewStream(network.WithNoDial(ctx, "a push"), id, protocols...)
	if err != nil {
		return nil, err
	}
	return h.track(s), nil
}

// track remembers a stream until it ends, and holds it to the bounds of the bandwidth.
func (h *memberHost) track(s network.Stream) network.Stream {
	t := &trackedStream{h.mesh.cfg.Bandwidth.Meter(s, h.mesh.ctx.Done()), h}
	h.mu.Lock()
	h.streams[t] = struct{}{}
	h.mu.Unlock()
	return t
}

// trackedStream is one of the host's streams. GossipSub drops what would wait for the
// bandwidth for too long.
type trackedStream struct {
	*stream.Metered
	host *memberHost
}

func (s *trackedStream) forget() {
	s.host.mu.Lock()
	delete(s.host.streams, s)
	s.host.mu.Unlock()
}

func (s *trackedStream) Close() error { s.forget(); return s.Metered.Close() }
func (s *trackedStream) Reset() error { s.forget(); return s.Metered.Reset() }

// memberNetwork is the network with no peers but members.
type memberNetwork struct {
	network.Network
	host *memberHost
}

func (n memberNetwork) Peers() (members []peer.ID) {
	for _, id := range n.Network.Peers() {
		if n.host.admits(id) {
			members = append(members, id)
		}
	}
	return members
}

func (n memberNetwork) Connectedness(id peer.ID) network.Connectedness {
	if !n.host.admits(id) {
		return network.NotConnected
	}
	return n.Network.Connectedness(id)
}
