package main

import (
	"math/bits"
	"math/rand/v2"
)

// join is where the opening ends and the blocks begin.
const join = 64

// ends is where all cells end.
const ends = 1<<31 - 1

// words key the mapping and the check.
type words struct {
	mapping [4]uint64
	check   [3]uint64
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (w *words) seed(k uint64) uint64 {
	return fold(fold(k^w.mapping[0], w.mapping[1])^w.mapping[2], w.mapping[3])
}

// randomMapping replaces the words of the mapping.
func (w *words) randomMapping(r *rand.Rand) {
	w.mapping = [4]uint64{r.Uint64() | 1<<63, r.Uint64() | 1, r.Uint64(), r.Uint64() | 1}
}

func word(seed uint64, number int) uint64 {
	s := seed + uint64(number)*0xa0761d6478bd642f
	return fold(s, s^0xe7037ed1a0b428db)
}

// openings are the probabilities of the cells below join, in 256ths.
var openings = [join]uint8{
	255, 168, 131, 107, 90, 78, 69, 61, 55, 51, 46, 43, 40, 37, 35, 33,
	31, 30, 28, 27, 20, 19, 19, 18, 17, 17, 16, 15, 15, 14, 14, 13,
	13, 13, 12, 12, 12, 11, 11, 11, 11, 10, 10, 10, 10, 9, 9, 9,
	9, 9, 9, 8, 8, 8, 8, 8, 8, 8, 7, 7, 7, 7, 7, 7,
}

var classes = [...]struct {
	below  uint64
	stride int
}{{33, 9}, {83, 32}, {189, 67}, {256, 185}}

// density is the probability that an index belongs to cell j.
func density(j int) float64 {
	if j == 0 {
		return 1
	}
	if j < join {
		return float64(openings[j]) / 256
	}
	return 2.587 / float64(j)
}

var masks, edges = tables()

func tables() (masks [8]uint64, edges [1985]uint64) {
	for j, p := range openings {
		for i := range masks {
			masks[i] |= uint64(p) >> i & 1 << j
		}
	}
	for n := range edges {
		edges[n] = edge(n)
	}
	return masks, edges
}

// cells appends the cells of index k below end, in order.
func (w *words) cells(to []int32, k uint64, end int) []int32 {
	seed := w.seed(k)
	o := uint64(0)
	for i, m := range masks {
		u := word(seed, 1+i)
		o = o&u | m&(o|u)
	}
	for o |= 1; o != 0; o &= o - 1 {
		if j := bits.TrailingZeros64(o); j < end {
			to = append(to, int32(j))
		}
	}
	stride := 0
	for _, c := range classes {
		if seed>>56 < c.below {
			stride = c.stride
			break
		}
	}
	first := 384 - int((seed&(1<<32-1))*uint64(stride)>>32)
	for b := 0; ; b++ {
		from := first + b*stride
		if from >= len(edges)-1 || edges[from] >= uint64(end) {
			return to
		}
		low, high := edges[from], edges[min(from+stride, len(edges)-1)]
		at := low + (word(seed, 9+b)>>32)*(high-low)>>32
		if at >= join && at < uint64(end) && at < ends {
			to = append(to, int32(at))
		}
	}
}

// belongs reports whether index k belongs to cell j.
func (w *words) belongs(k uint64, j int) bool {
	var room [64]int32
	for _, at := range w.cells(room[:0], k, j+1) {
		if int(at) == j {
			return true
		}
	}
	return false
}
