package main

// cell is what is left of one: theirs − ours − found.
type cell struct {
	s1, s2 uint64
	count  int
}

// belief is what an index was accepted for: theirs is its checksum there, 0 if it
// is not held there.
type belief struct {
	theirs uint64
	cell   cell  // what was taken out of each of its cells
	home   int32 // the cell that told it
	again  bool  // there is an older belief, which cannot be taken back
}

// ban is a pair that was taken back, and may not come out of that cell again.
type ban struct {
	k, theirs uint64
	home      int32
}

type decoder struct {
	form
	w     *words
	local map[uint64]uint64
	gate  float64
	most  int // acts that a cell may bring

	cells   []cell
	nonzero int
	late    int // cells that are not zero in the later half
	queue   []int32
	queued  []bool
	waiting []int32 // cells that may hold too many
	isWait  []bool
	found   map[uint64]belief
	homes   map[int32]uint64
	bans    map[ban]bool
	out     bool // the bound was reached

	tests, accepts, undone, vetoed, walked int

	truth map[uint64]uint64 // to count what is accepted wrongly
	wrong int
}

func newDecoder(f form, w *words, local map[uint64]uint64, gate float64) *decoder {
	return &decoder{
		form: f, w: w, local: local, gate: gate, most: most,
		found: map[uint64]belief{}, homes: map[int32]uint64{}, bans: map[ban]bool{},
	}
}

// opening is how many cells must have come before the first is tested: one cell alone
// is taken for one pair by chance (2^−checkBits, if its count is 1), is zero
// then, and there is no other to contradict it. A Hello carries at least so many.
const opening = 12

// most is how many acceptances, vetoes and undoings a cell may bring: beyond it the
// decoder gives up, and the ranges decide.
const most = 4

func (d *decoder) mask() int { return 1<<countBits - 1 }

// take adds new cells, from which what was found is subtracted, and peels.
func (d *decoder) take(cells []cell) {
	from := len(d.cells)
	d.cells = append(d.cells, cells...)
	d.queued = append(d.queued, make([]bool, len(cells))...)
	d.isWait = append(d.isWait, make([]bool, len(cells))...)
	var room [64]int32
	for k, b := range d.found {
		for _, at := range d.w.cells(room[:0], k, len(d.cells)) {
			if int(at) >= from {
				d.change(at, b.cell, -1)
			}
		}
	}
	d.nonzero, d.late = 0, 0
	for i, c := range d.cells {
		if c != (cell{}) {
			d.nonzero++
			if i >= len(d.cells)/2 {
				d.late++
			}
		}
	}
	for i := from; i < len(d.cells); i++ {
		d.enqueue(int32(i))
	}
	if len(d.cells) >= opening {
		d.peel()
	}
}

// change adds a cell, or subtracts it.
func (d *decoder) change(at int32, by cell, sign int) {
	c := &d.cells[at]
	if sign < 0 {
		by = cell{d.neg(by.s1), d.neg(by.s2), -by.count}
	}
	c.s1, c.s2, c.count = d.add(c.s1, by.s1), d.add(c.s2, by.s2), (c.count+by.count)&d.mask()
}

// apply adds a cell to all cells of an index, or subtracts it.
func (d *decoder) apply(k uint64, by cell, sign int) {
	var room [64]int32
	for _, at := range d.w.cells(room[:0], k, len(d.cells)) {
		d.walked++
		was := d.cells[at] != (cell{})
		d.change(at, by, sign)
		is := d.cells[at] != (cell{})
		if was != is {
			n := 1
			if was {
				n = -1
			}
			d.nonzero += n
			if int(at) >= len(d.cells)/2 {
				d.late += n
			}
		}
		d.enqueue(at)
	}
}

func (d *decoder) single(c cell) bool {
	return (c.count+1)&d.mask() <= 2 && c.s1 != 0 && c.s2 != 0
}

func (d *decoder) enqueue(at int32) {
	if !d.queued[at] && d.single(d.cells[at]) {
		d.queued[at] = true
		d.queue = append(d.queue, at)
	}
}

