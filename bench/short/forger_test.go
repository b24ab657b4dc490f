package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// forger makes the cells of a peer that knows the key, the local set and the decoder,
// and wants it to work: of some values for the next cell it sends the one that
// costs most.
type forger struct {
	o    *world
	r    *rand.Rand
	held []uint64
}

// TestForger: cells that are chosen one by one for what they cost stay within the bound,
// and a decoder with a lower bound stops at it.
func TestForger(t *testing.T) {
	const seed = 7
	o := newWorld(newForm(42, 8), 2000, seed)
	f := &forger{o: o, r: rand.New(rand.NewPCG(seed, 6)), held: slices.Sorted(maps.Keys(o.local))}
	greatest, stopped := 0.0, 0
	for i := range 60 {
		o.w.randomMapping(f.r)
		d := newDecoder(o.form, &o.w, o.local, 4)
		if i%2 == 1 {
			d.most = 1
		}
		for len(d.cells) < 70 && !d.out {
			d = f.next(d)
		}
		acts := d.accepts + d.vetoed + d.undone
		if acts > d.most*len(d.cells)+2 {
			t.Fatalf("stream %d: %d acts with %d cells, seed %d", i, acts, len(d.cells), seed)
		}
		if d.tests > len(d.cells)+d.walked+d.undone {
			t.Fatalf("stream %d: %d tests with %d cells, %d walked, %d undone, seed %d", i, d.tests, len(d.cells), d.walked, d.undone, seed)
		}
		if d.most == most {
			greatest = max(greatest, float64(acts)/float64(len(d.cells)))
		} else if d.out {
			stopped++
		}
	}
	if stopped == 0 {
		t.Errorf("no stream reached a bound of one act a cell, seed %d", seed)
	}
	t.Logf("acts a cell at most %.2f; %d of 30 reached a bound of 1", greatest, stopped)
}

// next is the decoder after the costliest of some next cells; at times after
// another one, which may cost more later.
func (f *forger) next(d *decoder) *decoder {
	var best *decoder
	cost := -1
	for range 24 {
		left := f.left(d)
		if f.r.IntN(3) == 0 {
			other := f.left(d)
			left = cell{f.o.add(left.s1, other.s1), f.o.add(left.s2, other.s2), (left.count + other.count) & d.mask()}
		}
		after := d.clone()
		after.take([]cell{f.sent(d, left)})
		if acts := after.accepts + after.vetoed + after.undone; acts > cost {
			best, cost = after, acts
		}
		if f.r.IntN(60) == 0 {
			return after
		}
	}
	return best
}

// left is what the decoder is to find in its next cell.
func (f *forger) left(d *decoder) cell {
	j, sign := len(d.cells), 1
	var k, v uint64
	switch kind := f.r.IntN(5); {
	case kind == 0:
		return cell{}
	case kind == 1 && len(d.found) > 0: // what was found has another checksum
		all := slices.Sorted(maps.Keys(d.found))
		k = all[f.r.IntN(len(all))]
		for range 20 {
			if d.w.belongs(k, j) {
				break
			}
			k = all[f.r.IntN(len(all))]
		}
		v, sign = f.o.add(f.o.checksum(k), f.o.neg(d.now(k))), 0
		if d.now(k) == 0 {
			sign = 1
		}
	case kind <= 2: // a change
		k = f.held[f.r.IntN(len(f.held))]
		for range 4 * (j + 1) {
			if d.w.belongs(k, j) {
				break
			}
			k = f.held[f.r.IntN(len(f.held))]
		}
		v, sign = f.o.add(f.o.checksum(k), f.o.neg(d.now(k))), 0
	default: // a pair that contradicts one that was found
		for range 40 {
			k, v = f.o.pairOf(f.r, j)
			if f.contradicts(d, k) {
				break
			}
		}
	}
	return cell{v, f.o.mul(k, v), sign}
}

// contradicts reports whether an index belongs to one cell that is zero by a pair that
// was found.
func (f *forger) contradicts(d *decoder, k uint64) bool {
	zeros, told := 0, false
	for _, at := range d.w.cells(nil, k, len(d.cells)) {
		if d.cells[at] == (cell{}) {
			zeros++
			_, told = d.homes[at]
		}
	}
	return zeros == 1 && told
}

// sent is the cell in which the decoder finds left, once it has taken out what it
// has found.
func (f *forger) sent(d *decoder, left cell) cell {
	for k, b := range d.found {
		if d.w.belongs(k, len(d.cells)) {
			left = cell{f.o.add(left.s1, b.cell.s1), f.o.add(left.s2, b.cell.s2), (left.count + b.cell.count) & d.mask()}
		}
	}
	return left
}

func (d *decoder) clone() *decoder {
	c := *d
	c.cells, c.queue, c.queued = slices.Clone(d.cells), slices.Clone(d.queue), slices.Clone(d.queued)
	c.waiting, c.isWait = slices.Clone(d.waiting), slices.Clone(d.isWait)
	c.found, c.homes, c.bans = maps.Clone(d.found), maps.Clone(d.homes), maps.Clone(d.bans)
	return &c
}
