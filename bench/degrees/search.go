package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// aim is what a search looks at for one number of differences: their mean cells,
// and the mean of the worst twentieth, each with a weight.
type aim struct {
	differences, trials int
	mean, tail          float64
}

// aims cover the whole range: means where bytes are paid for, tails where a first
// message should suffice. A mean at 8,000 stands for all beyond.
var aims = []aim{
	{5, 1000, 0, .03},
	{10, 1000, .1, .05},
	{40, 600, .3, .2},
	{64, 300, .2, .2},
	{100, 250, .5, .1},
	{256, 100, .5, .2},
	{1000, 60, 1, .4},
	{8000, 6, 2, 0},
}

// pairPrice is what a further cell of each pair below 2^14 may cost in the units
// of the other figures: each lengthens an update by some 4 %.
const pairPrice = .006

// score is the lower the better; times multiplies the trials. Laws that get the
// same number get the same trials.
func (r *runner) score(law *blocks, number, times int) float64 {
	sum := 0.0
	s := &simulator{law: law}
	for _, a := range aims {
		cells := make([]int, r.times(a.trials*times))
		mean := 0.0
		for i := range cells {
			cells[i] = s.trial(a.differences, r.seedFor("search", number, i))
			mean += float64(cells[i])
		}
		slices.Sort(cells)
		worst, tail := cells[(len(cells)-1)*19/20:], 0.0
		for _, n := range worst {
			tail += float64(n)
		}
		sum += (a.mean*mean/float64(len(cells)) + a.tail*tail/float64(len(worst))) / float64(a.differences)
	}
	return sum + pairPrice*law.cellsBelow(1<<14)
}

// cellsBelow is the number of cells of a pair below limit.
func (b *blocks) cellsBelow(limit int) (n float64) {
	for j := 1; j < join; j++ {
		n += float64(b.opening[j]) / whole
	}
	for _, c := range b.classes {
		n += float64(c.share) / whole / float64(c.stride) * octave * math.Log2(float64(limit)/join)
	}
	return n
}

// search climbs from a law to better ones, by so many attempts. Each compares
// with the best so far in the same fresh trials, and if it seems better, in
// others, four times as many.
func (r *runner) search(best *blocks, attempts int) *blocks {
	random := rand.New(rand.NewPCG(r.seed, 1))
	for i := range attempts {
		try := best.neighbour(random)
		if r.score(try, 2*i, 1) < r.score(best, 2*i, 1) && r.score(try, 2*i+1, 4) < r.score(best, 2*i+1, 4) {
			best = try
			fmt.Fprintf(r.log, "attempt %d: %v, %.1f cells a pair\n", i, best, best.cellsBelow(1<<14))
		}
	}
	return best
}

// neighbour is a law with some of the numbers of b and some that differ a little.
func (b *blocks) neighbour(r *rand.Rand) *blocks {
	turn, dense, sparse, classes := b.turn, b.dense, b.sparse, slices.Clone(b.classes)
	factor := func(by float64) float64 { return math.Exp(by * r.NormFloat64()) }
	for range 1 + r.IntN(3) {
		c := r.IntN(len(classes))
		switch r.IntN(7) {
		case 0:
			turn = min(join, max(1, turn+r.IntN(9)-4))
		case 1:
			dense = math.Round(100*min(2, max(.05, dense*factor(.1)))) / 100
		case 2:
			sparse = math.Round(100*min(2, max(.05, sparse*factor(.1)))) / 100
		case 3, 4:
			other := r.IntN(len(classes))
			part := min(classes[c].share-1, 1+r.IntN(12))
			classes[c].share -= part
			classes[other].share += part
		default:
			classes[c].stride = min(joint, max(leastStride, int(math.Round(float64(classes[c].stride)*factor(.15)))))
		}
	}
	return newBlocks(turn, dense, sparse, classes)
}
