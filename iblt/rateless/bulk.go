package rateless

import (
	"iter"
	"runtime"
	"sync"
)

// AddAll adds all pairs of a sequence on all processors, with the same result as
// an Add of each. The sequence may end in an error, as the scan of a store does;
// AddAll returns it, or ErrPair where Add would panic. The sketch then holds
// some of the pairs and is of no use. The sequence must not use the sketch. All
// goroutines that AddAll starts have ended when it returns.
//
// The calling goroutine reads the sequence. The first of the others adds to
// the sketch. While the sequence yields pairs faster than they are added,
// further ones start, up to GOMAXPROCS in all. Each has a sketch of its own,
// and these are added up at the end. Each has a sketch and not a range of the
// cells, because every pair is in the first cells. With ranges, each would
// repeat the work that belongs to no cell: the hash of the pair and its
// index's seed.
func (s *Sketch) AddAll(pairs iter.Seq2[Pair, error]) error {
	b := newBulk(s)
	if err := b.read(pairs); err != nil {
		return err
	}
	b.merge()
	return nil
}

// blockPairs is how many pairs are handed over at once. They are 16 KiB and
// some 0.2 ms of work, against which the cost of handing over is negligible.
// Fewer pairs start nothing.
const blockPairs = 1024

// bulkCells bounds the cells of all sketches that AddAll makes. 2^21 cells are
// 32 MiB, or 16 sketches of 2^17 cells.
const bulkCells = 1 << 21

// bulk is an AddAll that goes on.
type bulk struct {
	sketch *Sketch
	limit  int       // of parts
	parts  []*Sketch // one for each goroutine; the first is the sketch itself
	block  []Pair    // not yet handed over
	full   chan []Pair
	empty  chan []Pair // blocks to be filled again
	adding sync.WaitGroup
}

func newBulk(s *Sketch) *bulk {
	limit := min(runtime.GOMAXPROCS(0), 1+bulkCells/max(1, s.Len()))
	return &bulk{sketch: s, limit: limit, full: make(chan []Pair), empty: make(chan []Pair, limit)}
}

// read adds the pairs to the parts, but for the last block.
func (b *bulk) read(pairs iter.Seq2[Pair, error]) error {
	defer b.adding.Wait()
	defer close(b.full)
	for p, err := range pairs {
		if err == nil && !isPair(p) {
			err = notAPair(p)
		}
		if err != nil {
			return err
		}
		if len(b.block) == blockPairs {
			b.hand()
		}
		b.block = append(b.block, p)
	}
	return nil
}

// hand gives the block away and takes an empty one. There are never more than
// one block for each goroutine and this one, since full has no room.
func (b *bulk) hand() {
	select {
	case b.full <- b.block:
	default:
		if len(b.parts) < b.limit {
			b.start(b.block)
		} else {
			b.full <- b.block
		}
	}
	select {
	case b.block = <-b.empty:
	default:
		b.block = make([]Pair, 0, blockPairs)
	}
}

// start starts a goroutine that adds the block, and others that come, to a part
// of its own.
func (b *bulk) start(block []Pair) {
	part := b.sketch
	if len(b.parts) > 0 {
		part = part.blank()
	}
	b.parts = append(b.parts, part)
	b.adding.Go(func() {
		for open := true; open; block, open = <-b.full {
			for _, p := range block {
				part.add(p)
			}
			b.empty <- block[:0]
		}
	})
}

// merge adds to the sketch what is not in it yet.
func (b *bulk) merge() {
	for _, p := range b.block {
		b.sketch.add(p)
	}
	for _, part := range b.parts {
		if part != b.sketch {
			b.sketch.merge(part)
		}
	}
}

// blank returns a sketch of the same cells of the empty set.
func (s *Sketch) blank() *Sketch {
	blank := &Sketch{words: s.words, from: s.from, cells: sums{at: make([]sum, s.Len())}}
	if s.estimator != nil {
		blank.estimator = make(Estimator, EstimatorSize)
	}
	return blank
}

// merge adds the pairs of part, which has the same cells.
func (s *Sketch) merge(part *Sketch) {
	s.cells.term()
	for i := range part.cells.at {
		c := part.cells.at[i].cell()
		term := sumOf(&c)
		s.cells.at[i].add(&term)
	}
	for i, bits := range part.estimator {
		s.estimator[i] ^= bits
	}
}
