package peer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
)

// PeerInfo is an entry of the address book.
type PeerInfo struct {
	ID        ID
	Addrs     []string
	Connected bool
	// Paused: this node takes part in no syncs with it.
	Paused bool
	// Namespaces are the local names of those that the peer is a member of.
	Namespaces []string
}

// Peers lists the address book and the members of all namespaces, by id, but for
// peers that were removed.
func (n *Node) Peers() []PeerInfo {
	in := map[ID][]string{}
	for _, id := range n.book.ids() {
		in[id] = []string{}
	}
	for _, ns := range n.Namespaces() {
		for _, m := range ns.Members() {
			if m.ID != n.self.id && !n.book.removed(m.ID) {
				in[m.ID] = append(in[m.ID], ns.Name())
			}
		}
	}
	out := make([]PeerInfo, 0, len(in))
	for id, names := range in {
		p := PeerInfo{ID: id, Addrs: []string{}, Connected: n.connected(id), Paused: n.book.paused(id), Namespaces: names}
		for _, a := range n.book.of(id) {
			p.Addrs = append(p.Addrs, a.String())
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b PeerInfo) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out
}

// AddPeer remembers a multiaddr that ends in /p2p/ and the peer's id, without
// dialling it. An address gives its peer no rights.
func (n *Node) AddPeer(ctx context.Context, addr string) (ID, error) {
	info, err := parsePeerAddr(addr)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if !n.gate.enter() {
		return "", fmt.Errorf("add peer %s: %w", info.ID, ErrClosed)
	}
	defer n.gate.leave()
	return info.ID, n.book.give(info.ID, info.Addrs)
}

// RemovePeer forgets a peer's addresses and ends the connection to it. Where it is a
// member it stays one, and can still connect. But this node takes no address of it, and
// does not list it, until it is added again by AddPeer, Connect or a ticket.
// ErrNotFound: Peers does not list it.
func (n *Node) RemovePeer(ctx context.Context, id ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !n.gate.enter() {
		return fmt.Errorf("remove peer %s: %w", id, ErrClosed)
	}
	defer n.gate.leave()
	if err := n.mustKnow(id); err != nil {
		return fmt.Errorf("remove peer %s: %w", id, err)
	}
	if err := n.book.remove(id); err != nil {
		return fmt.Errorf("remove peer %s: %w", id, err)
	}
	err := n.host.Network().ClosePeer(id)
	n.host.Peerstore().ClearAddrs(id)
	return err
}

// mustKnow reports ErrNotFound of a peer that Peers does not list.
func (n *Node) mustKnow(id ID) error {
	if slices.ContainsFunc(n.Peers(), func(p PeerInfo) bool { return p.ID == id }) {
		return nil
	}
	return fmt.Errorf("%w: it is not in the address book, and not a member", ErrNotFound)
}

// Connect dials a multiaddr that ends in /p2p/ and the peer's id, and
// remembers it in the address book.
func (n *Node) Connect(ctx context.Context, addr string) (ID, error) {
	info, err := parsePeerAddr(addr)
	if err != nil {
		return "", err
	}
	if !n.gate.enter() {
		return "", fmt.Errorf("connect to %s: %w", info.ID, ErrClosed)
	}
	defer n.gate.leave()
	ctx, cancel := bind(ctx, n.ctx)
	defer cancel()
	if err := n.dial(ctx, info.ID, info.Addrs); err != nil {
		return "", err
	}
	return info.ID, n.book.give(info.ID, info.Addrs)
}

// learnAddrs keeps the address book up to date, so that this node can dial members
// after a restart. It takes what members tell of themselves when they connect and when
// their addresses change (libp2p's identify).
func (n *Node) learnAddrs() error {
	told, err := n.host.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted), eventbus.BufSize(64))
	if err != nil {
		return fmt.Errorf("subscribe to peers' addresses: %w", err)
	}
	if !n.gate.enter() {
		return told.Close()
	}
	go func() {
		defer n.gate.leave()
		defer told.Close() // the subscription
		for {
			select {
			case <-n.ctx.Done():
				return
			case e := <-told.Out():
				n.learn(e.(event.EvtPeerIdentificationCompleted).Peer)
			}
		}
	}()
	return nil
}

// learn saves what a peer has announced. libp2p's peerstore holds just that now, less
// what cannot be reached from here.
func (n *Node) learn(id ID) {
	addrs := n.host.Peerstore().Addrs(id)
	if len(addrs) == 0 || !n.isMember(id) {
		return
	}
	if err := n.book.learn(id, addrs[:min(len(addrs), MaxAddrs)]); err != nil {
		n.log.Warn("the addresses of a peer could not be saved", logPeer(id), logError(err))
	}
}
