package watermark

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

const (
	// sweepPause is how many times as long as a sweep of the records the next one
	// waits. So sweeps take no more than a twentieth of the time. One that takes
	// out all that waits is the last, and waits lastPause times as long.
	sweepPause = 19
	lastPause  = 1
	// sweepRest is the longest pause between two sweeps.
	sweepRest = 10 * time.Minute
)

// Waiting knows, without reading the records each time, whether there are any that
// a collection could take: tombstones, and records that expire. A sweep of the
// records finds them; each commit adds to it. It also says when the next sweep is due.
// Its zero value has seen no sweep. It may be used from several goroutines.
type Waiting struct {
	mu sync.Mutex // guards what follows
	// swept: the records have been read since the list of members changed. They
	// have also been read since the namespace was opened, or before its last
	// orderly close (Note).
	swept bool
	found Found
	since *Found // since a sweep began
	begun time.Time
	// rest is until when no further sweep begins in the background. Until soon not
	// even one begins that takes out all that waits, or that a peer is ahead with.
	rest, soon time.Time
}

// Found are records that wait to be collected. What is overwritten still counts,
// until the next sweep.
type Found struct {
	Count           int64
	Least, Greatest dbadapter.Timestamp // of the times from which on they may go
}

// Add adds a record that may go from due on.
func (f *Found) Add(due dbadapter.Timestamp) {
	if f.Count == 0 || due < f.Least {
		f.Least = due
	}
	f.Greatest = max(f.Greatest, due)
	f.Count++
}

// Committed takes the records of a commit.
func (w *Waiting) Committed(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range outcomes {
		at, ok := writes[i].Record.Due()
		if !ok || o.Result != dbadapter.Applied || writes[i].Action.Removes() {
			continue
		}
		w.found.Add(at)
		if w.since != nil {
			w.since.Add(at)
		}
	}
}

// Again asks for a sweep.
func (w *Waiting) Again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept = false
}

// Begin begins a sweep.
func (w *Waiting) Begin(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept, w.since, w.begun = true, &Found{}, now
}

// End ends a sweep that has left these, and ran to its end or did not.
func (w *Waiting) End(left Found, whole bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := now.Sub(w.begun)
	w.rest, w.soon = now.Add(min(sweepRest, sweepPause*took)), now.Add(min(sweepRest, lastPause*took))
	if !whole {
		w.swept, w.since = false, nil
		return
	}
	if s := w.since; s.Count > 0 {
		left.Add(s.Least)
		left.Greatest = max(left.Greatest, s.Greatest)
		left.Count += s.Count - 1
	}
	w.found, w.since = left, nil
}

// Collectable is up to when records wait that could go at a reading of the clock;
// 0 if no such records wait.
func (w *Waiting) Collectable(tau dbadapter.Timestamp) dbadapter.Timestamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found.Count == 0 || w.found.Least > tau {
		return 0
	}
	return min(w.found.Greatest, tau)
}

// SweepDue reports whether a sweep would find what it is for, and the last one was
// long enough ago. It is for a record that is not later than the watermark, or for one
// that no sweep has looked at. urgent: a peer is ahead with it.
func (w *Waiting) SweepDue(mark dbadapter.Timestamp, now time.Time, urgent bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.swept && (w.found.Count == 0 || w.found.Least > mark) {
		return false
	}
	until := w.rest
	if urgent || w.swept && w.found.Greatest <= mark { // it is the last one
		until = w.soon
	}
	return !now.Before(until) || until.Sub(now) >= sweepRest // else the clock was set back
}

// Now is what waits, and whether a sweep has found it.
func (w *Waiting) Now() (f Found, swept bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found, w.swept
}

// An orderly close keeps what a sweep of all records has found to wait: in the
// summary of the data, behind the live sketch. A start may take up the summary,
// without a change since and with the same list of members. It then knows what a
// sweep would find, and does not read all records for it. The layout is:
//
//	list(16) count(8) least(8) greatest(8) 1
//
// or a byte 0 where it is not known. Integers are big-endian.

// Note is what waits, given a list of members: by that a sweep judges which writers
// had the right to write. The zero value says that it is not known.
type Note struct {
	known bool
	list  roster.Digest
	found Found
}

const noteSize = len(roster.Digest{}) + 3*8 + 1

// Append adds the note behind a summary.
func (n *Note) Append(b []byte) []byte {
	if !n.known {
		return append(b, 0)
	}
	b = append(b, n.list[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(n.found.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(n.found.Least))
	b = binary.BigEndian.AppendUint64(b, uint64(n.found.Greatest))
	return append(b, 1)
}

// CutNote takes the note off a summary.
func CutNote(b []byte) (summary []byte, n Note, err error) {
	end := len(b) - 1
	switch {
	case end >= 0 && b[end] == 0:
		return b[:end], n, nil
	case end < 0 || b[end] != 1 || len(b) < noteSize:
		return nil, n, errors.New("it does not say what waits to be collected")
	}
	at := len(b) - noteSize
	field := func(i int) uint64 { return binary.BigEndian.Uint64(b[at+len(n.list)+8*i:]) }
	n = Note{known: true, found: Found{int64(field(0)), dbadapter.Timestamp(field(1)), dbadapter.Timestamp(field(2))}}
	copy(n.list[:], b[at:])
	return b[:at], n, nil
}

// Note is what is known to wait, once nothing is written any more.
func (w *Waiting) Note(list roster.Digest) Note {
	f, swept := w.Now()
	if !swept {
		return Note{}
	}
	return Note{true, list, f}
}

// Recall takes up what an orderly close has noted, if it was under the same list. Nothing
// was written since.
func (w *Waiting) Recall(n Note, list roster.Digest) {
	if !n.known || n.list != list {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept, w.found = true, n.found
}
