package wire

import (
	"encoding/binary"
	"unicode/utf8"

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

// status flags
const (
	statusDamaged = 1 << iota
	statusDisk
	statusProved
	statusUnable
)

func (*AskStatus) appendQuestion(b []byte) []byte { return b }

func (a *StatusAnswer) appendAnswer(b []byte) []byte {
	flags := byte(0)
	if a.Damaged {
		flags |= statusDamaged
	}
	if a.Disk != nil {
		flags |= statusDisk
	}
	if a.Proved != nil {
		flags |= statusProved
	}
	if a.Unable != 0 {
		flags |= statusUnable
	}
	b = binary.BigEndian.AppendUint64(appendSum(append(b, flags), a.Sum), uint64(a.Newest))
	b = appendBytes(b, []byte(a.Program))
	if a.Disk != nil {
		b = appendUvarint(appendUvarint(b, a.Disk.Taken), a.Disk.Free)
	}
	if a.Proved != nil {
		b = appendUvarint(appendUvarint(appendBytes(b, a.Proved.With), a.Proved.At), a.Proved.Differences)
	}
	if a.Unable != 0 {
		b = append(b, a.Unable)
	}
	return b
}

func (p *parser) status() *StatusAnswer {
	flags := p.byte()
	if flags > statusDamaged|statusDisk|statusProved|statusUnable {
		p.fail("unknown flags %#x", flags)
	}
	a := &StatusAnswer{Damaged: flags&statusDamaged != 0, Sum: p.sum()}
	if b := p.take(8); b != nil {
		a.Newest = dbadapter.Timestamp(binary.BigEndian.Uint64(b))
	}
	a.Program = string(p.bytes(MaxProgram, "a version of a program"))
	if !utf8.ValidString(a.Program) {
		p.fail("a version of a program that is not UTF-8")
	}
	if flags&statusDisk != 0 {
		a.Disk = &Disk{p.uvarint(), p.uvarint()}
	}
	if flags&statusProved != 0 {
		a.Proved = &Proved{p.bytes(MaxOrigin, "a peer id"), p.uvarint(), p.uvarint()}
		if p.err == nil && len(a.Proved.With) == 0 {
			p.fail("a proof with no member")
		}
	}
	if flags&statusUnable != 0 {
		if a.Unable = p.byte(); p.err == nil && a.Unable == 0 {
			p.fail("no state is spelt out")
		}
	}
	return a
}
