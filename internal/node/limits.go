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
	// MaxRejections is how many refused records a namespace remembers; the
	// oldest gives way, and would be fetched and refused once more.
	MaxRejections = 10_000
	// DefaultMaxSkew is how far ahead of the receiver's clock a version may be by
	// default. Machines with any time synchronisation at all are well within it.
	DefaultMaxSkew = 5 * time.Minute

	// MaxTTL is how long after its write a record can expire: 100 years of 365
	// days, longer than any disk lives.
	MaxTTL = 100 * 365 * 24 * time.Hour

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
