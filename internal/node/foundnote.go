package node

import (
	"encoding/binary"
	"fmt"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/replica"
)

// An orderly close keeps what a sweep of all records has found to wait: in the
// summary of the data, behind the live sketch. A start may take up the summary,
// without a change since and with the same list of members. It then knows what a
// sweep would find, and does not read all records for it. The layout is:
//
//	list(16) count(8) least(8) greatest(8) 1
//
// or a byte 0 where it is not known. Integers are big-endian.

// foundNote is what waits, given a list of members: by that a sweep judges which writers
// had the right to write. The zero value says that it is not known.
type foundNote struct {
	known bool
	list  roster.Digest
	found found
}

const foundNoteSize = len(roster.Digest{}) + 3*8 + 1

// append adds the note behind a summary.
func (n *foundNote) append(b []byte) []byte {
	if !n.known {
		return append(b, 0)
	}
	b = append(b, n.list[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(n.found.count))
	b = binary.BigEndian.AppendUint64(b, uint64(n.found.least))
	b = binary.BigEndian.AppendUint64(b, uint64(n.found.greatest))
	return append(b, 1)
}

// cutFoundNote takes the note off a summary.
func cutFoundNote(b []byte) (summary []byte, n foundNote, err error) {
	end := len(b) - 1
	switch {
	case end >= 0 && b[end] == 0:
		return b[:end], n, nil
	case end < 0 || b[end] != 1 || len(b) < foundNoteSize:
		return nil, n, fmt.Errorf("%w: it does not say what waits to be collected", replica.ErrSummary)
	}
	at := len(b) - foundNoteSize
	field := func(i int) uint64 { return binary.BigEndian.Uint64(b[at+len(n.list)+8*i:]) }
	n = foundNote{known: true, found: found{count: int64(field(0)), least: dbadapter.Timestamp(field(1)), greatest: dbadapter.Timestamp(field(2))}}
	copy(n.list[:], b[at:])
	return b[:at], n, nil
}

// note is what is known to wait, once nothing writes to the part any more.
func (p *Part) note() (n foundNote) {
	if p.isControl() {
		return n
	}
	if n.found, n.known = p.set.vouching.waiting.now(); !n.known {
		return foundNote{}
	}
	n.list = p.ns.Members().Digest()
	return n
}

// recall takes up what an orderly close has noted, if it is still so.
func (set *Set) recall() {
	k := &set.kept
	k.mu.Lock()
	n, unchanged := k.noted, k.unchanged
	k.mu.Unlock()
	if unchanged && n.known && n.list == set.ns.Members().Digest() {
		set.vouching.waiting.recall(n.found)
	}
}
