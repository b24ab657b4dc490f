package netio

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	ma "github.com/multiformats/go-multiaddr"
)

// mdnsService is the name under which nodes look for one another. libp2p's own would
// bring answers of other programs, which are no members.
const mdnsService = "_syncd._udp"

// neighbours announces the node on its local networks by multicast DNS, and dials
// members that do. Anyone there may answer in a member's name. An answer buys one dial,
// and the connection proves the id. Only what the member then tells goes into the
// address book.
type neighbours struct {
	network *Network

	mu      sync.Mutex
	service mdns.Service          // nil: it does not run
	dialed  map[peer.ID]time.Time // members, when last
	busy    int                   // dials that are running
}

// FindNeighbours starts the announcements, and starts them anew when the node's
// addresses change: libp2p's service tells those of its start.
func (n *Network) FindNeighbours() error {
	m := &neighbours{network: n, dialed: map[peer.ID]time.Time{}}
	return n.followAddrs(func([]ma.Multiaddr) {
		if err := errors.Join(m.stop(), m.start()); err != nil {
			n.node.Log.Warn("mDNS does not run until this node's addresses change", slog.Any("error", err))
		}
	}, func() { _ = m.stop() })
}

func (m *neighbours) start() error {
	service := mdns.NewMdnsService(m.network.Host, mdnsService, m)
	if err := service.Start(); err != nil {
		return errors.Join(err, service.Close())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.service = service
	return nil
}

func (m *neighbours) stop() error {
	m.mu.Lock()
	service := m.service
	m.service = nil
	m.mu.Unlock()
	if service == nil {
		return nil
	}
	return service.Close()
}

// HandlePeerFound implements mdns.Notifee. Each call has a goroutine of its own.
func (m *neighbours) HandlePeerFound(found peer.AddrInfo) {
	addrs := slices.DeleteFunc(found.Addrs, func(a ma.Multiaddr) bool { return !isNear(a) })
	addrs = addrs[:min(len(addrs), MaxAddrs)]
	if len(addrs) == 0 || !m.begin(found.ID) {
		return
	}
	defer m.end()
	if err := m.network.Dial(m.network.ctx, found.ID, addrs); err != nil {
		m.network.node.Log.Debug("a neighbour could not be dialled", slog.Any("peer", found.ID), slog.Any("error", err))
	}
}

// begin reports whether a dial may begin: to a member that is not connected, once
// in a while, and few at once.
func (m *neighbours) begin(id peer.ID) bool {
	n := m.network
	if !n.node.Members.IsMember(id) || n.Connected(id) || n.node.Book.Removed(id) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if n.ctx.Err() != nil || m.busy >= neighbourDials || now.Sub(m.dialed[id]) < neighbourPause {
		return false
	}
	m.busy++
	n.running.Add(1)   // before the last stop, which takes mu once the context is over
	m.dialed[id] = now // at most MaxMembers for each namespace
	return true
}

func (m *neighbours) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy--
	m.network.running.Done()
}
