package netio

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/syncd-io/syncd/internal/netio/stream"
	"github.com/syncd-io/syncd/reconcile"
)

// Members tells members from strangers.
type Members interface {
	IsMember(id peer.ID) bool
	// Share reports whether two peers are members of one namespace.
	Share(a, b peer.ID) bool
}

// Node is what the network knows of the node that it serves.
type Node struct {
	Members Members
	// Book has the addresses of peers. What members tell of theirs is added to it.
	Book *Book
	// DialTimeout bounds connecting to a peer, and opening a stream.
	DialTimeout time.Duration
	Log         *slog.Logger
}

// Network is a host that serves a node.
type Network struct {
	host.Host
	node Node
	// dials holds the dials to one peer to one at a time. libp2p lets all concurrent dials to a peer share one
	// attempt, and keeps a failed attempt until each of them has returned. A dial that begins meanwhile gets
	// the old failure.
	dials *stream.Places

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Serve makes a host serve a node, until the context or Leave ends that. If the host is
// from NewHost, the bounds on strangers are lifted for the node's members. A host serves one
// node at a time.
func Serve(ctx context.Context, h host.Host, node Node) (*Network, error) {
	n := &Network{Host: h, node: node, dials: stream.NewPlaces(MaxPeers, 1)}
	n.ctx, n.cancel = context.WithCancel(ctx)
	if c, ok := h.ConnManager().(*connections); ok {
		c.carry(node.Members)
	}
	if err := n.learnAddrs(); err != nil {
		n.Leave()
		return nil, err
	}
	return n, nil
}

// Leave ends that the host serves the node, and waits. The host stays open.
func (n *Network) Leave() {
	n.cancel()
	n.running.Wait()
	if c, ok := n.ConnManager().(*connections); ok {
		c.carry(nil)
	}
}

// Dialable lists at most MaxAddrs of the host's addresses, those that are of most
// use to others first.
func (n *Network) Dialable() []ma.Multiaddr {
	out := slices.Clone(n.Addrs())
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

// Dial connects to a peer at the addresses given, and those in the book, unless this node
// is connected to it already.
func (n *Network) Dial(ctx context.Context, id peer.ID, addrs []ma.Multiaddr) error {
	if id == n.ID() {
		return fmt.Errorf("connect to %s: %w: that is this node itself", id, reconcile.ErrUnreachable)
	}
	ctx, cancel := context.WithTimeout(overRelays(ctx), n.node.DialTimeout)
	defer cancel()
	addrs = append(addrs, n.node.Book.Addrs(id)...)
	end, err := n.dials.Take(ctx, id)
	if err != nil {
		return fmt.Errorf("connect to %s: %w: %w", id, reconcile.ErrUnreachable, err)
	}
	defer end()
	begun := time.Now()
	err = n.dialOnce(ctx, id, addrs)
	if err != nil && ctx.Err() == nil && time.Since(begun) < freshFailure {
		// This dial may have joined one that libp2p began earlier, for a stream. That
		// one may have failed for a reason that is gone; see dials.
		err = n.dialOnce(ctx, id, addrs)
	}
	if err != nil {
		if len(addrs) == 0 && len(n.Peerstore().Addrs(id)) == 0 {
			return fmt.Errorf("connect to %s: %w: no address of it is known: add one", id, reconcile.ErrUnreachable)
		}
		return fmt.Errorf("connect to %s: %w: %w", id, reconcile.ErrUnreachable, err)
	}
	return nil
}

func (n *Network) dialOnce(ctx context.Context, id peer.ID, addrs []ma.Multiaddr) error {
	// After a failure libp2p does not dial an address for a while. A caller that
	// asks for a connection wants one now; background syncs have rests of their own.
	if dialer, ok := n.Network().(interface{ Backoff() *swarm.DialBackoff }); ok {
		dialer.Backoff().Clear(id)
	}
	return n.Connect(ctx, peer.AddrInfo{ID: id, Addrs: addrs})
}

// Connected reports whether there is a connection to a peer, be it through a relay.
func (n *Network) Connected(id peer.ID) bool {
	return slices.Contains([]network.Connectedness{network.Connected, network.Limited}, n.Network().Connectedness(id))
}

// Known reports whether there is a way to reach a peer.
func (n *Network) Known(id peer.ID) bool { return n.Connected(id) || len(n.node.Book.Addrs(id)) > 0 }

// Open opens a stream to a peer, be it through a relay. Where that fails because the context
// is over, the error is its cause.
func (n *Network) Open(ctx context.Context, id peer.ID, p protocol.ID) (network.Stream, error) {
	opening, cancel := context.WithTimeout(overRelays(ctx), n.node.DialTimeout)
	defer cancel()
	s, err := n.NewStream(opening, id, p)
	if err == nil {
		return s, nil
	}
	if cause := context.Cause(ctx); cause != nil { // a stream says of it that its time is over
		return nil, cause
	}
	return nil, fmt.Errorf("%w: %w", reconcile.ErrUnreachable, err)
}

// FollowAddrs calls changed with the addresses under which others can dial this node. It
// does so at once, and each time that they have changed, until the node leaves. The
// calls follow one another on one goroutine. Since libp2p looks at the interfaces every
// 5 s, changed learns within that time of a machine that moves to another network.
func (n *Network) FollowAddrs(changed func(addrs []ma.Multiaddr)) error {
	return n.followAddrs(changed, func() {})
}

// followAddrs is FollowAddrs that calls end after the last call of changed.
func (n *Network) followAddrs(changed func(addrs []ma.Multiaddr), end func()) error {
	return n.follow(new(event.EvtLocalAddressesUpdated), func(events iter.Seq[any]) {
		defer end()
		last := n.Dialable()
		changed(last)
		for range events {
			// The event says what the host had when it was sent; later ones follow.
			if now := n.Dialable(); !sameAddrs(last, now) {
				last = now
				changed(now)
			}
		}
	})
}

// learnAddrs keeps the address book up to date, so that this node can dial members
// after a restart. It takes what members tell of themselves when they connect and when
// their addresses change (libp2p's identify).
func (n *Network) learnAddrs() error {
	return n.follow(new(event.EvtPeerIdentificationCompleted), func(events iter.Seq[any]) {
		for e := range events {
			n.learn(e.(event.EvtPeerIdentificationCompleted).Peer)
		}
	})
}

// follow runs what takes events of the host, which end when the node leaves. libp2p drops no event: an
// unread one blocks what emits it.
func (n *Network) follow(of any, run func(events iter.Seq[any])) error {
	subscription, err := n.EventBus().Subscribe(of, eventbus.BufSize(64))
	if err != nil {
		return fmt.Errorf("subscribe to events of the host: %w", err)
	}
	n.running.Go(func() {
		defer subscription.Close()
		run(func(yield func(any) bool) {
			for {
				select {
				case <-n.ctx.Done():
					return
				case e := <-subscription.Out():
					if !yield(e) {
						return
					}
				}
			}
		})
	})
	return nil
}

// learn saves what a peer has announced. libp2p's peerstore holds just that now, less
// what cannot be reached from here.
func (n *Network) learn(id peer.ID) {
	addrs := n.Peerstore().Addrs(id)
	if len(addrs) == 0 || !n.node.Members.IsMember(id) {
		return
	}
	if err := n.node.Book.Learn(id, addrs[:min(len(addrs), MaxAddrs)]); err != nil {
		n.node.Log.Warn("the addresses of a peer could not be saved", slog.Any("peer", id), slog.Any("error", err))
	}
}
