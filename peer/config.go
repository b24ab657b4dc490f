package peer

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/clocks"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/push"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
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

// Limits bounds what peers may make a node do. A zero field takes its default.
type Limits struct {
	// Sessions is how many syncs that this node began may run at once, and how
	// many that its peers began. Default 16: a session of ordinary size takes
	// some MiB, mostly for batches of records and for cells. Background syncs
	// take at most half of the former; the rest is for callers of Sync.
	Sessions int
	// SyncMemory is how many bytes all syncs together may take; a sync that does
	// not fit is asked to try again. Default: half of Config.Memory. A sync takes 14 MiB,
	// and 0.2 KiB for each cell that travels.
	SyncMemory int64
	// SessionsPerPeer is how many syncs that one peer began may run at once.
	// Default 4.
	SessionsPerPeer int
	// IdleTimeout is how long a peer may stay silent within a session, or
	// accept no byte that this node sends. Default 30 s.
	IdleTimeout time.Duration
	// MinRate is the rate, in bytes a second, that a frame may not fall below after
	// IdleTimeout. It cuts off a peer that sends a byte now and then. Default 16 KiB/s.
	MinRate int
	// DialTimeout bounds connecting to a peer. Default 10 s.
	DialTimeout time.Duration
	// Connections is the high-water mark of a host's connections. Above it, the host
	// closes a quarter of them, those of members last. Default 200.
	Connections int
}

// Bounds that are the same in every node, and the default of a policy.
const (
	// MaxMembers is how many members a namespace has at most. MaxInvites is how many of
	// its tickets are remembered, and MaxRejections how many refused records.
	MaxMembers    = node.MaxMembers
	MaxInvites    = membership.MaxInvites
	MaxRejections = refusals.MaxRejections
	// MaxInviteLife is how long a ticket can be used.
	MaxInviteLife = membership.MaxInviteLife
	// MaxAddrs is how many addresses are kept of a peer.
	MaxAddrs = netio.MaxAddrs
	// MaxRelays is how many relays a node has.
	MaxRelays = netio.MaxRelays
	// MaxPeers is how many peers the address book holds.
	MaxPeers = netio.MaxPeers
	// MaxName is the longest local name of a namespace, in bytes.
	MaxName = membership.MaxName
	// DefaultMemory is what Config.Memory says. MinMemory is enough for a store, and for
	// a sync of 65,536 differences at a time.
	DefaultMemory = 1 << 30
	MinMemory     = 256 << 20
	// RecentSyncs is how many reports a node remembers.
	RecentSyncs = 100
	// DefaultMaxSkew is how far ahead of the receiver's clock a version may be by
	// default. Machines with any time synchronisation at all are well within it.
	DefaultMaxSkew = node.DefaultMaxSkew
	// DefaultWatchLog is what Config.WatchLog says.
	DefaultWatchLog = 1 << 16
	// FromStart is the cursor of a watch that yields first what is held, by key. An EventAt
	// then says that this is all, and the changes since follow.
	FromStart = Cursor(changes.FromStart)
	// MaxTTL is the longest time to live: 100 years of 365 days.
	MaxTTL = node.MaxTTL
	// MinBandwidth is the least bound, in bytes a second. Each sync under a bound is left half
	// of it, twice the default of Limits.MinRate, below which a peer cuts a sync off.
	MinBandwidth = 64 << 10
	// SilentAfter is after how long a member that holds the collection back is called
	// silent. A machine that is off at night is back by then. Let it lapse if it does not
	// return (Lapse).
	SilentAfter = 24 * time.Hour
	// TwinLife is how long one of two nodes with one identity must have been silent
	// before the other is synced with again.
	TwinLife = clocks.TwinLife
)

// Bounds inside the package.
const (
	// maxJoinRequest holds a token and MaxAddrs addresses.
	maxJoinRequest = 16 << 10
	// maxHello holds reconcile.MaxFirstCells cells, a prefix and the estimator. It is
	// the most that a peer makes this node hold before it has proved the secret.
	maxHello = 80 << 10
	// maxAsk holds a question: a record's head, with room.
	maxAsk = 4 << 10
	// greetings is how many streams of members may wait for their first message at
	// once, and how many of strangers. Each holds a goroutine and at most maxHello.
	greetings = 64
)

// network are the bounds of the host. A peer that begins more syncs than it may is refused on
// streams beyond those that run. Its questions, most of which wait, have streams of their
// own, and so have its routed ones.
func (l Limits) network() netio.Limits {
	return netio.Limits{
		Connections: l.Connections, DialTimeout: l.DialTimeout, Sessions: l.Sessions,
		PeerStreams: 4*l.SessionsPerPeer + syncing.MaxQuestions + syncing.MaxRouted + syncing.MaxFeeding,
	}
}

func (l Limits) withDefaults() Limits {
	l.Sessions = orDefault(l.Sessions, 16)
	l.SyncMemory = orDefault(l.SyncMemory, DefaultMemory/2)
	l.SessionsPerPeer = orDefault(l.SessionsPerPeer, 4)
	l.IdleTimeout = orDefault(l.IdleTimeout, 30*time.Second)
	l.MinRate = orDefault(l.MinRate, 16<<10)
	l.DialTimeout = orDefault(l.DialTimeout, 10*time.Second)
	l.Connections = orDefault(l.Connections, 200)
	return l
}

// orDefault is a bound that is set, or its default.
func orDefault[T int | int64 | time.Duration](set, value T) T {
	if set <= 0 {
		return value
	}
	return set
}

// Bandwidth bounds how many bytes a second the syncs and the pushes of a node move. It
// bounds what this node sends and what it receives each by itself, as most links carry
// both at once. 0 means no bound; another value is at least MinBandwidth. Counted is what
// syncs write and read, on both sides' calls, and pushes, those that are passed on too.
// Not counted are what TCP, QUIC and encryption add (a few per cent), handshakes, joins,
// and what a relay service carries for others. A push that waits for too long is dropped,
// and a sync brings what it held. Of its own writes a node pushes no more than half of
// Send.
//
// A bound also narrows how many syncs run at once: one that this node began and one
// that its peers began for each MinBandwidth. So each keeps a rate at which no peer
// thinks that it has stalled.
type Bandwidth struct {
	// Send and Receive are for all peers together.
	Send, Receive int64
	// PeerSend and PeerReceive are for each peer.
	PeerSend, PeerReceive int64
}

func (b *Bandwidth) check() error {
	for what, limit := range map[string]int64{"Send": b.Send, "Receive": b.Receive, "PeerSend": b.PeerSend, "PeerReceive": b.PeerReceive} {
		if limit != 0 && limit < MinBandwidth {
			return fmt.Errorf("%w: Bandwidth.%s is %d bytes a second; it is at least %d, or 0 for no bound", ErrInvalid, what, limit, MinBandwidth)
		}
	}
	return nil
}

// narrow leaves each sync its share of the bounds.
func (b *Bandwidth) narrow(l Limits) Limits {
	l.Sessions = narrowed(l.Sessions, b.Send, b.Receive)
	l.SessionsPerPeer = narrowed(l.SessionsPerPeer, b.PeerSend, b.PeerReceive)
	return l
}

// ownPerPeer is how many syncs of its own a node has with one peer at once.
func (b *Bandwidth) ownPerPeer(l Limits) int {
	return narrowed(l.Sessions, b.PeerSend, b.PeerReceive)
}

func narrowed(n int, limits ...int64) int {
	for _, limit := range limits {
		if limit > 0 {
			n = max(1, int(min(int64(n), limit/MinBandwidth)))
		}
	}
	return n
}
