package main

import (
	"math/rand/v2"

	"github.com/syncd-io/syncd/iblt"
)

// setting is an experiment of the paper: what is put into which table.
type setting struct {
	keys, cells int
	faults      bool // each key is a duplicate, and a deletion, with probability 1/5
	multi       int  // keys that have two values
	lost        int  // subtables that are lost before reading
	gets        bool // look each valid key up
}

// hashes is what all of the paper's experiments use.
const hashes = 5

// The lowest bits of a key tell what was done with it. A listing can then be
// checked without a second table of what went in.
const (
	deletedBit = 1 << iota
	twiceBit
	faultBits = deletedBit | twiceBit
)

// outcome is what was seen in a number of trials. Adding is all that is done
// with it, so that the order of trials does not matter.
type outcome struct {
	trials     int
	valid      int    // keys with one value, over all trials
	recovered  int    // of these, listed
	left       [5]int // trials with so many valid keys not listed; the last is 4 or more
	found      int    // valid keys that a look-up found
	foundSq    int    // the sum of the squares, a trial each
	missSquare int    // the sum of squares of the keys not listed
	wrong      int    // answers that are not what was put in: must stay zero
}

func (o *outcome) add(p outcome) {
	o.trials += p.trials
	o.valid += p.valid
	o.recovered += p.recovered
	for i := range o.left {
		o.left[i] += p.left[i]
	}
	o.found += p.found
	o.foundSq += p.foundSq
	o.missSquare += p.missSquare
	o.wrong += p.wrong
}

// incomplete is the number of trials in which a valid key was not listed.
func (o *outcome) incomplete() int { return o.trials - o.left[0] }

// valueOf is the value of a valid key: any function that is not linear will do.
func valueOf(x uint64) uint64 { return x*x + x>>7 }

// draw returns a key with what is done with it.
func (s *setting) draw(r *rand.Rand) uint64 {
	x := r.Uint64() &^ faultBits
	if s.faults {
		if r.IntN(5) == 0 {
			x |= deletedBit
		}
		if r.IntN(5) == 0 {
			x |= twiceBit
		}
	}
	return x
}

// trial fills the table with what the source draws, and reads it. The table
// is empty before and after.
func (s *setting) trial(t *iblt.Table, seed, number uint64) outcome {
	r := rand.New(rand.NewPCG(seed, number))
	for i := range s.keys {
		x := s.draw(r)
		switch y := valueOf(x); {
		case i < s.multi:
			t.Insert(x, y+1)
			t.Insert(x, y+3)
		case x&deletedBit != 0:
			t.Delete(x, y)
			if x&twiceBit != 0 {
				t.Delete(x, y)
			}
		default:
			t.Insert(x, y)
			if x&twiceBit != 0 {
				t.Insert(x, y)
			}
		}
	}
	for i := range s.lost {
		if err := t.Lose(i); err != nil {
			panic(err) // a setting that loses all subtables
		}
	}
	o := outcome{trials: 1, valid: s.keys - s.multi}
	if s.gets {
		s.lookUp(t, rand.New(rand.NewPCG(seed, number)), &o)
	}
	all := t.Drain()
	for _, e := range all.Inserted {
		o.count(e, 0)
	}
	for _, e := range all.Deleted {
		o.count(e, deletedBit)
	}
	missing := o.valid - o.recovered
	o.left[min(max(missing, 0), len(o.left)-1)]++
	o.missSquare = missing * missing
	t.Reset()
	return o
}

// lookUp draws the keys again and looks the valid ones up.
func (s *setting) lookUp(t *iblt.Table, r *rand.Rand, o *outcome) {
	for i := range s.keys {
		x := s.draw(r)
		if i < s.multi {
			continue
		}
		y, answer := t.Get(x)
		switch {
		case answer == iblt.Found && y == valueOf(x):
			o.found++
		case answer != iblt.Unknown:
			o.wrong++
		}
	}
	o.foundSq = o.found * o.found
}

// count checks an entry of a listing.
func (o *outcome) count(e iblt.Entry, deleted uint64) {
	times := 1
	if e.Key&twiceBit != 0 {
		times = 2
	}
	if e.Value == valueOf(e.Key) && e.Count == times && e.Key&deletedBit == deleted {
		o.recovered++
	} else {
		o.wrong++
	}
}
