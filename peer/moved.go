package peer

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	ma "github.com/multiformats/go-multiaddr"
)

// followAddrs calls told with the addresses under which others can dial this node. It
// does so at once, and each time that they have changed, until the node closes. The
// calls follow one another on one goroutine. Since libp2p looks at the interfaces every
// 5 s, told learns within that time of a machine that moves to another network.
func (n *Node) followAddrs(told func(addrs []ma.Multiaddr)) error {
	// libp2p drops no event: an unread one would block its address manager.
	changes, err := n.host.EventBus().Subscribe(new(event.EvtLocalAddressesUpdated), eventbus.BufSize(16))
	if err != nil {
		return fmt.Errorf("subscribe to this node's addresses: %w", err)
	}
	if !n.gate.enter() {
		return changes.Close()
	}
	go func() {
		defer n.gate.leave()
		defer changes.Close() // the subscription
		last := n.dialable()
		told(last)
		for {
			select {
			case <-n.ctx.Done():
				return
			case <-changes.Out():
			}
			// The event says what the host had when it was sent; later ones follow.
			if now := n.dialable(); !sameAddrs(last, now) {
				last = now
				told(now)
			}
		}
	}()
	return nil
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
	if err := ns.core.Announce(ns.ctx, addrBytes(addrs)); err != nil && !errors.Is(err, ErrDenied) {
		ns.node.log.Warn("the members could not be told where this node is", logNamespace(ns), logError(err))
	}
}

// heardOf learns where a member says that it can be dialled.
func (n *Node) heardOf(id ID, raw [][]byte) error {
	addrs := parseAddrs(raw)
	if id == n.self.id || len(addrs) == 0 {
		return nil
	}
	return n.book.learn(id, addrs)
}

// sameAddrs reports whether two lists hold the same addresses in any order.
func sameAddrs(a, b []ma.Multiaddr) bool {
	sorted := func(addrs []ma.Multiaddr) [][]byte {
		out := addrBytes(addrs)
		slices.SortFunc(out, bytes.Compare)
		return slices.CompactFunc(out, bytes.Equal)
	}
	return slices.EqualFunc(sorted(a), sorted(b), bytes.Equal)
}
