package rateless

import (
	"math/rand/v2"

	"github.com/syncd-io/syncd/internal/keyhash"
)

// forgerCells is the length of the longest stream that a forger makes.
const forgerCells = 4096

// forger makes cells as a peer can that knows the key and each of our pairs. What
// it makes is the difference theirs − ours that we shall see.
type forger struct {
	*rand.Rand
	words words
	ours  *Sketch
	local map[Index]Checksum
	fresh [][]Index // some that we do not hold, by the cells that they belong to
	held  [][]Pair  // our pairs, by the cells that they belong to
}

func newForger(r *rand.Rand, key Key, held int) *forger {
	f := &forger{Rand: r, words: expand(key), local: map[Index]Checksum{}, fresh: make([][]Index, forgerCells), held: make([][]Pair, forgerCells)}
	// Our cells as they come to be where a sketch has grown.
	tail := NewWindow(key, 1000, forgerCells)
	f.ours = NewSketch(key, 1000)
	for range held {
		q := randomPair(r)
		if f.local[q.Index] != 0 {
			continue
		}
		f.local[q.Index] = q.Checksum
		f.ours.Add(q)
		tail.Add(q)
		for _, at := range cellsOf(&f.words, q.Index, forgerCells) {
			f.held[at] = append(f.held[at], q)
		}
	}
	f.ours.Append(tail)
	for range 20_000 {
		k := randomIndex(r)
		for _, at := range cellsOf(&f.words, k, forgerCells) {
			if len(f.fresh[at]) < 32 {
				f.fresh[at] = append(f.fresh[at], k)
			}
		}
	}
	return f
}

func (f *forger) lookup(indices []Index, sums []Checksum) error {
	for i, k := range indices {
		sums[i] = f.local[k]
	}
	return nil
}

// pure is what a test of cell at accepts, and its index: a pair of any kind.
func (f *forger) pure(at int) (c Cell, k Index) {
	if own := f.held[at]; len(own) > 0 && f.IntN(2) == 0 {
		q := own[f.IntN(len(own))]
		if f.IntN(2) == 0 {
			c = cellOf(sealed(q.Index, f.Uint64N(1<<34)))
		}
		ours := cellOf(q)
		c.sub(&ours)
		return c, q.Index
	}
	k = randomIndex(f.Rand)
	if known := f.fresh[at]; len(known) > 0 {
		k = known[f.IntN(len(known))]
	}
	return cellOf(sealed(k, f.Uint64N(1<<34))), k
}

// times is c, added n times.
func times(c Cell, n uint64) Cell {
	return Cell{
		S1:    keyhash.Mul(c.S1, n),
		S2:    keyhash.Mul(c.S2, n),
		Count: uint8(uint64(c.Count)*n) & countMask,
	}
}

// insert adds c to those of the cells of index k that keep says.
func (f *forger) insert(cells []Cell, c *Cell, k Index, keep func(at int) bool) {
	for _, at := range cellsOf(&f.words, k, uint64(len(cells))) {
		if keep(int(at)) {
			cells[at].add(c)
		}
	}
}

// forgeries are ways to fill a stream.
var forgeries = []struct {
	name string
	fill func(f *forger, cells []Cell)
}{
	{"noise", func(f *forger, cells []Cell) {
		for i := range cells {
			cells[i] = Cell{S1: f.Uint64N(p), S2: f.Uint64N(p), Count: uint8(f.Uint32()) & countMask}
			if f.IntN(2) == 0 { // so that it is tested
				cells[i].Count = uint8(f.IntN(3)-1) & countMask
			}
		}
	}},
	{"a pair of its own in each cell", func(f *forger, cells []Cell) {
		for i := range cells {
			cells[i], _ = f.pure(i)
		}
	}},
	{"one pair in all cells", func(f *forger, cells []Cell) {
		c, _ := f.pure(f.IntN(len(cells)))
		for i := range cells {
			cells[i] = c
		}
	}},
	{"pairs in some of their cells, several times", func(f *forger, cells []Cell) {
		for range 1 + f.IntN(len(cells)) {
			c, k := f.pure(f.IntN(len(cells)))
			if f.IntN(2) == 0 {
				c = times(c, []uint64{2, 15, 16, 17, p - 1}[f.IntN(5)])
			}
			f.insert(cells, &c, k, func(int) bool { return f.IntN(4) > 0 })
		}
	}},
	// In some order of the cells, each holds a pair of its own and those of the
	// cells before, which are missing in the cells before theirs: each
	// recovery makes other cells look pure, and spoils those that were zero.
	{"a cascade", func(f *forger, cells []Cell) {
		order, place := f.Perm(len(cells)), make([]int, len(cells))
		for i, at := range order {
			place[at] = i
		}
		for i, at := range order {
			c, k := f.pure(at)
			f.insert(cells, &c, k, func(other int) bool { return place[other] >= i })
		}
	}},
	// What two recoveries leave in a cell names a third index, one that we hold:
	// −k·v + k′·v′ = k*·(v′ − v) is solved for v.
	{"what is left names another", func(f *forger, cells []Cell) {
		for i := range cells {
			own := f.held[i]
			if len(own) == 0 {
				cells[i], _ = f.pure(i)
				continue
			}
			_, k := f.pure(i)
			q, third := own[f.IntN(len(own))], own[f.IntN(len(own))]
			if k == q.Index || k == third.Index || q == third {
				continue
			}
			v := keyhash.Mul(uint64(q.Checksum), keyhash.Mul(
				keyhash.Sub(uint64(third.Index), uint64(q.Index)),
				keyhash.Inv(keyhash.Sub(uint64(third.Index), uint64(k)))))
			if v == 0 { // one in 256 is a checksum of k; the others are refused
				continue
			}
			a, b := cellOf(Pair{Index: k, Checksum: Checksum(v)}), cellOf(q)
			f.insert(cells, &a, k, func(at int) bool { return at != i })
			b = times(b, p-1)
			f.insert(cells, &b, q.Index, func(at int) bool { return at != i })
		}
	}},
	{"a difference, spoiled", func(f *forger, cells []Cell) {
		for range f.IntN(len(cells) + 1) {
			c, k := f.pure(f.IntN(len(cells)))
			f.insert(cells, &c, k, func(int) bool { return true })
		}
		for range f.IntN(3) {
			c, _ := f.pure(f.IntN(len(cells)))
			cells[f.IntN(len(cells))].add(&c)
		}
	}},
}

// stream is what the peer sends: our cells and a forged difference. Most are
// short, because a million of them are made.
func (f *forger) stream() (cells []Cell, forgery int) {
	n := 1 + f.IntN(48)
	switch f.IntN(1000) {
	case 0:
		n = 1 + f.IntN(forgerCells)
	case 1, 2, 3, 4, 5:
		n = 1 + f.IntN(500)
	}
	cells = make([]Cell, n)
	forgery = f.IntN(len(forgeries))
	forgeries[forgery].fill(f, cells)
	ours := f.ours.Prefix(n)
	for i := range cells {
		cells[i].add(&ours[i])
	}
	return cells, forgery
}
