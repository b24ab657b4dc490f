package rateless

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// belief is a difference that was found. What was put back is held no more: its two
// checksums are equal.
type belief struct {
	index        Index
	theirs, ours Checksum
	at           uint32 // the first of its cells that has not come yet
	home         int32  // the cell that it came out of
	next         int32  // the next at the same place of the agenda
}

func (b *belief) held() bool { return b.theirs != b.ours }

// worth is what the difference is worth in each of its cells.
func (b *belief) worth() (c Cell) {
	if b.theirs != 0 {
		c = cellOf(Pair{Index: b.index, Checksum: b.theirs})
	}
	if b.ours != 0 {
		ours := cellOf(Pair{Index: b.index, Checksum: b.ours})
		c.sub(&ours)
	}
	return c
}

func (b *belief) difference() Difference {
	d := Difference{Kind: Mismatched, Index: b.index, Theirs: b.theirs, Ours: b.ours}
	if b.ours == 0 {
		d.Kind = MissingHere
	} else if b.theirs == 0 {
		d.Kind = MissingThere
	}
	return d
}

// ban is a difference that was put back, and may not come out of that cell again.
type ban struct {
	index  Index
	theirs Checksum
	home   int32
}

// believed is the belief in index k, if one is held.
func (d *Decoder) believed(k Index) *belief {
	if at := d.known.get(k, d.found); at >= 0 && d.found[at].held() {
		return &d.found[at]
	}
	return nil
}

// accept takes the difference at index k out of all cells if cell at holds
// nothing else. What both sides now hold under k decides: what was found of
// theirs, or what we hold.
func (d *Decoder) accept(at int32, k Index, ours Checksum) error {
	c, now, old := d.cells[at].cell(), ours, d.believed(k)
	if old != nil {
		now = old.theirs
	}
	theirs, ok := theirsOf(&c, k, now)
	if !ok || len(d.bans) > 0 && d.bans[ban{k, theirs, at}] {
		return nil
	}
	if old != nil {
		return d.correct(old, theirs, at, &c)
	}
	m, cells := d.words.start(k), &d.places
	n := m.fill(d.words.tables, cells[:], uint64(len(d.cells)))
	if zeros, zero := d.zeros(cells[:n]); zeros > 0 {
		return d.doubt(at, zeros, zero, n)
	}
	if err := d.act(); err != nil {
		return err
	}
	if d.live == len(d.cells) {
		return fmt.Errorf("peel %d cells: more pairs than cells: %w", len(d.cells), ErrForged)
	}
	if len(d.found) == cap(d.found) {
		d.makeRoom()
	}
	number := int32(len(d.found))
	d.found = append(d.found, belief{index: k, theirs: theirs, ours: ours, at: uint32(m.at), home: at})
	d.known.set(number, d.found)
	d.live++
	d.homes[at] = number + 1
	d.subtract(cells[:n], &c)
	d.agenda.put(number, d.found)
	d.work.Moves++
	return nil
}

// makeRoom makes room for as many differences again, and for those that seem to be left.
// Growing by a quarter each time, as append does, took a third of a decode.
func (d *Decoder) makeRoom() {
	left := min(1.1*d.left(), float64(len(d.cells)))
	d.found = slices.Grow(d.found, max(len(d.found), int(left), MinCells))
	d.known.reserve(cap(d.found))
}

// degree has room for all cells of an index.
type degree [join + (lastEdge-joinEdge)/minStride + 2]uint32

// zeros tells how many of some cells are zero, and one that is.
func (d *Decoder) zeros(cells []uint32) (n int, zero int32) {
	for _, at := range cells {
		if d.cells[at].isZero() {
			n, zero = n+1, int32(at)
		}
	}
	return n, zero
}

// doubt is called where an index came out of cell at, but belongs to cells that are
// zero. A real difference belongs to no such cell, unless something wrong came out
// of one. If there is one such cell, the last pair that came out of it is put back,
// and may not come out of it again. Cell at is then tested again. If there are
// more, the index is refused.
func (d *Decoder) doubt(at int32, zeros int, zero int32, degree int) error {
	home := d.homes[zero] - 1
	if zeros > 1 || home < 0 || !d.found[home].held() || d.found[home].home != zero {
		d.work.Refused++
		d.work.Walked += degree
		return d.act()
	}
	d.putBack(&d.found[home])
	d.enqueue(at)
	return d.act()
}

// putBack adds a belief to its cells again, and bans it.
func (d *Decoder) putBack(b *belief) {
	d.ban(b)
	d.homes[b.home] = 0
	var term Cell
	worth := b.worth()
	term.sub(&worth)
	b.theirs = b.ours
	d.live--
	m, cells := d.words.start(b.index), &d.places
	n := m.fill(d.words.tables, cells[:], uint64(len(d.cells)))
	d.subtract(cells[:n], &term)
}

func (d *Decoder) ban(b *belief) {
	d.work.Undone++
	if d.bans == nil {
		d.bans = map[ban]bool{}
	}
	d.bans[ban{b.index, b.theirs, b.home}] = true
}

// correct puts another checksum in the place of what was believed of theirs.
func (d *Decoder) correct(b *belief, theirs Checksum, at int32, c *Cell) error {
	d.work.Acts++ // the old belief is put back
	if err := d.act(); err != nil {
		return err
	}
	d.ban(b)
	d.homes[b.home] = 0
	b.theirs, b.home = theirs, at
	if b.held() {
		d.homes[at] = d.known.get(b.index, d.found) + 1
	} else { // theirs is what we hold
		d.live--
	}
	m, cells := d.words.start(b.index), &d.places
	n := m.fill(d.words.tables, cells[:], uint64(len(d.cells)))
	d.subtract(cells[:n], c)
	return nil
}

// act counts an act, and ends the decode where there are too many.
func (d *Decoder) act() error {
	d.work.Acts++
	if d.work.Acts > actsACell*len(d.cells) {
		return fmt.Errorf("peel %d cells: %d pairs accepted, refused or put back: %w", len(d.cells), d.work.Acts, ErrForged)
	}
	return nil
}

// theirsOf is the peer's checksum under index k, if a cell holds the difference
// at k alone. By what is found, this side now holds the checksum now there.
func theirsOf(c *Cell, k Index, now Checksum) (theirs Checksum, ok bool) {
	switch c.Count {
	case 1:
		return Checksum(c.S1), now == 0
	case countMask:
		return 0, now != 0 && uint64(now) == keyhash.P-c.S1
	}
	theirs = Checksum(keyhash.Add(uint64(now), c.S1))
	return theirs, now != 0 && keyhash.Sealed(uint64(k), uint64(theirs))
}
