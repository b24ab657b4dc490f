// Package rateless finds the difference between two sets of key→value records
// for a cost that follows the difference, not the sets. It is a rateless IBLT
// (Yang, Gilad, Alizadeh 2024) over pairs of index and checksum.
//
// # The idea
//
// A record stands in its set as a [Pair]: the index k of its key, and a
// checksum v of its version and content, both numbers from 1 to p − 1 for the
// prime p = 2^42 − 11. The pairs of a set are added into the cells of an endless
// sequence: each into cell 0 and then, by a keyed mapping, into some cells
// beyond, fewer and fewer of them the further they are. Two sets of which one has changed k, and the other
// lacks l:
//
//	cell             0                     1            2         3 …
//	they hold        (k, a) (l, v) (m, x)  (k, a)       (l, v)    (k, a) (m, x)
//	we hold          (k, b)        (m, x)  (k, b)                 (k, b) (m, x)
//	theirs − ours    k and l: neither      k: poisoned  l: pure   k: poisoned
//	l taken out      k: poisoned           k: poisoned  zero      k: poisoned
//	k taken out      zero                  zero         zero      zero: done
//
// A [Cell] is three sums over its pairs: how many, Σ v and Σ k·v, in 11 bytes.
// Subtracted, all that both sets hold cancels, as m does above,
// and what is left are sums over the difference alone:
//
//	theirs − ours      count  s1      s2           what it is
//	pure cell            +1   v       k·v          they hold (k, v), we do not hold k
//	pure cell            −1   −v      −k·v         we hold (k, v), they do not hold k
//	poisoned cell         0   a − b   k·(a − b)    k has checksum a there and b here
//	any other cell                                 the sum of two or more of these
//
// In each of the three k = s2/s1. The key comes out of the poisoned cell too,
// and one look-up of our own b gives a: a record that changed costs one
// difference, where a set of elements sees two, and an XOR of keys sees nothing,
// because the key cancels.
//
// Nothing in a cell tells these three from sums that only look so; the rest does.
// k must belong to this cell, which one draw tells. The lowest 8 bits of a
// checksum are a hash of k and its other bits ([Seal]). And a difference that is
// real belongs to no cell that is zero: where what was found contradicts that, the
// decoder puts it back.
//
// A difference that is solved is taken out of the other cells it belongs to, some
// of which turn pure or poisoned by it, as cell 0 does when l goes, and so on:
// peeling. When all cells are zero, all is found. d differences take 1.1·d cells
// on average if they are thousands, 1.3·d if they are 256 and up to 1.8·d if they
// are few, whatever their kind; if the cells that have come do not suffice, the
// next ones of the sequence do: there is nothing to guess, and nothing to repeat.
//
// # Which cells
//
// Which cells a pair is in follows from its index and the key alone:
//
//	cell 0          holds every pair
//	cells 1 … 63    each by itself, with a probability of its own, the same for all
//	cells from 64   one cell in each block of a geometric sequence of blocks
//
// An index has one of four classes, and the higher the class the longer its blocks: an
// eighth of the indices are in many cells and come out first, a quarter in few.
// No draw depends on another. The cells of an index are drawn side by side, and
// one draw tells whether an index belongs to a cell.
//
// # Use
//
// One side keeps a [Sketch] of its set, made in one go by [Sketch.AddAll] and
// brought up to date at the cost of some 100 to 150 ns a write, and sends its first
// cells. The other subtracts its own and peels with a [Decoder], asking for
// more until it is Done:
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
// Both must use the same [Key] and the same [MappingVersion]. All that decides
// about cells is integer arithmetic, so that two processors never disagree.
//
// # Limits, and what is not promised
//
// A decode that is Done has explained the cells, not proved the sets equal: two
// contents with one checksum (34 bits of which tell them apart) cancel unseen, and
// a peer that knows the key can forge cells. Package reconcile proves a sync by
// digests. What forged cells cannot do is cost more than their number allows: each
// cell is tested only after it changed, and a decode that accepts, refuses and puts
// back more than four pairs a cell is given up ([ErrForged]).
//
// # Sources
//
// Goodrich, Mitzenmacher: Invertible Bloom Lookup Tables (2011), for cells,
// peeling, the poisoned cell (section 3) and irregular degrees (footnote 5).
// Yang, Gilad, Alizadeh: Practical Rateless Set Reconciliation (SIGCOMM 2024),
// for the endless sequence and its mapping. docs/IBLT.md holds the algebra and
// the chances of failure.
package rateless
