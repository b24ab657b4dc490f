package node

import (
	"sync"

	"github.com/syncd-io/syncd/dbadapter"
)

// waiting knows, without reading the records each time, whether there are any that
// a collection could take: tombstones, and records that expire. A sweep of the
// records finds them; each commit adds to it.
type waiting struct {
	mu sync.Mutex // guards what follows
	// swept: the records have been read since the list of members changed. They
	// have also been read since the namespace was opened, or before its last
	// orderly close (foundnote.go).
	swept  bool
	found  found
	beside *found // since a sweep began
}

// found are records that wait to be collected. What is overwritten still counts,
// until the next sweep.
type found struct {
	count           int64
	least, greatest dbadapter.Timestamp // of the times from which on they may go
}

func (f *found) add(due dbadapter.Timestamp) {
	if f.count == 0 || due < f.least {
		f.least = due
	}
	f.greatest = max(f.greatest, due)
	f.count++
}

// note takes the records of a commit.
func (w *waiting) note(writes []dbadapter.Write, outcomes []dbadapter.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range outcomes {
		at, ok := writes[i].Record.Due()
		if !ok || o.Result != dbadapter.Applied || writes[i].Action.Removes() {
			continue
		}
		w.found.add(at)
		if w.beside != nil {
			w.beside.add(at)
		}
	}
}

// again asks for a sweep.
func (w *waiting) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept = false
}

// recall takes what a sweep found before the opening.
func (w *waiting) recall(f found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept, w.found = true, f
}

// begin begins a sweep.
func (w *waiting) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.swept, w.beside = true, &found{}
}

// end ends a sweep that has left these, and ran to its end or did not.
func (w *waiting) end(left found, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !whole {
		w.swept, w.beside = false, nil
		return
	}
	if b := w.beside; b.count > 0 {
		left.add(b.least)
		left.greatest = max(left.greatest, b.greatest)
		left.count += b.count - 1
	}
	w.found, w.beside = left, nil
}

// collectable is up to when records wait that could go at a reading of the clock;
// 0 if no such records wait.
func (w *waiting) collectable(tau dbadapter.Timestamp) dbadapter.Timestamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found.count == 0 || w.found.least > tau {
		return 0
	}
	return min(w.found.greatest, tau)
}

// ready reports whether a sweep would find what it is for. That is a record that is
// not later than the watermark, or one that no sweep has looked at.
func (w *waiting) ready(mark dbadapter.Timestamp) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.swept || w.found.count > 0 && w.found.least <= mark
}

// within reports whether all that waits could go: nothing is later than the
// watermark.
func (w *waiting) within(mark dbadapter.Timestamp) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.swept && w.found.greatest <= mark
}

// now is what waits.
func (w *waiting) now() (f found, swept bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found, w.swept
}
