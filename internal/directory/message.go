package directory

import (
	"cmp"
	"slices"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Poll asks a host for what has happened since a place in its log.
type Poll struct {
	Log, Seq uint64
	All      bool // and for the sums of all of its sets
	// Wait: without news, the host may answer later, up to MaxWait, and is to do so once there are any.
	Wait bool
}

// News answers a Poll.
type News struct {
	Log uint64
	// Layout stands for the layout by which the node is a host of its sets: what Host.SetLayout
	// was told.
	Layout uint64
	// The events are those behind From up to To. Begins: the place that was asked for is not
	// in the log, and From is the end of it. More: the log goes on.
	From, To          uint64
	Begins, More, All bool
	Events            []Event
	// Sums are those of the sets that the events are about, or of all sets, as of To;
	// ascending. If More, the list is empty.
	Sums []SetSum
}

// SetSum is the sum of a set.
type SetSum struct {
	Home placement.Shard
	Sum  Sum
}

// Kind tells events apart.
type Kind uint8

// The kinds of events.
const (
	// Changed: of an index is said something else.
	Changed Kind = iota
	// Opened: a host tells of a set from here on, which has the sum.
	Opened
	// Closed: it does not tell of the set any more.
	Closed
)

// Event is an entry of a host's log.
type Event struct {
	Home    placement.Shard
	Kind    Kind
	Index   dbadapter.Index // of a change
	Was, Is Code
	Sum     Sum // of an opening
}

// Take asks for a part of a set: for what is behind a place.
type Take struct {
	Log  uint64
	Home placement.Shard
	At   keyset.Cursor
}

// Block answers a Take, with up to keyset.MaxKeys indices and what is said of them.
type Block struct {
	Log  uint64
	Home placement.Shard
	Seq  uint64 // of the host, when the block was made
	At   keyset.Cursor
	Last bool // the set ends with it
	rows rows
}

// Len is how many indices the block has.
func (m *Block) Len() int { return len(m.rows) }

func (m *News) sort() {
	slices.SortFunc(m.Sums, func(a, b SetSum) int { return cmp.Compare(a.Home, b.Home) })
}

// next is the place behind the block.
func (m *Block) next() keyset.Cursor {
	next := m.At
	if n := len(m.rows); n > 0 {
		next = keyset.Cursor{Begun: true, After: uint64(m.rows[n-1].index())}
	}
	next.Done = m.Last
	return next
}
