package rateless

import "fmt"

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
// there is none, as of the same moment as the cells of the Source.
type Lookup func(indices []Index, sums []Checksum) error

// Decoder finds the differences between a peer's set and the local one from
// the peer's cells, as they come. It is not safe for concurrent use.
type Decoder struct {
	words  words
	local  Source
	lookup Lookup

	cells      []slot // theirs − ours − found
	nonzero    int    // cells that are not zero
	queue      []int32
	found      []Difference
	mappings   []pending
	known      indexSet // the indices of found
	agenda     agenda
	round      round
	seen       tally
	estimators [2]Estimator // theirs and ours, for the estimate
	work       work
	err        error
}

// slot is a cell that is being peeled. queued tells that it stands in the
// queue already.
type slot struct {
	Cell
	queued bool
}

// pending is where the mapping of a found pair stands: at the first of its cells
// that has not come yet. cell is what the pair is worth in each of its cells.
type pending struct {
	mapping mapping
	cell    Cell
	next    int32 // the next pair at the same place of the agenda
}

// work counts what a Decoder has done. Whatever n cells a peer sends, Updates is
// the number of cells that the found pairs, at most n, belong to; Tests and
// Lookups are at most n + Updates, and Moves at most 3·n + Updates.
type work struct {
	Tests   int // cells tested for being pure or poisoned
	Lookups int // indices looked up
	Updates int // cells that a found pair was taken out of
	Moves   int // steps of the bookkeeping of mappings
}

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
	return &Decoder{words: w, local: local, lookup: lookup, agenda: agenda{far: none}, known: newIndexSet()}
}

// AddCells takes the next cells of the peer's sequence, subtracts ours, and
// peels as far as possible. Errors come from the Source or the Lookup, or are
// ErrCell or ErrForged; after one, the Decoder takes no more cells.
func (d *Decoder) AddCells(theirs []Cell) error {
	if d.err == nil {
		d.err = d.take(theirs)
	}
	if d.err == nil {
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
	for i := range theirs {
		if !theirs[i].inRange() {
			return fmt.Errorf("take cell %d: a field is out of range: %w", from+i, ErrCell)
		}
		s := slot{Cell: theirs[i]}
		s.sub(&ours[i])
		d.seen.add(from+i, s.IsZero())
		if !s.IsZero() {
			d.nonzero++
		}
		d.cells = append(d.cells, s)
	}
	d.resume(from, to)
	for i := from; i < to; i++ {
		d.enqueue(int32(i))
	}
	return nil
}

// resume takes the pairs found so far out of the new cells [from, to).
func (d *Decoder) resume(from, to int) {
	d.work.Moves += d.agenda.grow(to, d.mappings)
	for i := from; i < to; i++ {
		for at := d.agenda.take(i); at != none; {
			p := &d.mappings[at]
			next := p.next
			d.subtract(&p.mapping, &p.cell)
			d.work.Moves += d.agenda.put(at, d.mappings)
			at = next
		}
	}
}

// subtract takes cell out of the cells of a mapping, as far as they have come.
func (d *Decoder) subtract(m *mapping, cell *Cell) {
	end := uint64(len(d.cells))
	var cells [batch]uint32
	for m.at < end {
		n := m.fill(d.words.tables, cells[:], end)
		d.work.Updates += n
		for _, at := range cells[:n] {
			s := &d.cells[at]
			if s.IsZero() {
				d.nonzero++
			}
			s.sub(cell)
			if s.IsZero() {
				d.nonzero--
			}
			d.enqueue(int32(at))
		}
	}
}

// enqueue puts a cell that has changed into the queue if it may hold one pair
// only.
func (d *Decoder) enqueue(at int32) {
	s := &d.cells[at]
	if !s.queued && (s.Count+1)&countMask <= 2 && s.S1 != 0 && s.S2 != 0 {
		s.queued = true
		d.queue = append(d.queue, at)
	}
}

// Done reports whether the cells so far are explained in full: at least one
// has come, and all are zero after peeling.
func (d *Decoder) Done() bool { return len(d.cells) > 0 && d.nonzero == 0 && d.err == nil }

// Cells is the number of cells taken so far.
func (d *Decoder) Cells() int { return len(d.cells) }

// Differences returns what was found so far, in the order of finding. The
// slice is the Decoder's: it is valid until the next AddCells and must not be
// changed.
func (d *Decoder) Differences() []Difference { return d.found }
