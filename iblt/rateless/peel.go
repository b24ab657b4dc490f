package rateless

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// round holds what one round of peeling works on; its slices are kept for the
// next.
type round struct {
	queue    []int32
	inverses []uint64
	scratch  []uint64
	picks    []pick
	indices  []Index
	sums     []Checksum
}

// pick is a cell as it was when it was tested.
type pick struct {
	cell Cell
	at   int32
}

// peel tests the queued cells in rounds, first come first served, until no cell is
// left. Testing the latest first would test more often and err more often.
func (d *Decoder) peel() error {
	for d.awake(); len(d.queue) > 0; d.awake() {
		r := &d.round
		d.queue, r.queue = r.queue[:0], d.queue
		d.collect()
		d.divide()
		if len(r.picks) == 0 {
			continue
		}
		if err := d.lookup(r.indices, r.sums); err != nil {
			return fmt.Errorf("peel: look up %d indices: %w", len(r.indices), err)
		}
		d.work.Lookups += len(r.indices)
		for i := range r.picks {
			p := &r.picks[i]
			if d.cells[p.at].cell() != p.cell {
				continue // what changed it has queued it again
			}
			if err := d.accept(p.at, r.indices[i], r.sums[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect takes a copy of each queued cell that still may hold one difference
// only and is sparse enough.
func (d *Decoder) collect() {
	r := &d.round
	r.picks, r.inverses = slices.Grow(r.picks[:0], len(r.queue)), slices.Grow(r.inverses[:0], len(r.queue))
	first := d.firstSparse()
	for _, at := range r.queue {
		s := &d.cells[at]
		s.first &^= queued
		if !s.single() {
			continue
		}
		if at < first {
			if s.first&waits == 0 {
				s.first |= waits
				d.waiting.push(at)
			}
			continue
		}
		r.picks = append(r.picks, pick{cell: s.cell(), at: at})
		r.inverses = append(r.inverses, s.first&sumMask)
	}
	d.work.Tests += len(r.picks)
}

// divide computes k = s2/s1 for each pick and keeps those that pass all tests
// that need no look-up.
func (d *Decoder) divide() {
	r := &d.round
	if cap(r.scratch) < len(r.inverses) {
		r.scratch = make([]uint64, 2*len(r.inverses))
	}
	keyhash.InvAll(r.inverses, r.scratch[:len(r.inverses)])
	kept := r.picks[:0]
	r.indices, r.sums = r.indices[:0], r.sums[:0]
	for i := range r.picks {
		p := r.picks[i]
		k := Index(keyhash.Mul(p.cell.S2, r.inverses[i]))
		if !d.plausible(&p, k) {
			continue
		}
		kept = append(kept, p)
		r.indices = append(r.indices, k)
		r.sums = append(r.sums, 0)
	}
	r.picks = kept
}

// plausible reports whether a cell may hold index k alone.
func (d *Decoder) plausible(p *pick, k Index) bool {
	if p.cell.Count == 1 && !keyhash.Sealed(uint64(k), p.cell.S1) {
		return false
	}
	return d.words.belongs(k, uint64(p.at))
}

// none ends the lists of an agenda.
const none = -1

// agenda keeps the found pairs by the next cell that they belong to. A new cell
// then costs no more than the pairs in it. Cells up to a horizon have a list
// each. Pairs that go beyond it are in one list, which is sorted in when the
// horizon has doubled. That is a step or two for each pair, where a heap needs
// a logarithm.
type agenda struct {
	heads []int32 // first pair of each cell below the horizon
	far   int32   // first of the pairs beyond it
}

// grow moves the horizon to at least n and returns the steps it took.
func (a *agenda) grow(n int, found []belief) int {
	if n <= len(a.heads) {
		return 0
	}
	old := len(a.heads)
	a.heads = append(a.heads, make([]int32, max(n, 2*old)-old)...)
	for i := old; i < len(a.heads); i++ {
		a.heads[i] = none
	}
	steps := 0
	at := a.far
	a.far = none
	for at != none {
		next := found[at].next
		a.put(at, found)
		steps++
		at = next
	}
	return steps
}

// put enters pair at under its mapping's cell, unless it was put back.
func (a *agenda) put(at int32, found []belief) {
	if !found[at].held() {
		return
	}
	head := &a.far
	if cell := int(found[at].at); cell < len(a.heads) {
		head = &a.heads[cell]
	}
	found[at].next, *head = *head, at
}

// take empties the list of a cell and returns its first pair.
func (a *agenda) take(cell int) int32 {
	head := a.heads[cell]
	a.heads[cell] = none
	return head
}
