package wire

import (
	"github.com/syncd-io/syncd/dbadapter"
)

// MaxProgram is the most bytes of the version of a program.
const MaxProgram = 64

// AskStatus asks how the peer is. It answers at once.
type AskStatus struct{}

// StatusAnswer is how the peer is, with a namespace and its disk.
type StatusAnswer struct {
	// Sum is of what it holds, durably, and Newest the greatest clock that it has ever held.
	Sum    dbadapter.Sum
	Newest dbadapter.Timestamp
	// Damaged: it has met damage to its store, and has not found it healed.
	Damaged bool
	// Unable are the states in which it cannot do its work, a bit each; 0: none.
	Unable byte
	// Program is the version of its program, in UTF-8.
	Program string
	// Disk, if not nil, is that of its store.
	Disk *Disk
	// Proved, if not nil, is the last sync of everything that proved its records equal to
	// another member's.
	Proved *Proved
}

// Disk is what files take, in bytes, and what is free.
type Disk struct{ Taken, Free uint64 }

// Proved is a sync that proved two members equal.
type Proved struct {
	With []byte // the other member's peer id, in binary
	At   uint64 // Unix milliseconds, by the clock of the one that tells it
	// Differences is how many that sync had found.
	Differences uint64
}

// Subject is SubjectStatus; so is the next one.
func (*AskStatus) Subject() Subject { return SubjectStatus }

// Subject is SubjectStatus.
func (*StatusAnswer) Subject() Subject { return SubjectStatus }

func (*AskStatus) question(*codec) {}

func (a *StatusAnswer) answer(c *codec) {
	disk, proved, unable := a.Disk != nil, a.Proved != nil, a.Unable != 0
	c.flags(&a.Damaged, &disk, &proved, &unable)
	c.sum(&a.Sum)
	big(c, &a.Newest)
	const program = "a version of a program"
	c.text(&a.Program, c.length(len(a.Program), MaxProgram, program), program)
	if disk {
		d := made(c, &a.Disk)
		uvarint(c, &d.Taken)
		uvarint(c, &d.Free)
	}
	if proved {
		p := made(c, &a.Proved)
		if field(c, &p.With, MaxOrigin, "a peer id"); len(p.With) == 0 {
			c.fail("a proof with no member")
		}
		uvarint(c, &p.At)
		uvarint(c, &p.Differences)
	}
	if unable {
		if octet(c, &a.Unable); a.Unable == 0 {
			c.fail("no state is spelt out")
		}
	}
}
