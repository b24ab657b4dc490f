package peer

import (
	"time"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/clocks"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
)

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
