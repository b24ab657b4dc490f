package locator

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// Code is what is said of an index: the number of a shard, or one of those below. It has
// codeBits bits.
type Code uint16

const (
	codeBits = 13

	// Gone: no key that is there has this index.
	Gone Code = 1<<codeBits - 2
	// Shared: several keys that are there have this index; of n keys of a set, n²/2^43 pairs do:
	// 4.4 of 10^8 keys in 256 sets. Hosts are to be asked for them.
	Shared Code = 1<<codeBits - 1
)

// MaxShards is the most shards: a Code has room for them.
const MaxShards = placement.MaxShards

// Entry is an index above what is said of it. Entries of one set ascend as their indices do.
type Entry uint64

// NewEntry returns the entry of an index, of 42 bits.
func NewEntry(index dbadapter.Index, c Code) Entry { return Entry(index)<<codeBits | Entry(c) }

// Index is what the entry is about.
func (e Entry) Index() dbadapter.Index { return dbadapter.Index(e >> codeBits) }

// Code is what is said of it.
func (e Entry) Code() Code { return Code(e & (1<<codeBits - 1)) }

// Sum stands for what is said of all indices of a set: the sum of the hashes of its entries,
// so that each change changes it by what the change tells. Two sets of entries have one sum
// with probability 2^-128. A host that searches for such sets can make them: what rests on
// a sum is promised of honest hosts.
type Sum [2]uint64

// Change tells the sum that an index is spoken of otherwise; Gone adds nothing.
func (s *Sum) Change(index dbadapter.Index, was, is Code) {
	s.add(NewEntry(index, was), ^uint64(0))
	s.add(NewEntry(index, is), 1)
}

func (s *Sum) add(e Entry, sign uint64) {
	if e.Code() == Gone {
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(e))
	h := xxh3.Hash128(b[:])
	s[0] += sign * h.Lo
	s[1] += sign * h.Hi
}

// SumOf is the sum of some entries.
func SumOf(entries []Entry) (s Sum) {
	for _, e := range entries {
		s.add(e, 1)
	}
	return s
}

// Place is how far a copy of a set has come, in whose log: as of event Seq of Log, which the
// host tells, the set has the sum. Sum is that of the copy; the rest is the caller's.
type Place struct {
	Host     roster.ID
	Log, Seq uint64
	Sum      Sum
}
