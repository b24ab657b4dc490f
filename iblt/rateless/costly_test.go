package rateless

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// costly makes the cells of a peer that knows the key, our pairs and the decoder, and
// wants it to work: of some values for the next cell it sends the one that brings the
// most acts.
type costly struct {
	*rand.Rand
	local map[Index]Checksum
	held  []Index
}

// TestCostliestCells: cells that are chosen one by one for the acts that they bring stay
// within the bounds, and a decoder that may act once a cell is stopped by them.
func TestCostliestCells(t *testing.T) {
	const seed = 7
	f := &costly{Rand: rand.New(rand.NewPCG(seed, 6)), local: map[Index]Checksum{}}
	for len(f.held) < 2000 {
		q := randomPair(f.Rand)
		f.local[q.Index], f.held = q.Checksum, append(f.held, q.Index)
	}
	greatest, stopped, undone := 0.0, 0, 0
	for i := range 40 * *trials {
		low := i%2 == 1 // a bound of one act a cell: 3 for each have been made beforehand
		d := NewSourceDecoder(Key{byte(i), byte(i >> 8)}, zeros{}, f.lookup)
		for len(d.cells) < 70 && d.err == nil {
			if low {
				d.work.Acts += actsACell - 1
			}
			d = f.next(d)
		}
		acts := d.work.Acts
		if low {
			acts -= (actsACell - 1) * len(d.cells)
		}
		if err := hostile(d); err != nil && !low {
			t.Fatalf("stream %d of seed %d: %v", i, seed, err)
		}
		undone += d.work.Undone
		if low && d.err != nil {
			stopped++
		} else if !low {
			greatest = max(greatest, float64(acts)/float64(len(d.cells)))
		}
	}
	t.Logf("%.2f acts a cell at most; %d of %d streams came to a bound of one act a cell; %d pairs put back", greatest, stopped, 20**trials, undone)
	if stopped == 0 || undone < 40 {
		t.Errorf("%d streams reached a bound of one act a cell, %d pairs were put back: the forger is too weak (seed %d)", stopped, undone, seed)
	}
}

func (f *costly) lookup(indices []Index, sums []Checksum) error {
	for i, k := range indices {
		sums[i] = f.local[k]
	}
	return nil
}

// next is the decoder after the costliest of some next cells; at times after another
// one, which may cost more later.
func (f *costly) next(d *Decoder) *Decoder {
	var best *Decoder
	for range 24 {
		left := f.left(d)
		if f.IntN(3) == 0 {
			other := f.left(d)
			left.add(&other)
		}
		after := cloneOf(d)
		_ = after.AddCells([]Cell{f.sent(d, left)}) // d.err has it
		if best == nil || after.work.Acts > best.work.Acts {
			best = after
		}
		if f.IntN(60) == 0 {
			return after
		}
	}
	return best
}

// left is what the decoder is to find in its next cell.
func (f *costly) left(d *Decoder) Cell {
	j := uint64(len(d.cells))
	change := func(k Index, now Checksum) Cell {
		c := cellOf(sealed(k, f.Uint64N(1<<34)))
		if now != 0 {
			old := cellOf(Pair{Index: k, Checksum: now})
			c.sub(&old)
		}
		return c
	}
	switch kind := f.IntN(5); {
	case kind == 0:
		return Cell{}
	case kind == 1 && d.live > 0: // what was found has another checksum
		found := d.Differences()
		b := found[f.IntN(len(found))]
		for range 20 {
			if d.words.belongs(b.Index, j) {
				break
			}
			b = found[f.IntN(len(found))]
		}
		return change(b.Index, b.Theirs)
	case kind <= 2:
		k := f.held[f.IntN(len(f.held))]
		for range 4 * (j + 1) {
			if d.words.belongs(k, j) {
				break
			}
			k = f.held[f.IntN(len(f.held))]
		}
		now := f.local[k]
		if b := d.believed(k); b != nil {
			now = b.theirs
		}
		return change(k, now)
	}
	for range 39 { // a pair that contradicts one that was found
		if c := forge(&d.words, f.Rand, int(j)); contradicts(d, &c) {
			return c
		}
	}
	return forge(&d.words, f.Rand, int(j))
}

// contradicts reports whether a pair belongs to one cell that is zero because of
// another that was found.
func contradicts(d *Decoder, c *Cell) bool {
	k := Index(keyhash.Mul(c.S2, keyhash.Inv(c.S1)))
	zeros, told := 0, false
	for _, at := range cellsOf(&d.words, k, uint64(len(d.cells))) {
		if d.cells[at].isZero() {
			zeros, told = zeros+1, d.homes[at] > 0
		}
	}
	return zeros == 1 && told
}

// sent is the cell in which the decoder finds left, once it has taken out what it has
// found.
func (f *costly) sent(d *Decoder, left Cell) Cell {
	for i := range d.found {
		if b := &d.found[i]; b.held() && d.words.belongs(b.index, uint64(len(d.cells))) {
			worth := b.worth()
			left.add(&worth)
		}
	}
	return left
}

// cloneOf is a decoder that goes on like d, and leaves it as it is.
func cloneOf(d *Decoder) *Decoder {
	c := *d
	c.cells, c.homes, c.queue, c.waiting = slices.Clone(d.cells), slices.Clone(d.homes), slices.Clone(d.queue), slices.Clone(d.waiting)
	c.found, c.bans, c.seen = slices.Clone(d.found), maps.Clone(d.bans), slices.Clone(d.seen)
	c.known.slots, c.agenda.heads = slices.Clone(d.known.slots), slices.Clone(d.agenda.heads)
	c.round = round{}
	return &c
}
