package netio

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// connections bounds the inbound connections of a host by their remote address, and is
// the host's connection manager. It lifts libp2p's bounds for each address: they count
// a member as they count a silent socket, and they refuse the newcomer.
//
// While a connection is in its handshake, the host knows only its address. After the
// handshake the remote has proved its peer id. The connection is then a member's, which
// only the host's resource limits bound, or a stranger's. Handshakes and strangers take
// places, of which there is a number in all and a number for each address. When these
// are taken, the host closes the oldest connection of that address for the newcomer. A
// handshake and a join take a fraction of a second, so that the oldest connection is
// the least likely to be in use. An address that holds many connections does not keep
// other addresses out.
type connections struct {
	*connmgr.BasicConnMgr
	resources network.ResourceManager
	rate      rate.Limiter

	mu         sync.Mutex // taken before the locks of the node
	members    Members    // those of the node that the host carries; nil between two nodes
	handshakes places
	strangers  places
}

func newConnections(l Limits, resources network.ResourceManager) (*connections, error) {
	manager, err := connmgr.NewConnManager(l.Connections*3/4, l.Connections)
	if err != nil {
		return nil, err
	}
	return &connections{
		BasicConnMgr: manager,
		resources:    resources,
		rate: rate.Limiter{SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: siteIPv4, Limit: arrivals}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: siteIPv6, Limit: arrivals}},
		}},
		handshakes: places{total: maxHandshakes, site: maxSiteHandshakes},
		strangers:  places{total: maxStrangers(l), site: maxSiteStrangers(l)},
	}, nil
}

// carry says how to tell a member from a stranger; nil ends that. A host carries
// one node at a time.
func (c *connections) carry(m Members) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = m
}

func (c *connections) isMember(id peer.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members != nil && c.members.IsMember(id)
}

// arrival is what is known of a connection before its handshake.
type arrival struct {
	// proved: packets to the address of the connection have reached
	// the remote, as TCP's own handshake shows. A first packet over UDP may bear
	// anyone's address.
	proved bool
	socket bool // it has a file descriptor of its own
}

// arrive takes a place for a connection whose handshake is about to begin.
func (c *connections) arrive(from ma.Multiaddr, conn io.Closer, a arrival) (*inbound, error) {
	address, err := manet.ToIP(from)
	if err != nil {
		return nil, err
	}
	ip, _ := netip.AddrFromSlice(address)
	ip = ip.Unmap()
	if !a.proved && c.wantProof() {
		return nil, errors.New("a connection without a proof of its address, while many are in their handshake")
	}
	if !c.rate.Allow(ip) {
		return nil, errors.New("connections come too fast from this address")
	}
	scope, err := c.resources.OpenConnection(network.DirInbound, a.socket, from)
	if err != nil {
		return nil, err
	}
	in := &inbound{ConnManagementScope: scope, of: c, conn: conn, site: site{siteOf(ip), isRelayed(from)}}
	c.mu.Lock()
	closing := c.handshakes.take(in)
	c.mu.Unlock()
	closing.close()
	return in, nil
}

// wantProof reports whether a connection over UDP must prove its address, which
// costs it a round trip, before it takes a place. So a packet with a forged address
// pushes out no connection of that address, nor any other.
func (c *connections) wantProof() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.handshakes.taken) >= maxUnproved
}

// identified moves a connection out of the handshakes. Strangers that have
// become members meanwhile give their places back.
func (c *connections) identified(in *inbound, id peer.ID) {
	in.peer = id
	c.mu.Lock()
	member := func(in *inbound) bool {
		yes := c.members != nil && c.members.IsMember(in.peer)
		if yes {
			c.keep(in.peer)
		}
		return yes
	}
	c.handshakes.remove(in)
	c.strangers.taken = slices.DeleteFunc(c.strangers.taken, member)
	var closing *inbound
	if !member(in) {
		closing = c.strangers.take(in)
	}
	c.mu.Unlock()
	closing.close()
}