func (d *decoder) peel() {
	for !d.out {
		for len(d.queue) > 0 && !d.out {
			at := d.queue[0]
			d.queue = d.queue[1:]
			d.queued[at] = false
			if d.single(d.cells[at]) {
				d.test(at)
			}
		}
		// Fewer may be left by now.
		left, kept := d.left(), d.waiting[:0]
		for _, at := range d.waiting {
			if density(int(at))*left <= d.gate {
				d.isWait[at] = false
				d.enqueue(at)
			} else {
				kept = append(kept, at)
			}
		}
		d.waiting = kept
		if len(d.queue) == 0 {
			return
		}
	}
}

// left is about how many differences are left, by how many of the later half of
// the cells are zero.
func (d *decoder) left() float64 { return leftBy(len(d.cells), d.late) }

func (d *decoder) now(k uint64) uint64 {
	if b, ok := d.found[k]; ok {
		return b.theirs
	}
	return d.local[k]
}

// test takes what a cell says, if it may be said.
func (d *decoder) test(at int32) {
	if density(int(at))*d.left() > d.gate {
		if !d.isWait[at] {
			d.isWait[at] = true
			d.waiting = append(d.waiting, at)
		}
		return
	}
	c := d.cells[at]
	d.tests++
	k := d.mul(c.s2, d.inverse(c.s1))
	mine, theirs := d.now(k), uint64(0)
	switch c.count {
	case 1:
		theirs = c.s1
		if mine != 0 || !d.fits(d.w, k, theirs) {
			return
		}
	case d.mask():
		if mine == 0 || mine != d.neg(c.s1) {
			return
		}
	default:
		theirs = d.add(mine, c.s1)
		if mine == 0 || !d.fits(d.w, k, theirs) {
			return
		}
	}
	if d.bans[ban{k, theirs, at}] || !d.w.belongs(k, int(at)) {
		return
	}
	old, again := d.found[k]
	if !again && !d.reconsider(k, at) {
		return
	}
	if d.out = d.accepts+d.vetoed+d.undone >= d.most*len(d.cells); d.out {
		return
	}
	d.accepts++
	if t, ok := d.truth[k]; ok && t != theirs || !ok && theirs != d.local[k] {
		d.wrong++
	}
	if again { // the new belief takes the place of the old one
		d.bans[ban{k, old.theirs, old.home}] = true
		delete(d.homes, old.home)
		d.undone++
	}
	b := belief{theirs: theirs, cell: c, home: at, again: again}
	if again {
		b.cell = cell{d.add(c.s1, old.cell.s1), d.add(c.s2, old.cell.s2), (c.count + old.cell.count) & d.mask()}
	}
	if b.cell == (cell{}) {
		delete(d.found, k)
	} else {
		d.found[k], d.homes[at] = b, k
	}
	d.apply(k, c, -1)
}

// reconsider reports whether index k may come out of cell at. A real pair belongs to
// no cell that is zero, but to one that is zero because of a wrong pair: if
// there is one such cell, and a pair came out of it, that pair is undone.
func (d *decoder) reconsider(k uint64, at int32) bool {
	var room [64]int32
	zeros, zero := 0, int32(0)
	for _, j := range d.w.cells(room[:0], k, len(d.cells)) {
		if d.cells[j] == (cell{}) {
			zeros, zero = zeros+1, j
		}
	}
	if zeros == 0 {
		return true
	}
	f, ok := d.homes[zero]
	if zeros > 1 || !ok || f == k {
		d.vetoed++
		d.out = d.accepts+d.vetoed+d.undone >= d.most*len(d.cells)
		return false
	}
	d.undone++
	b := d.found[f]
	d.bans[ban{f, b.theirs, b.home}] = true
	delete(d.found, f)
	delete(d.homes, zero)
	d.apply(f, b.cell, +1)
	d.enqueue(at)
	d.out = d.accepts+d.vetoed+d.undone >= d.most*len(d.cells)
	return false
}
