package locator

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// Code is what is said of an index: the number of a shard, below placement.MaxShards, or one of those below. It
// has 13 bits.
type Code uint16

const (
	indexBits = 42
	codeBits  = 13

	// Gone: no key that is there has this index.
	Gone Code = 1<<codeBits - 2
	// Shared: several keys that are there have this index; of n keys of a set, n²/2^43 pairs do:
	// 4.4 of 10^8 keys in 256 sets. Hosts are to be asked for them.
	Shared Code = 1<<codeBits - 1
)

// Entry is an index above what is said of it. Entries of one set ascend as their indices do.
type Entry uint64

// NewEntry returns the entry of an index, of 42 bits.
func NewEntry(index dbadapter.Index, c Code) Entry { return Entry(index)<<codeBits | Entry(c) }

// Index is what the entry is about.
func (e Entry) Index() dbadapter.Index { return dbadapter.Index(e >> codeBits) }

// Code is what is said of it.
func (e Entry) Code() Code { return Code(e & (1<<codeBits - 1)) }

// Place is how far a copy of a set has come, in whose log: it has each change up to Seq of Log, which is the
// host's, and maybe some that follow it. To apply those again changes nothing.
type Place struct {
	Host     roster.ID
	Log, Seq uint64
}
