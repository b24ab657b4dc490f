package peer

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/push"
)

// Config says how a node is opened. The zero value is a node in memory, with
// a fresh identity, that listens on loopback only.
type Config struct {
	// Dir is the folder of the node. It holds its identity, its namespaces' secrets and
	// member lists, its address book and, unless Store is set, its records. Open makes
	// it if it is absent. Empty: only what a given Store keeps outlives the node.
	Dir string
	// Store holds the records. Default: a store on disk in Dir, or a memdb
	// if Dir is empty. Close leaves a given Store open.
	Store dbadapter.Store
	// StoreKind is the kind of the store in Dir. Default: the kind of the one that is
	// there; ondisk.Badger in a new folder. Another one than is there is ErrInvalid:
	// offline.Migrate moves the records.
	StoreKind ondisk.Kind
	// Host carries the connections. Default: a host of the node's own, TCP with Noise
	// and TLS, and QUIC, under explicit resource limits. A given Host keeps its own
	// identity, which must be an Ed25519 key, and is left open. It serves one node at a
	// time. A host of NewHost has the same bounds on strangers as a node's own, and
	// exempts the node's members from them. Another host has its own bounds.
	Host host.Host
	// ListenAddrs are the multiaddrs that the node's own host listens on.
	// Default (nil): /ip4/127.0.0.1/tcp/0 and /ip4/127.0.0.1/udp/0/quic-v1.
	// Port 0 is another port after each start: name a port, so that others find the
	// node after its restart. Empty but not nil: the host does not listen, so that the
	// node can dial and cannot be dialled.
	ListenAddrs []string
	// AnnounceAddrs are the multiaddrs that the node tells to others in place of those that it listens on. An
	// example is the address of a router that forwards a port, or a DNS name. Each is a host and a TCP port, or a
	// host, a UDP port and quic-v1; at most MaxAddrs. To tell those listened on, too, name them. Default: the
	// addresses that it listens on.
	AnnounceAddrs []string
	// Relays are multiaddrs of relays (libp2p's circuit relay v2), each ending in /p2p/
	// and the relay's id, at most MaxRelays. The node keeps a place at each and
	// announces it, so that others reach it where no router forwards a port. Two such
	// nodes then try to connect directly, over QUIC (hole punching). A relay sees which
	// nodes it connects, when, and how many bytes they exchange. Default: the node is
	// reached at its own addresses only. It dials others through their relays in either
	// case.
	Relays []string
	// RelayService makes the node a relay between two members of one of its namespaces.
	// A connection lasts for an hour and 1 GiB in each direction. A member has 8 of
	// them, and 128 members are served. Others are refused.
	RelayService bool
	// MDNS makes the node announce its id and addresses on all of its local networks by
	// multicast DNS. It dials members that do the same. Default: it says nothing there,
	// and listens for nothing.
	MDNS bool
	// Identity is the node's Ed25519 key. Default: the key in Dir, made at
	// the first opening, or a fresh one.
	Identity crypto.PrivKey
	// Dialed, if not nil, receives each TCP connection that the node's own host has
	// opened to a peer, before the handshake. The host uses the connection that Dialed
	// returns, and closes both after an error. Tests break links with it, or count
	// bytes. The peers then listen over TCP only, since connections over QUIC do not
	// pass here.
	Dialed func(ctx context.Context, to ID, conn net.Conn) (net.Conn, error)
	// Logger receives the node's log: refusals, joins and syncs; each step of
	// a sync at level Debug. Default: the log is discarded, and slog.Default
	// is not used.
	Logger *slog.Logger
	// Registerer receives the node's metrics, each with the label node (the
	// peer id). Default: the metrics are not registered; the package never uses
	// the global registry.
	Registerer prometheus.Registerer
	// Program is the version of the program, for members that ask how this node is. What
	// is beyond 64 bytes is left out. Default: members do not learn it.
	Program string
	// Clock tells the time of versions and expiries. Default: time.Now.
	// Deadlines on the network follow the real time.
	Clock func() time.Time
	// SyncInterval is the mean pause between background syncs of a namespace
	// with its members. 0: no background syncs.
	SyncInterval time.Duration
	// NoPush: what this node writes reaches the others by syncs only, and so does what
	// they write. A node without background syncs pushes nothing, either.
	NoPush bool
	// NoHost: the node is no host of shards, in any namespace, though it may write. It says so
	// to the members, and what it held as a host it keeps until others have it.
	NoHost bool
	// Memory is about how many bytes the node may take, at least MinMemory. Half of it
	// is for syncs (Limits.SyncMemory), and a quarter for the node's own store. The
	// rest is for what each node takes. Peaks may exceed it while the garbage of a sync
	// or an import waits to be collected. Go's memory limit (debug.SetMemoryLimit), set
	// by the program, prevents that. Default: DefaultMemory.
	Memory int64
	// DiskReserve is how many bytes of the disk writes to the node's own store leave free,
	// not counting what the store needs for its own work. Removals leave half of it. A
	// write that would not is ErrNoRoom. Default: 64 MiB.
	DiskReserve int64
	// Bandwidth bounds the bytes a second that syncs move. Default: no bounds.
	Bandwidth Bandwidth
	// WatchLog is how many changes of each namespace the node's own store keeps, at least,
	// for watches that go on from a cursor. A change takes some 80 bytes and the key. Of a
	// namespace with more than eight times as many records it keeps an eighth of their
	// number. Default: DefaultWatchLog. A given Store has a setting of its own.
	WatchLog int
	// Repair: where the opening meets damage to the node's own store, or it was met before,
	// the store is made anew first, as offline.Repair does.
	Repair bool
	// Limits bounds what peers may make this node do.
	Limits Limits
}

// memory is how many bytes the node may take.
func (c *Config) memory() int64 {
	return max(orDefault(c.Memory, DefaultMemory), MinMemory)
}

// pushes reports whether the node pushes and hears.
func (c *Config) pushes() bool { return !c.NoPush && c.SyncInterval > 0 }

// pushing is how the node pushes: of a bound of the bandwidth it leaves half to syncs.
func (c *Config) pushing() push.Config {
	p := push.Config{On: c.pushes()}
	if send := c.Bandwidth.Send; send > 0 {
		p.Send = int(send / 2)
	}
	return p
}

// limits are those of the configuration, with defaults that follow the memory, and as
// the bandwidth narrows them.
func (c *Config) limits() Limits {
	l := c.Limits
	l.SyncMemory = orDefault(l.SyncMemory, c.memory()/2)
	return c.Bandwidth.narrow(l.withDefaults())
}
