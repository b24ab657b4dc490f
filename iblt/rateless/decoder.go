package rateless

import (
	"fmt"
	"slices"
)

// Decoder finds the differences between a peer's set and the local one from
// the peer's cells, as they come. It is not safe for concurrent use.
//
// What is left of a cell, theirs − ours − found, is zero, holds one difference, or
// holds several. One difference passes all tests (plausible). Several pass them by
// chance, some once in a thousand decodes. What was found so is wrong, and leaves
// cells that contradict what is real. Then the Decoder has second thoughts
// (accept.go): it puts a pair back.
type Decoder struct {
	words  words
	local  Source
	lookup Lookup

	cells      []slot  // theirs − ours − found
	homes      []int32 // of each cell: one more than the number of the last belief that came out of it
	nonzero    int     // cells that are not zero
	late       int     // of them, those of the later half
	queue      []int32
	waiting    waiting
	found      []belief
	live       int // beliefs that are held
	known      indexMap
	bans       map[ban]bool
	agenda     agenda
	round      round
	places     degree // where the pair is that is taken out or put back
	seen       tally
	estimators [2]Estimator // theirs and ours, for the estimate
	work       work
	gate       float64 // mostExpected; tests have others
	err        error
}

// work counts what a Decoder has done. Whatever n cells a peer sends, Acts is at
// most 4·n; Walked is the number of cells that the pairs of these acts belong to.
// Tests and Lookups are at most n + Walked + Acts, and Moves at most 12·n +
// Walked.
type work struct {
	Tests   int // cells tested for holding one difference
	Lookups int // indices looked up
	Walked  int // cells of pairs that were accepted, refused or put back
	Moves   int // steps of the bookkeeping of mappings
	Acts    int // pairs accepted, refused for a cell that is zero, and put back
	Undone  int // of them, those put back
	Refused int // of them, those refused
}

// actsACell bounds the acts: beyond it the Decoder gives up.
const actsACell = 4

// NewDecoder returns a Decoder for the local set that is sketched by local. The
// sketch must stay as it is while the Decoder takes cells, or be a Clone.
func NewDecoder(local *Sketch, lookup Lookup) *Decoder {
	return newDecoder(local.words, local, lookup)
}

// NewSourceDecoder returns a Decoder for a local set whose cells come from
// elsewhere. The peer's cells must have been made with the same key.
func NewSourceDecoder(key Key, local Source, lookup Lookup) *Decoder {
	return newDecoder(expand(key), local, lookup)
}

func newDecoder(w words, local Source, lookup Lookup) *Decoder {
	return &Decoder{words: w, local: local, lookup: lookup, gate: mostExpected, agenda: agenda{far: none}, known: newIndexMap()}
}

// AddCells takes the next cells of the peer's sequence and subtracts ours. Once it
// has MinCells, it peels as far as possible. Errors are those of the Source or the
// Lookup, or ErrCell or ErrForged. After one, the Decoder takes no more cells.
func (d *Decoder) AddCells(theirs []Cell) error {
	if d.err == nil {
		d.err = d.take(theirs)
	}
	if d.err == nil && len(d.cells) >= MinCells {
		d.err = d.peel()
	}
	return d.err
}

// take subtracts our cells and the pairs found so far from new cells.
func (d *Decoder) take(theirs []Cell) error {
	from, to := len(d.cells), len(d.cells)+len(theirs)
	if to > MaxCells {
		return fmt.Errorf("take cells [%d, %d): a sequence ends at %d: %w", from, to, MaxCells, ErrForged)
	}
	ours, err := d.local.Cells(from, to)
	if err != nil {
		return fmt.Errorf("subtract our cells [%d, %d): %w", from, to, err)
	}
	if len(ours) != len(theirs) {
		return fmt.Errorf("subtract our cells [%d, %d): the source gave %d", from, to, len(ours))
	}
	d.cells = slices.Grow(d.cells, len(theirs))
	d.homes = append(d.homes, make([]int32, len(theirs))...)
	for i := range theirs {
		c := theirs[i]
		if !c.inRange() {
			return fmt.Errorf("take cell %d: a field is out of range: %w", from+i, ErrCell)
		}
		c.sub(&ours[i])
		d.seen.add(from+i, c.IsZero())
		if !c.IsZero() {
			d.nonzero++
			d.late++
		}
		d.cells = append(d.cells, slotOf(&c))
	}
	for i := from / 2; i < to/2; i++ { // no longer of the later half
		if !d.cells[i].isZero() {
			d.late--
		}
	}
	d.resume(from, to)
	for i := from; i < to; i++ {
		d.enqueue(int32(i))
	}
	return nil
}

