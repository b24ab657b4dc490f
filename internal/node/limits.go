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
)
