package main

import "math/rand/v2"

// world is a local set, whose checksums check themselves.
type world struct {
	form
	w     words
	local map[uint64]uint64
	r     *rand.Rand
}

func newWorld(f form, records int, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, uint64(f.bits)))
	o := &world{form: f, local: make(map[uint64]uint64, records), r: r}
	o.w.check = [3]uint64{r.Uint64() | 1<<63, r.Uint64() | 1<<63, r.Uint64()}
	for len(o.local) < records {
		k := 1 + r.Uint64N(f.p-1)
		o.local[k] = o.checksum(k)
	}
	return o
}

func (o *world) checksum(k uint64) uint64 {
	for {
		rest := o.r.Uint64N(o.p >> o.checkBits)
		if v := rest<<o.checkBits | o.ownCheck(&o.w, k, rest); v != 0 && v < o.p {
			return v
		}
	}
}

// outcome is what one decode came to.
type outcome struct {
	cells                    int
	stalled, false, bound    bool
	wrong                    int
	tests, undone, walk, act int
}

// decode makes d differences, changed of them changes and half of the others on each
// side, and decodes them. The world is as before afterwards.
func (o *world) decode(d, changed int, gate float64) outcome {
	o.w.randomMapping(o.r)
	m := d + d/2 + 1200
	cells := make([]cell, m)
	truth, added := make(map[uint64]uint64, d), []uint64(nil)
	var room [64]int32
	for len(truth) < d {
		k := 1 + o.r.Uint64N(o.p-1)
		if _, ok := truth[k]; ok || o.local[k] != 0 {
			continue
		}
		here, there := o.checksum(k), o.checksum(k)
		switch n := len(truth); {
		case n < changed:
			if here == there {
				continue
			}
		case n&1 == 0:
			here = 0
		default:
			there = 0
		}
		truth[k] = there
		by := cell{s1: o.add(there, o.neg(here))}
		by.s2 = o.mul(k, by.s1)
		if there != 0 {
			by.count++
		}
		if here != 0 {
			by.count--
			o.local[k] = here
			added = append(added, k)
		}
		for _, at := range o.w.cells(room[:0], k, m) {
			c := &cells[at]
			c.s1, c.s2, c.count = o.add(c.s1, by.s1), o.add(c.s2, by.s2), (c.count+by.count)&(1<<countBits-1)
		}
	}
	dec := newDecoder(o.form, &o.w, o.local, gate)
	dec.truth = truth
	for at := 0; at < m && !dec.out; {
		to := min(m, at+max(1, d/50))
		dec.take(cells[at:to])
		at = to
		if dec.nonzero == 0 {
			break
		}
	}
	u := outcome{
		cells: len(dec.cells), stalled: dec.nonzero != 0, bound: dec.out, wrong: dec.wrong, tests: dec.tests,
		undone: dec.undone, walk: dec.walked, act: dec.accepts + dec.vetoed + dec.undone,
	}
	if !u.stalled {
		u.false = len(dec.found) != len(truth)
		for k, theirs := range truth {
			if b, ok := dec.found[k]; !ok || b.theirs != theirs {
				u.false = true
			}
		}
	}
	for _, k := range added {
		delete(o.local, k)
	}
	return u
}
