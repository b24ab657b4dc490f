package node

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Bounds of what a node remembers and decides upon, and what each comes from.
const (
	// MaxMembers is how many members a namespace has.
	MaxMembers = roster.MaxMembers
	// MaxUses is how many nodes a ticket admits.
	MaxUses = MaxMembers
	// MaxAddrs is how many addresses are kept of a node, and MaxAddrSize how long one
	// is: a DNS name takes 253 bytes.
	MaxAddrs    = 16
	MaxAddrSize = 512
	// MaxJoinReply is how long a reply to a join is, in bytes. It has room for the
	// statements that bound a list, MaxMembers members with MaxAddrs addresses
	// each, 8 MiB, and what frames these.
	MaxJoinReply = roster.MaxBytes + 5*roster.MaxStatements + MaxMembers*(64+MaxAddrs*(3+MaxAddrSize)) + 1<<10
	// MaxInvites is how many tickets of a namespace are remembered: open, used
	// and expired.
	MaxInvites = 1000
	// MaxRejections is how many refused records a namespace remembers; the
	// oldest gives way, and would be fetched and refused once more.
	MaxRejections = 10_000
	// MaxName is the longest local name of a namespace, in bytes.
	MaxName = 64
	// DefaultMaxSkew is how far ahead of the receiver's clock a version may be by
	// default. Machines with any time synchronisation at all are well within it.
	DefaultMaxSkew = 5 * time.Minute
	// DefaultInviteLife is long enough to carry a ticket to a colleague, and
	// short enough that a forgotten one does no harm.
	DefaultInviteLife = 24 * time.Hour
	// MaxInviteLife is how long a ticket can be used: a secret that lies about
	// for longer than a year is forgotten, not kept.
	MaxInviteLife = 365 * 24 * time.Hour

	// MaxTTL is how long after its write a record can expire: 100 years of 365
	// days, longer than any disk lives.
	MaxTTL = 100 * 365 * 24 * time.Hour

	// tokenSize makes tokens that cannot be guessed, and is the size of their
	// SHA-256.
	tokenSize = 32
	// maxTicket holds 16 addresses of 512 bytes in base32.
	maxTicket = 16 << 10
	// expiredInvites are remembered for so long, to tell "expired" from
	// "unknown" to the holder of the ticket.
	expiredInvites = 7 * 24 * time.Hour
	// importMost, importLeast while single writes come, and importBytes, keys counted
	// twice, end a batch of an import: one transaction and one fsync. It is what dbadapter
	// takes at once, a record of its own of any size included.
	importMost  = dbadapter.MaxBatch
	importLeast = 1024
	importBytes = 1 << 20
	// admitMost and admitLeast are how many records from a peer are committed at once,
	// while no single writes come and while they do. Of the smaller, the records take
	// about as long as the disk takes for their transaction; the larger is a whole frame.
	admitMost  = wire.BatchRecords
	admitLeast = 64
	// paceRest is for how long records from peers give way to single writes after
	// the last of these. A node that is written to once a second is one that is
	// written to.
	paceRest = time.Second
	// MaxAttempts bounds the races that one write may lose against others.
	MaxAttempts = 10
	// DeclinedLife is for how long a peer's refusal of a record is taken for
	// final. Then the record is offered again: the peer may know its writer by
	// now, or have set its clock. A longer life would hide such a change, a
	// shorter one would send refused records with every sync.
	DeclinedLife = 5 * time.Minute
	// clockSlack is by how much two clocks that are set by the same time servers
	// may differ. A peer may still decline what by this node's clock it would take.
	// A clock may be set back so far without having been wrong.
	clockSlack = 5 * time.Second
)
