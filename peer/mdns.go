package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// mdnsService is the name under which nodes look for one another. libp2p's own would
// bring answers of other programs, which are no members.
const mdnsService = "_syncd._udp"

// neighbours announces the node on its local networks by multicast DNS, and dials
// members that do. Anyone there may answer in a member's name. An answer buys one dial,
// and the connection proves the id. Only what the member then tells goes into the
// address book.
type neighbours struct {
	node    *Node
	service mdns.Service // of one goroutine, and of the closing after it

	mu     sync.Mutex
	dialed map[ID]time.Time // members, when last
	busy   int              // dials that are running
}

// findNeighbours starts the announcements, and starts them anew when the node's
// addresses change: libp2p's service tells those of its start.
func (n *Node) findNeighbours() error {
	m := &neighbours{node: n, dialed: map[ID]time.Time{}}
	n.onClose(m.stop)
	return n.followAddrs(func([]ma.Multiaddr) {
		if err := errors.Join(m.stop(), m.start()); err != nil {
			n.log.Warn("mDNS does not run until this node's addresses change", logError(err))
		}
	})
}

func (m *neighbours) start() error {
	service := mdns.NewMdnsService(m.node.host, mdnsService, m)
	if err := service.Start(); err != nil {
		return errors.Join(err, service.Close())
	}
	m.service = service
	return nil
}

func (m *neighbours) stop() error {
	if m.service == nil {
		return nil
	}
	err := m.service.Close()
	m.service = nil
	return err
}

// HandlePeerFound implements mdns.Notifee. Each call has a goroutine of its own.
func (m *neighbours) HandlePeerFound(found peer.AddrInfo) {
	n := m.node
	if !n.gate.enter() {
		return
	}
	defer n.gate.leave()
	addrs := slices.DeleteFunc(found.Addrs, func(a ma.Multiaddr) bool { return !isNear(a) })
	addrs = addrs[:min(len(addrs), MaxAddrs)]
	if len(addrs) == 0 || !m.begin(found.ID) {
		return
	}
	defer m.end()
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	if err := n.dial(ctx, found.ID, addrs); err != nil {
		n.log.Debug("a neighbour could not be dialled", logPeer(found.ID), logError(err))
	}
}

// begin reports whether a dial may begin: to a member that is not connected, once
// in a while, and few at once.
func (m *neighbours) begin(id ID) bool {
	n := m.node
	if !n.isMember(id) || n.connected(id) || n.book.removed(id) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.busy >= neighbourDials || now.Sub(m.dialed[id]) < neighbourPause {
		return false
	}
	m.busy++
	m.dialed[id] = now // at most MaxMembers for each namespace
	return true
}

func (m *neighbours) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
}

// isNear reports whether an address that a neighbour tells is one to dial: a port
// at an address of its own.
func isNear(a ma.Multiaddr) bool {
	return (isTCP(a) || isQUIC(a)) && manet.IsThinWaist(a) && !manet.IsIPLoopback(a) && !manet.IsIPUnspecified(a)
}
