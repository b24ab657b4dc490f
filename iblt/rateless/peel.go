package rateless

import (
	"fmt"

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
	for len(d.queue) > 0 {
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
			if err := d.accept(&r.picks[i].cell, r.indices[i], r.sums[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect takes a copy of each queued cell that still may hold one pair only.
func (d *Decoder) collect() {
	r := &d.round
	r.picks, r.inverses = r.picks[:0], r.inverses[:0]
	for _, at := range r.queue {
		s := &d.cells[at]
		s.queued = false
		if (s.Count+1)&countMask > 2 || s.S1 == 0 || s.S2 == 0 {
			continue
		}
		r.picks = append(r.picks, pick{cell: s.Cell, at: at})
		r.inverses = append(r.inverses, s.S1)
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
	switch p.cell.Count {
	case 1:
		if d.words.hash(k, Checksum(p.cell.S1)) != p.cell.Check {
			return false
		}
	case countMask:
		if -d.words.hash(k, Checksum(keyhash.P-p.cell.S1))&checkMask != p.cell.Check {
			return false
		}
	}
	return d.words.belongs(k, uint64(p.at)) && !d.known.has(k)
}

// accept takes the pair with index k out of all cells if what we hold under k
// agrees with it. cell is the sum of what both sides hold under k: what the
// pair is worth in each of its cells.
func (d *Decoder) accept(cell *Cell, k Index, ours Checksum) error {
	difference := Difference{Index: k, Ours: ours}
	switch cell.Count {
	case 1:
		difference.Kind = MissingHere
		difference.Theirs = Checksum(cell.S1)
		if ours != 0 {
			return nil
		}
	case countMask:
		difference.Kind = MissingThere
		if ours != Checksum(keyhash.P-cell.S1) {
			return nil
		}
	default:
		difference.Kind = Mismatched
		theirs := Checksum(keyhash.Add(cell.S1, uint64(ours)))
		difference.Theirs = theirs
		if ours == 0 || theirs == 0 || (d.words.hash(k, theirs)-d.words.hash(k, ours))&checkMask != cell.Check {
			return nil
		}
	}
	if !d.known.add(k) {
		return nil // another cell of this round was solved to the same pair
	}
	if len(d.found) == len(d.cells) {
		return fmt.Errorf("peel %d cells: more pairs than cells: %w", len(d.cells), ErrForged)
	}
	d.found = append(d.found, difference)
	d.mappings = append(d.mappings, pending{mapping: d.words.start(k), cell: *cell})
	last := &d.mappings[len(d.mappings)-1]
	d.subtract(&last.mapping, cell)
	d.work.Moves += d.agenda.put(int32(len(d.mappings)-1), d.mappings)
	return nil
}
