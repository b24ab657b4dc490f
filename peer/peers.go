package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/peer/status"
)

// Peers lists the address book and the members of all namespaces, by id, but for
// peers that were removed.
func (n *Node) Peers() []status.Peer {
	in := map[ID][]string{}
	for _, id := range n.book.IDs() {
		in[id] = []string{}
	}
	for _, ns := range n.Namespaces() {
		for _, m := range ns.Members() {
			if m.ID != n.self.id && !n.book.Removed(m.ID) {
				in[m.ID] = append(in[m.ID], ns.Name())
			}
		}
	}
	out := make([]status.Peer, 0, len(in))
	for id, names := range in {
		p := status.Peer{ID: id, Addrs: []string{}, Connected: n.host.Connected(id), Paused: n.book.Paused(id), Namespaces: names}
		for _, a := range n.book.Addrs(id) {
			p.Addrs = append(p.Addrs, a.String())
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b status.Peer) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	return out
}

// AddPeer remembers a multiaddr that ends in /p2p/ and the peer's id, without
// dialling it. An address gives its peer no rights.
func (n *Node) AddPeer(ctx context.Context, addr string) (ID, error) {
	info, err := parsePeer(addr)
	if err != nil {
		return "", err
	}
	if err := n.within(ctx, "add peer "+info.ID.String(), func() error { return n.book.Give(info.ID, info.Addrs) }); err != nil {
		return "", err
	}
	return info.ID, nil
}

// RemovePeer forgets a peer's addresses and ends the connection to it. Where it is a
// member it stays one, and can still connect. But this node takes no address of it, and
// does not list it, until it is added again by AddPeer, Connect or a ticket.
// ErrNotFound: Peers does not list it.
func (n *Node) RemovePeer(ctx context.Context, id ID) error {
	return n.within(ctx, "remove peer "+id.String(), func() error {
		if err := n.mustKnow(id); err != nil {
			return err
		}
		if err := n.book.Remove(id); err != nil {
			return err
		}
		err := n.host.Network().ClosePeer(id)
		n.host.Peerstore().ClearAddrs(id)
		return err
	})
}

// mustKnow reports ErrNotFound of a peer that Peers does not list.
func (n *Node) mustKnow(id ID) error {
	if slices.ContainsFunc(n.Peers(), func(p status.Peer) bool { return p.ID == id }) {
		return nil
	}
	return fmt.Errorf("%w: it is not in the address book, and not a member", ErrNotFound)
}

// Connect dials a multiaddr that ends in /p2p/ and the peer's id, and
// remembers it in the address book.
func (n *Node) Connect(ctx context.Context, addr string) (ID, error) {
	info, err := parsePeer(addr)
	if err != nil {
		return "", err
	}
	if !n.gate.enter() {
		return "", fmt.Errorf("connect to %s: %w", info.ID, ErrClosed)
	}
	defer n.gate.leave()
	ctx, cancel := bind(ctx, n.ctx)
	defer cancel()
	if err := n.host.Dial(ctx, info.ID, info.Addrs); err != nil {
		return "", err
	}
	return info.ID, n.book.Give(info.ID, info.Addrs)
}

// parsePeer reads a multiaddr that ends in /p2p/ and the id of a peer that can be a member.
func parsePeer(addr string) (peer.AddrInfo, error) {
	info, err := netio.ParsePeer(addr)
	if err == nil {
		err = checkID(info.ID)
	}
	return info, invalid(err)
}

// Addrs are the multiaddrs that the node tells to others, each ending in /p2p/ and the
// node's id: Config.AnnounceAddrs if there are any, otherwise those that it listens on.
// A node that listens on all interfaces (/ip4/0.0.0.0) has an address for each of them.
// That of the loopback is the last.
func (n *Node) Addrs() []string {
	out := []string{}
	for _, a := range n.host.Dialable() {
		out = append(out, a.String()+"/p2p/"+n.self.id.String())
	}
	return out
}

// moved heeds that others can dial this node under other addresses than before: it
// tells the members of each namespace.
func (n *Node) moved(addrs []ma.Multiaddr) {
	n.log.Info("the node can be dialled", slog.Any("addrs", addrs))
	for _, ns := range n.Namespaces() {
		ns.announce(addrs)
	}
}

// announce tells the members where this node can be dialled. They find it out by the
// next sync with any of them.
func (ns *Namespace) announce(addrs []ma.Multiaddr) {
	if ns.enter("announce") != nil {
		return // it is closed
	}
	defer ns.gate.leave()
	if err := ns.core.Announce(ns.ctx, netio.AddrBytes(addrs)); err != nil && !errors.Is(err, ErrDenied) {
		ns.node.log.Warn("the members could not be told where this node is", logNamespace(ns), logError(err))
	}
}

// heardOf learns where a member says that it can be dialled.
func (n *Node) heardOf(id ID, raw [][]byte) error {
	addrs := netio.ParseAddrs(raw)
	if id == n.self.id || len(addrs) == 0 {
		return nil
	}
	return n.book.Learn(id, addrs)
}
