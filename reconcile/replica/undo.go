package replica

import (
	"fmt"
	"math"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// undoLog holds the last changes, as far back as the oldest mark. By them, what is read
// live can be taken back to what it was at a mark. While there is no mark it holds
// nothing. Live.mu guards it.
//
// A copy of the live cells for each snapshot would need no log. But it would take 3 MiB
// a snapshot and the time to copy them, also where the digests are equal and no cell is
// read.
type undoLog struct {
	bound int    // on the number of changes; see maxUndo
	seq   uint64 // of the last change
	// changes are those of the sequence numbers (seq−len(changes), seq]. They
	// are only ever appended, so that a part that was handed out stays valid
	// without the lock.
	changes []change
	marks   map[*mark]struct{}
}

// change is an entry of the store's log, as far as it is needed to look back
// behind it: 64 bytes.
type change struct {
	index    dbadapter.Index
	old, new dbadapter.Checksum
	delta    dbadapter.Digest
	records  int
}

// mark is a sequence number up to which the log must reach back.
type mark struct{ seq uint64 }

// mark adds a mark as of now.
func (u *undoLog) mark() *mark {
	m := &mark{u.seq}
	u.marks[m] = struct{}{}
	return m
}

// release takes a mark out, and forgets the changes that only it needed.
// Idempotent.
func (u *undoLog) release(m *mark) {
	if _, held := u.marks[m]; held {
		delete(u.marks, m)
		u.trim()
	}
}

// add appends a change; trim must follow.
func (u *undoLog) add(c *dbadapter.Change) {
	u.seq = c.Seq
	if len(u.marks) > 0 {
		u.changes = append(u.changes, change{c.Index, c.Old, c.New, c.Delta, c.Records})
	}
}

// trim forgets the changes that no mark needs. While those that are left are
// more than the bound, it drops the oldest mark.
func (u *undoLog) trim() {
	for {
		oldest := u.oldest()
		if oldest == nil {
			u.changes = nil
			return
		}
		n := int(u.seq - oldest.seq)
		if n <= u.bound {
			u.changes = u.changes[len(u.changes)-n:]
			return
		}
		delete(u.marks, oldest)
	}
}

// oldest is nil if there is no mark.
func (u *undoLog) oldest() *mark {
	var oldest *mark
	least := uint64(math.MaxUint64)
	for m := range u.marks {
		if m.seq < least {
			oldest, least = m, m.seq
		}
	}
	return oldest
}

// since returns the changes after the mark, oldest first.
func (u *undoLog) since(m *mark) ([]change, error) {
	if _, held := u.marks[m]; !held {
		return nil, fmt.Errorf("%w: %d records have been written since this snapshot was opened, and no more than %d can be looked back behind",
			reconcile.ErrBusy, u.seq-m.seq, u.bound)
	}
	return u.changes[len(u.changes)-int(u.seq-m.seq):], nil
}

// move moves the mark forward to seq and returns the changes since. seq is the number
// of a store's snapshot that was opened after the mark was made.
func (u *undoLog) move(m *mark, seq uint64) ([]change, error) {
	if seq < m.seq || seq > u.seq {
		return nil, fmt.Errorf("the store gave a snapshot at %d while its observer went from %d to %d", seq, m.seq, u.seq)
	}
	if _, err := u.since(m); err != nil {
		return nil, err
	}
	m.seq = seq
	u.trim()
	return u.since(m)
}

// restart forgets all, marks too, and goes on from seq.
func (u *undoLog) restart(seq uint64) {
	u.seq, u.changes = seq, nil
	clear(u.marks)
}
