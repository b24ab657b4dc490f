package ribbon

import (
	"cmp"
	"slices"
)

const (
	// longestCodeword is the most bits of a codeword. Frequencies of which the
	// sum is below 9·10^6 (a Fibonacci number) never lead to a longer one.
	longestCodeword = 32

	// mostSymbols bounds the values of a code, of which each takes 16 bytes and more.
	mostSymbols = 1 << 20
)

// code is a canonical Huffman code: frequent values have short codewords, and no
// codeword begins another one. The lengths alone describe it, as codewords count
// upwards in the order of length, then value (Schwartz and Kallick, "Generating a
// canonical prefix encoding", 1964).
type code struct {
	symbols []uint64                    // values, in the order of their codewords
	counts  [longestCodeword + 1]uint64 // codewords of each length; Σ counts[l]·2^-l is 1, or there are no symbols
}

// newCode returns the code for values of the given frequencies, which are positive and sum
// to less than 2^63. Of a single value the codeword has no bits. Where Huffman's codewords
// are longer than 32 bits, frequencies are halved until they fit. The result is not the
// best such code, but only values that occur once in millions have other codewords.
func newCode(frequencies map[uint64]uint64) *code {
	tree := make([]node, 0, 2*len(frequencies))
	for value, f := range frequencies {
		tree = append(tree, node{weight: f, value: value})
	}
	n := len(tree)
	for {
		if tree = join(tree[:n]); n == 0 || depths(tree) <= longestCodeword {
			break
		}
		for i := range n {
			tree[i].weight = tree[i].weight/2 + 1
		}
	}
	leaves := tree[:n]
	slices.SortFunc(leaves, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.value, b.value))
	})
	c := &code{symbols: make([]uint64, n)}
	for i, l := range leaves {
		c.symbols[i] = l.value
		c.counts[l.depth]++
	}
	return c
}

// node is a node of a Huffman tree. Parents come behind their children.
type node struct {
	weight, value uint64
	parent, depth int
}

// join makes the tree over its leaves, the root last. Sorted leaves are one queue, and the
// nodes over them, which are made in the order of their weights, are another. The lightest
// two nodes are at the heads of these; of equal weights the older is taken.
func join(tree []node) []node {
	n := len(tree)
	// The map has no order: equal frequencies must not depend on it.
	slices.SortFunc(tree, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.value, b.value))
	})
	leaf, inner := 0, n
	lightest := func() int {
		if leaf < n && (inner == len(tree) || tree[leaf].weight <= tree[inner].weight) {
			leaf++
			return leaf - 1
		}
		inner++
		return inner - 1
	}
	for range n - 1 {
		a, b := lightest(), lightest()
		tree[a].parent, tree[b].parent = len(tree), len(tree)
		tree = append(tree, node{weight: tree[a].weight + tree[b].weight})
	}
	return tree
}

// depths sets the depth of each node, and returns the greatest.
func depths(tree []node) (deepest int) {
	tree[len(tree)-1].depth = 0
	for i := len(tree) - 2; i >= 0; i-- {
		tree[i].depth = tree[tree[i].parent].depth + 1
		deepest = max(deepest, tree[i].depth)
	}
	return deepest
}

// codeword is the bits of a value, the first one highest.
type codeword struct {
	bits   uint32
	length uint8
}

// codewords returns the codeword of each symbol.
func (c *code) codewords() []codeword {
	words := make([]codeword, 0, len(c.symbols))
	next := uint64(0)
	for length, count := range c.counts {
		next <<= 1
		for range count {
			words = append(words, codeword{uint32(next), uint8(length)})
			next++
		}
	}
	return words
}

// decoder follows codewords bit by bit: of those of length bits, the first is
// first, and stands for symbol index.
type decoder struct {
	length       int
	first, index uint64
}

// symbol returns the symbol of the bits read so far, if they are a codeword.
// All codewords of fewer bits are below first, as the bits of others are not.
func (d *decoder) symbol(c *code, bits uint64) (value uint64, ok bool) {
	if i := bits - d.first; i < c.counts[d.length] {
		return c.symbols[d.index+i], true
	}
	return 0, false
}

// longer goes on to codewords of one bit more.
func (d *decoder) longer(c *code) {
	count := c.counts[d.length]
	d.index += count
	d.first = (d.first + count) << 1
	d.length++
}

// bounds are the lengths of the shortest and the longest codeword.
func (c *code) bounds() (shortest, longest uint64) {
	shortest = longestCodeword
	for length, count := range c.counts {
		if count > 0 {
			shortest, longest = min(shortest, uint64(length)), uint64(length)
		}
	}
	return min(shortest, longest), longest
}

// whole says whether the codewords leave no string of bits without a meaning:
// Kraft's inequality is an equality.
func (c *code) whole() bool {
	sum := uint64(0)
	for length, count := range c.counts {
		sum += count << (longestCodeword - length) // count ≤ mostSymbols: no overflow
	}
	return sum == 1<<longestCodeword
}
