package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// blocks is the family of the shipped law. Each of the cells 1 to 63 holds an
// index by itself with a probability of its own, that of the step law with one
// of two exponents; and from cell 64 on an index belongs to one cell in each
// block of a geometric sequence.
type blocks struct {
	turn          int     // dense below this cell, sparse from there on
	dense, sparse float64 // exponents
	classes       []class
	opening       [join]uint64   // probabilities in 256ths
	masks         [digits]uint64 // a digit of all of them in each, the lowest first
	strides       [whole]int     // of the classes, as often as they have shares
}

// class is a part of all indices, in 256ths, with the length of its blocks in
// 64ths of an octave.
type class struct{ share, stride int }

const (
	join   = 64  // the first cell of the blocks
	whole  = 256 // of shares and probabilities
	digits = 8
	octave = 64         // edges between a cell and that of the double number
	joint  = 6 * octave // the number of the edge at cell join
)

// edges are the cells where blocks may begin and end.
var edges = func() (e [36 * octave]float64) {
	for n := range e {
		e[n] = math.Floor(math.Exp2(float64(n) / octave))
	}
	return e
}()

func newBlocks(turn int, dense, sparse float64, classes []class) *blocks {
	b := &blocks{turn: turn, dense: dense, sparse: sparse, classes: classes}
	for j := 1; j < join; j++ {
		alpha := sparse
		if j < turn {
			alpha = dense
		}
		b.opening[j] = uint64(math.Round(whole * visiting(alpha, j)))
		for i := range b.masks {
			b.masks[i] |= b.opening[j] >> i & 1 << j
		}
	}
	strides := b.strides[:0]
	for _, c := range classes {
		strides = append(strides, slices.Repeat([]int{c.stride}, c.share)...)
	}
	return b
}

// String writes what parseLaw reads.
func (b *blocks) String() string {
	var classes []string
	for _, c := range b.classes {
		classes = append(classes, fmt.Sprintf("%d:%d", c.share, c.stride))
	}
	return fmt.Sprintf("%d|%g,%g|%s", b.turn, b.dense, b.sparse, strings.Join(classes, ","))
}

func (b *blocks) cells(dst []int32, trial uint64, k, limit int) []int32 {
	random := stream(seedOf(trial, uint64(k)))
	word := uint64(0)
	for _, mask := range b.masks { // bit j compares a random number with opening[j], digit by digit
		r := random.next()
		word = word&r | mask&(word|r)
	}
	dst = append(dst, 0)
	for j := 1; j < min(join, limit); j++ {
		if word>>j&1 == 1 {
			dst = append(dst, int32(j))
		}
	}
	u := random.next()
	stride := b.strides[u>>56]
	for n := joint - int(u&0xffffffff*uint64(stride)>>32); edges[n] < float64(limit); n += stride {
		low, high := edges[n], edges[n+stride]
		at := int(low + math.Floor((1-random.unit())*(high-low)))
		if at >= join && at < limit {
			dst = append(dst, int32(at))
		}
	}
	return dst
}

// held averages over the classes, and over the blocks that a cell may lie in.
func (b *blocks) held(j int) (p float64) {
	if j < join {
		return float64(b.opening[j]) / whole
	}
	last := 0 // the edge at or before j
	for edges[last+1] <= float64(j) {
		last++
	}
	for _, c := range b.classes {
		for n := last - c.stride + 1; n <= last; n++ {
			p += float64(c.share) / whole / float64(c.stride) / (edges[n+c.stride] - edges[n])
		}
	}
	return p
}

// alike is exact: cells below join are independent of one another.
func (b *blocks) alike(n int) float64 {
	product := 1.0
	for j := 1; j < min(n, join); j++ {
		p := b.held(j)
		product *= p*p + (1-p)*(1-p)
	}
	return product
}
