package main

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHostile: whatever the cells are, acts stay below their multiple of the cells and
// tests below cells and cells that were walked, and a decode ends.
func TestHostile(t *testing.T) {
	o := newWorld(newForm(42, 8), 2000, 5)
	held := make([]uint64, 0, len(o.local))
	for k := range o.local {
		held = append(held, k)
	}
	slices.Sort(held)
	o.w.randomMapping(o.r)
	r := rand.New(rand.NewPCG(5, 6))
	out := 0
	for i := range 3000 {
		cells := make([]cell, 12+r.IntN(150))
		for j := range cells {
			switch i % 4 {
			case 0: // noise
				cells[j] = cell{r.Uint64N(o.p), r.Uint64N(o.p), r.IntN(16)}
			case 1: // each cell is a pair that belongs to it, and to no other
				k, v := o.pairOf(r, j)
				cells[j] = cell{v, o.mul(k, v), 1}
			case 2: // a change of a record that is held
				k := held[r.IntN(len(held))]
				for range 3 * (j + 1) {
					if k = held[r.IntN(len(held))]; o.w.belongs(k, j) {
						break
					}
				}
				v := o.add(o.checksum(k), o.neg(o.local[k]))
				cells[j] = cell{v, o.mul(k, v), 0}
			case 3: // one index in all cells, each time with another checksum
				k, _ := o.pairOf(r, j)
				if j > 0 && r.IntN(2) == 0 {
					k = held[j%3]
				}
				v := o.checksum(k)
				cells[j] = cell{v, o.mul(k, v), []int{0, 1, 15}[r.IntN(3)]}
			}
		}
		d := newDecoder(o.form, &o.w, o.local, 4)
		for at := 0; at < len(cells) && !d.out; {
			to := min(len(cells), max(12, at+1+r.IntN(20)))
			d.take(cells[at:to])
			at = to
		}
		acts := d.accepts + d.vetoed + d.undone
		if acts > most*len(d.cells)+2 {
			t.Fatalf("stream %d: %d acts with %d cells", i, acts, len(d.cells))
		}
		if d.tests > len(d.cells)+d.walked+d.undone {
			t.Fatalf("stream %d: %d tests with %d cells, %d walked, %d undone", i, d.tests, len(d.cells), d.walked, d.undone)
		}
		if d.out {
			out++
		}
	}
	t.Logf("%d of 3000 at the bound", out)
}

// pairOf is a pair of an index that belongs to cell j.
func (o *world) pairOf(r *rand.Rand, j int) (k, v uint64) {
	for {
		if k = 1 + r.Uint64N(o.p-1); o.w.belongs(k, j) {
			return k, o.checksum(k)
		}
	}
}