// Notifee marks a peer once the manager knows its connection. A mark that is set before goes with the
// peer's connection of before, if that ends in between.
func (c *connections) Notifee() network.Notifiee {
	manager := c.BasicConnMgr.Notifee()
	return &network.NotifyBundle{
		ConnectedF: func(n network.Network, conn network.Conn) {
			manager.Connected(n, conn)
			id := conn.RemotePeer()
			if conn.Stat().Direction == network.DirOutbound || c.isMember(id) { // this node dials members, and inviters
				c.keep(id)
			}
		},
		DisconnectedF: manager.Disconnected,
	}
}

// keep marks a peer for the connection manager. When there are more than
// Limits.Connections, it closes the connections of others first.
func (c *connections) keep(id peer.ID) { c.TagPeer(id, "syncd", 1) }

// leave gives back the place of a connection, if it has one.
func (c *connections) leave(in *inbound) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handshakes.remove(in)
	c.strangers.remove(in)
}

// site is where connections count together. It is a network, or all that arrives
// through relays there, of which this node sees the relays' own address only.
type site struct {
	network netip.Prefix
	relayed bool
}

// siteOf is the network that counts as one address. It is what one site is given, so
// that an IPv6 network is not 2^64 addresses.
func siteOf(ip netip.Addr) netip.Prefix {
	bits := siteIPv6
	if ip.Is4() {
		bits = siteIPv4
	}
	site, _ := ip.Prefix(bits) // the zero prefix for no address
	return site
}

// places are connections of one kind, the oldest first. They are few enough to
// look through all.
type places struct {
	total, site int // the most in all, and of one site
	taken       []*inbound
}

// take adds a connection, and removes and returns the one that gives way to it, or nil.
// That is the oldest of its own site if the site has its fill, otherwise of the site
// that has most.
func (p *places) take(in *inbound) (out *inbound) {
	count := map[site]int{}
	for _, other := range p.taken {
		count[other.site]++
	}
	from := in.site
	if len(p.taken) >= p.total && count[from] < p.site {
		for _, other := range p.taken {
			if count[other.site] > count[from] {
				from = other.site
			}
		}
	}
	if len(p.taken) >= p.total || count[from] >= p.site {
		oldest := slices.IndexFunc(p.taken, func(other *inbound) bool { return other.site == from })
		out = p.taken[oldest]
		p.taken = slices.Delete(p.taken, oldest, oldest+1)
	}
	p.taken = append(p.taken, in)
	return out
}

func (p *places) remove(in *inbound) {
	if i := slices.Index(p.taken, in); i >= 0 {
		p.taken = slices.Delete(p.taken, i, i+1)
	}
}

// inbound is the account of an inbound connection with libp2p's resource manager, and
// its place. It may be ended more than once, also while libp2p uses it. libp2p's own
// account must not be given a peer after its end.
type inbound struct {
	network.ConnManagementScope
	of   *connections
	site site
	peer peer.ID // set before the connection takes a stranger's place

	mu    sync.Mutex // guards the rest
	conn  io.Closer
	ended bool
}

// hold takes what closes the connection from now on. It reports false if the
// connection has ended.
func (in *inbound) hold(conn io.Closer) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.conn = conn
	return !in.ended
}

// SetPeer implements network.ConnManagementScope. libp2p calls it when the
// remote has proved its identity.
func (in *inbound) SetPeer(id peer.ID) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return errGaveWay
	}
	if err := in.ConnManagementScope.SetPeer(id); err != nil {
		return err
	}
	in.of.identified(in, id)
	return nil
}

// Done implements network.ConnManagementScope.
func (in *inbound) Done() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.ended {
		in.ended = true
		in.of.leave(in)
		in.ConnManagementScope.Done()
	}
}

// close closes a connection that gives way; in may be nil.
func (in *inbound) close() {
	if in == nil {
		return
	}
	in.mu.Lock()
	conn := in.conn
	in.mu.Unlock()
	conn.Close()
	in.Done()
}

// gatedListener is a listener whose connections take a place each.
type gatedListener struct {
	manet.Listener
	of *connections
}

// Accept implements transport.GatedMaListener.
func (l *gatedListener) Accept() (manet.Conn, network.ConnManagementScope, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, nil, err
		}
		if in, err := l.of.arrive(conn.RemoteMultiaddr(), conn, arrival{proved: true, socket: !isRelayed(conn.RemoteMultiaddr())}); err == nil {
			return conn, in, nil
		}
		conn.Close()
	}
}
