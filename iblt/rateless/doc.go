// Package rateless finds the difference between two sets of key→value records.
// Its cost follows the difference, not the sets. It is a rateless IBLT (Yang,
// Gilad, Alizadeh 2024) over pairs of index and checksum.
//
// # The idea
//
// A record is in its set as a [Pair]: the index k of its key, and a checksum v of
// its version and content. Both are numbers from 1 to p − 1 for the prime
// p = 2^42 − 11. The pairs of a set are added into the cells of an endless
// sequence. Each is in cell 0 and, by a keyed mapping, in some cells beyond. The
// further these are, the fewer of them.
//
// Take two sets of which one has changed k, and the other lacks l:
//
//	cell             0                     1            2         3 …
//	they hold        (k, a) (l, v) (m, x)  (k, a)       (l, v)    (k, a) (m, x)
//	we hold          (k, b)        (m, x)  (k, b)                 (k, b) (m, x)
//	theirs − ours    k and l: neither      k: poisoned  l: pure   k: poisoned
//	l taken out      k: poisoned           k: poisoned  zero      k: poisoned
//	k taken out      zero                  zero         zero      zero: done
//
// A [Cell] is three sums over its pairs: how many, Σ v and Σ k·v, in 11 bytes.
// When cells are subtracted, all that both sets hold cancels, as m does above.
// What is left are sums over the difference alone:
//
//	theirs − ours      count  s1      s2           what it is
//	pure cell            +1   v       k·v          they hold (k, v), we do not hold k
//	pure cell            −1   −v      −k·v         we hold (k, v), they do not hold k
//	poisoned cell         0   a − b   k·(a − b)    k has checksum a there and b here
//	any other cell                                 the sum of two or more of these
//
// In the first three, k = s2/s1. So the poisoned cell yields its key too, and one
// look-up of our own b gives a. A record that changed costs one difference. A set
// of elements would see two, and an XOR of keys none, because the key cancels.
//
// A sum of several differences may look like one of the three. Three tests tell
// them apart:
//
//   - k must belong to this cell, which one draw tells.
//   - The lowest 8 bits of a checksum are a hash of k and its other bits ([Seal]).
//   - A real difference belongs to no cell that is zero. Where what was found
//     contradicts that, the decoder puts it back.
//
// A difference that is found is taken out of the other cells it belongs to. Some
// of them turn pure or poisoned by it, as cell 0 does when l goes. Repeating this
// is called peeling. When all cells are zero, all is found.
//
// Whatever their kind, d differences take 1.1·d cells on average if they are
// thousands. They take 1.3·d if they are 256, and up to 1.8·d if they are few. If
// the received cells do not suffice, the next ones of the sequence do: there is
// nothing to guess, and nothing to repeat.
//
// # Which cells
//
// Which cells a pair is in follows from its index and the key alone:
//
//	cell 0          holds every pair
//	cells 1 … 63    each by itself, with a probability of its own, the same for all
//	cells from 64   one cell in each block of a geometric sequence of blocks
//
// An index has one of four classes, and the higher the class the longer its blocks.
// An eighth of the indices are in many cells and are found first; a quarter are in
// few. No draw depends on another. The cells of an index are drawn in parallel,
// and one draw tells whether an index belongs to a cell.
//
// # Use
//
// One side keeps a [Sketch] of its set and sends its first cells. [Sketch.AddAll]
// makes the sketch in one pass, and each write updates it in some 100 to 150 ns.
// The other side subtracts its own cells and peels with a [Decoder]. It asks for
// more until the Decoder is Done:
//
//	d := rateless.NewDecoder(sketch, lookup)
//	for !d.Done() {
//		if err := d.AddCells(receive()); err != nil { … }
//	}
//	for _, difference := range d.Differences() { … }
//
// [Estimate] tells beforehand from 256 bytes how many differences there are, to
// within some 12 %.
//
// Both sides must use the same [Key] and the same [MappingVersion]. All that
// decides about cells is integer arithmetic, so two processors never disagree.
//
// # Limits, and what is not promised
//
// A decode that is Done has explained the cells; it has not proved the sets equal.
// Two contents with one checksum (34 bits of which tell them apart) cancel unseen.
// A peer that knows the key can forge cells. Package reconcile proves a sync by
// digests.
//
// Forged cells cannot cost more than their number allows. Each cell is tested only
// after it changed. A decode that accepts, refuses and puts back more than four
// pairs a cell is given up ([ErrForged]).
//
// # Sources
//
// Cells, peeling, the poisoned cell (section 3) and irregular degrees (footnote 5):
// Goodrich, Mitzenmacher: Invertible Bloom Lookup Tables (2011). The endless
// sequence and its mapping: Yang, Gilad, Alizadeh: Practical Rateless Set
// Reconciliation (SIGCOMM 2024). docs/IBLT.md holds the algebra and the chances of
// failure.
package rateless
