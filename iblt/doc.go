// Package iblt is the invertible Bloom lookup table of Goodrich and
// Mitzenmacher (2011). A table of fixed size holds the sums of any number of
// key-value pairs. It subtracts from another table like a number, and lists its
// pairs whenever few enough are left in it.
//
// # The idea
//
// A [Table] has m cells; each key belongs to k of them, one in each of k
// subtables. A cell holds three sums over its pairs: how many they are, their
// keys, and their values.
//
//	cell          0    1    2  |  3    4    5  |  6    7    8      k = 3 subtables
//	(x, y)        +            |       +       |            +
//	(z, w)             +       |       +       |  +
//	count         1    1    0  |  0    2    0  |  1    0    1
//	keySum        x    z       |      x+z      |  z         x
//	valueSum      y    w       |      y+w      |  w         y
//
// A cell with count 1 holds one pair, which can be read off. The pair is then
// taken out of its other cells, and some of them are left with one pair, as cell 4
// here. Repeating this is called peeling. It finds all pairs as long as there are
// fewer of them than about 0.8·m (see [Table.Capacity]). How many were inserted
// and deleted before does not matter.
//
// # Use
//
//	t, err := iblt.NewTable(iblt.TableConfig{Cells: 600, Hashes: 4, Seed: seed})
//	t.Insert(x, y)
//	t.Delete(z, w)
//	y, answer := t.Get(x)       // Found, Absent or Unknown
//	listing := t.ListEntries()  // what was inserted, what was deleted, and whether that is all
//
// Two tables of one configuration subtract: t.Subtract(other) leaves the
// difference of the two sets, however large they are. [ConfigFor] chooses the
// size for a number of differences and a chance of failure.
//
// A key with different values in the two sets poisons its cells, because the key
// cancels. [Table.Unpoison] then tries all local pairs. With sums of products,
// [Table.Solve] divides.
//
// A table is for what fits one message or must not grow. Examples are:
//
//   - a sketch in a file or a datagram, where no further cells can be asked for;
//   - a tracker of flows (iblt/examples/flowtracker);
//   - a selection that the server does not see (iblt/examples/oblivious).
//
// Where more cells can be asked for, package iblt/rateless takes fewer of them and
// needs no size.
//
// # Limits, and what is not promised
//
// A table never lists more pairs than it has cells, whatever a peer sent. A
// listing that is Complete has explained all cells. That it is right rests on the
// check sums ([TableConfig] has the paper's choices of sections 2 to 4). A party
// that chooses keys and does not know the Seed cannot choose their cells.
//
// # Sources
//
// Goodrich, Mitzenmacher: Invertible Bloom Lookup Tables (2011). iblt/paper
// repeats the paper's simulations (docs/PAPER.md). docs/IBLT.md has the algebra.
package iblt