// resume takes the pairs found so far out of the new cells [from, to).
func (d *Decoder) resume(from, to int) {
	d.work.Moves += d.agenda.grow(to, d.found)
	end := uint64(to)
	cells := &d.places
	for i := from; i < to; i++ {
		for at := d.agenda.take(i); at != none; {
			b := &d.found[at]
			next, worth := b.next, b.worth()
			m := d.words.resume(b.index, uint64(i))
			n := m.fill(d.words.tables, cells[:], end)
			b.at = uint32(m.at)
			d.subtract(cells[:n], &worth)
			d.agenda.put(at, d.found)
			d.work.Moves++
			at = next
		}
	}
}

// subtract takes a pair's share out of some cells that were received. It queues those of
// them that are not zero and have a count of −1, 0 or 1. Three cells in sixteen have such
// a count by chance, and a branch would be guessed wrongly as often. So there is none:
// the place in the queue moves on or does not. That both sums are not zero, collect sees.
func (d *Decoder) subtract(cells []uint32, worth *Cell) {
	d.work.Walked += len(cells)
	term := sumOf(worth)
	d.queue = slices.Grow(d.queue, len(cells))
	n := len(d.queue)
	queue := d.queue[:n+len(cells)]
	for _, at := range cells {
		s := &d.cells[at]
		before := s.isZero()
		s.sub(&term)
		if after := s.isZero(); after != before {
			d.turned(at, after)
			if after {
				continue
			}
		}
		queue[n] = int32(at)
		fresh := s.few() &^ (s.first >> queuedBit)
		s.first |= fresh << queuedBit
		n += int(fresh)
	}
	d.queue = queue[:n]
}

// turned counts a cell that has become zero, or is no longer.
func (d *Decoder) turned(at uint32, zero bool) {
	change := 1
	if zero {
		change = -1
	}
	d.nonzero += change
	if int(at) >= len(d.cells)/2 {
		d.late += change
	}
}

// enqueue puts a cell that has changed into the queue if it may hold one
// difference only.
func (d *Decoder) enqueue(at int32) {
	if s := &d.cells[at]; s.first&queued == 0 && s.single() {
		s.first |= queued
		d.queue = append(d.queue, at)
	}
}

// Done reports whether the cells so far are explained in full: MinCells have
// come at least, and all are zero after peeling.
func (d *Decoder) Done() bool { return len(d.cells) >= MinCells && d.nonzero == 0 && d.err == nil }

// Cells is the number of cells taken so far.
func (d *Decoder) Cells() int { return len(d.cells) }

// Found is the number of differences found so far.
func (d *Decoder) Found() int { return d.live }

// Differences returns what was found so far, in the order of finding. The order
// depends on the cells and on the local set alone. Each index is there once.
func (d *Decoder) Differences() []Difference {
	out := make([]Difference, 0, d.live)
	for i := range d.found {
		if b := &d.found[i]; b.held() {
			out = append(out, b.difference())
		}
	}
	return out
}

// Kind tells on which side a difference is.
type Kind uint8

// The kinds of difference, as seen by the side that decodes.
const (
	MissingHere  Kind = iota + 1 // they hold the index, we do not
	MissingThere                 // we hold the index, they do not
	Mismatched                   // both hold it, with different checksums
)

func (k Kind) String() string {
	switch k {
	case MissingHere:
		return "missing here"
	case MissingThere:
		return "missing there"
	case Mismatched:
		return "mismatched"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Difference is one index at which two sets differ. The Checksum of a side
// that does not hold the index is 0.
type Difference struct {
	Kind   Kind
	Index  Index
	Theirs Checksum
	Ours   Checksum
}

// Source hands out the cells [from, to) of the local set, all as of one
// moment. A *Sketch is a Source.
type Source interface {
	Cells(from, to int) ([]Cell, error)
}

// Lookup writes to sums[i] the local checksum under indices[i], or 0 where
// the set has no such index. It must read the snapshot that the Source makes
// its cells of.
type Lookup func(indices []Index, sums []Checksum) error
