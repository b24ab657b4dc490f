package peer

import "time"

// Limits bounds what peers may make a node do. A zero field takes its default.
type Limits struct {
	// Sessions is how many syncs may run at once, both ways together.
	// Default 16: with the bound on a session's memory this keeps the node
	// within a few hundred MiB whatever its peers do.
	Sessions int
	// SessionsPerPeer is how many of them one peer may have started. Default 4.
	SessionsPerPeer int
	// IdleTimeout is how long a peer may stay silent within a session, or
	// take nothing of what is sent to it. Default 30 s.
	IdleTimeout time.Duration
	// MinRate is the rate, in bytes a second, at which a frame must come or
	// go beyond the idle time-out: a peer that drips bytes is cut. Default
	// 16 KiB/s.
	MinRate int
	// DialTimeout bounds connecting to a peer. Default 10 s.
	DialTimeout time.Duration
	// Connections is the high-water mark of the node's own host. Default 200.
	Connections int
}

// Bounds that no setting moves.
const (
	// MaxMembers keeps a member list, and the answer to a join, below 1 MiB,
	// and bounds the keys tried for a record without a writer.
	MaxMembers = 1000
	// MaxInvites is how many tickets of a namespace are remembered, open,
	// used and expired.
	MaxInvites = 1000
	// MaxRejections is how many refused records a namespace remembers; the
	// oldest gives way, and would be fetched and refused once more.
	MaxRejections = 10_000
	// MaxAddrs is how many addresses are kept of a peer.
	MaxAddrs = 16
	// MaxPeers is how many peers the address book holds.
	MaxPeers = 10_000
	// MaxName is the longest local name of a namespace, in bytes.
	MaxName = 64
	// RecentSyncs is how many reports a node remembers.
	RecentSyncs = 100
)

// DefaultMaxSkew is how far ahead of the receiver's clock a version may be:
// machines with any time synchronisation at all are well within it.
const DefaultMaxSkew = 5 * time.Minute

func (l Limits) withDefaults() Limits {
	set := func(field *int, value int) {
		if *field <= 0 {
			*field = value
		}
	}
	setTime := func(field *time.Duration, value time.Duration) {
		if *field <= 0 {
			*field = value
		}
	}
	set(&l.Sessions, 16)
	set(&l.SessionsPerPeer, 4)
	setTime(&l.IdleTimeout, 30*time.Second)
	set(&l.MinRate, 16<<10)
	setTime(&l.DialTimeout, 10*time.Second)
	set(&l.Connections, 200)
	return l
}
