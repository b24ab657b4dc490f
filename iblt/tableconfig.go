package iblt

import (
	"fmt"
	"slices"
)

const (
	// MaxHashes bounds the cells of one key: a set of subtables is the bits of a
	// uint32. Ten is more than any threshold or lookup rate asks for. The rest is
	// for irregular degrees, where a few keys have many.
	MaxHashes = 32
	// MaxTableCells bounds a table, 10 GiB of them.
	MaxTableCells = 1 << 28
	// maxShare bounds the shares of Degrees, so that a table's bytes hold each
	// in two.
	maxShare = 1<<16 - 1
	// maxDegrees bounds the number of Degrees: two classes reach most of what
	// any number can.
	maxDegrees = 16
)

// TableConfig describes a Table. Two tables can be subtracted, and each can
// read what the other wrote, if their configurations are equal.
type TableConfig struct {
	// Cells is the number m of cells, of 40 bytes each in memory.
	Cells int
	// Hashes is the number k of cells that each key goes into. Zero only with
	// Degrees.
	Hashes int
	// Seed keys the hash functions, SipHash for placement and checks. Keep it
	// from a party that chooses keys: with it, that party can choose keys that
	// share their cells. Without an adversary, an unkeyed hash such as xxh3 would
	// serve as well. It is not offered, because it gains nothing: the memory's
	// latency is what an insertion takes.
	Seed uint64
	// Placement says how a key's cells are kept distinct. Default: Subtables.
	Placement Placement
	// Sums says how a cell adds up. Default: Wrapping.
	Sums Sums
	// Checks says which checks a cell has. Default: CheckPairs. CheckProducts,
	// of the same length, is for tables that will be subtracted: see Solve.
	Checks Checks
	// CheckBits is the length of a check, a multiple of 8 up to 64. A sum is
	// taken for a pair with a chance of 2^−CheckBits for each check. Default:
	// 64. Shorter checks shorten what MarshalBinary writes. A product always has
	// 64 bits.
	CheckBits int
	// Quotient keeps of each key in a cell only what the cell's place does not
	// tell (paper, section 4). It saves log2(Cells/Hashes) bits, for the time of
	// a keyed permutation for each cell. With Subtables only.
	Quotient bool
	// Degrees, in place of Hashes, gives different keys different numbers of
	// cells (paper, footnote 5). Listing then needs fewer cells than with any one
	// number of hashes. With Distinct only. See Irregular.
	Degrees []Degree
	// Encoding says what MarshalBinary writes. Default: Packed.
	Encoding Encoding
}

// Degree is a class of keys: Share of Σ Share of the keys go into Hashes cells
// each.
type Degree struct {
	Hashes int
	Share  int
}

// Irregular is a mix of two degrees whose threshold is 1.088 cells a key. The
// best single one, three, needs 1.222. Rink found it the best for keys of which
// most have three cells ("Mixed hypergraphs for linear-time construction of denser
// hashing-based data structures", 2013).
func Irregular() []Degree {
	return []Degree{{Hashes: 3, Share: 887}, {Hashes: 21, Share: 113}}
}

// Placement says how the cells of a key are kept distinct (paper, section 2.2).
type Placement uint8

const (
	// Subtables splits the cells into one part for each hash; a part can be
	// lost, and the others suffice.
	Subtables Placement = iota
	// Distinct takes the first k different cells of a sequence over the whole
	// table.
	Distinct
)

// Sums says how a cell adds up its keys, values and checks.
type Sums uint8

const (
	// Wrapping adds modulo 2^64: (a + b) − b = a, whatever overflows.
	Wrapping Sums = iota
	// XOR adds without carries. It serves tables in which no pair is ever
	// present twice (paper, section 2): two copies cancel.
	XOR
)

// Checks says which of the checks of section 3 a cell has.
type Checks uint8

const (
	// CheckPairs keeps hashkeySum and hashvalueSum. Deletions without
	// insertion, keys with several values, and duplicates do no harm.
	CheckPairs Checks = iota
	// CheckKeys keeps hashkeySum only: each key must have one value.
	CheckKeys
	// NoChecks is the simple table of section 2: count, keySum and valueSum. Keys
	// must be distinct, and only what is present may be deleted.
	NoChecks
	// CheckProducts replaces hashkeySum by Σ x·y, products in the field of 2^64
	// elements, and keeps hashvalueSum. Solve then reads the key out of a
	// poisoned cell by a division. hashvalueSum alone tells one pair from
	// several, because G2 is a hash of key and value. With XOR only, which is the
	// field's addition. Not in the paper.
	CheckProducts
)

// lengths are the bits of KeyCheck and ValueCheck.
func (c *TableConfig) lengths() (key, value int) {
	check := c.CheckBits
	if check == 0 {
		check = 64
	}
	switch c.Checks {
	case CheckPairs:
		return check, check
	case CheckKeys:
		return check, 0
	case CheckProducts:
		return 64, check // no part of a product gives a quotient
	}
	return 0, 0
}

// Encoding says how MarshalBinary writes cells.
type Encoding uint8

const (
	// Packed leaves out zero cells and the checks of cells that hold one pair. It
	// also leaves out the bits that no sum of the table needs.
	Packed Encoding = iota
	// Words writes each field of each cell at its full length. The length of the
	// result depends on the configuration alone, and so tells nothing of the
	// content. A cell can be read or replaced in place.
	Words
)

// withDefaults returns c with zero fields replaced, or what is wrong with it.
func (c TableConfig) withDefaults() (TableConfig, error) {
	fail := func(format string, args ...any) (TableConfig, error) {
		return c, fmt.Errorf("configure a table: %s: %w", fmt.Sprintf(format, args...), ErrTableConfig)
	}
	if c.CheckBits == 0 {
		c.CheckBits = 64
	}
	if c.Checks == NoChecks {
		c.CheckBits = 64 // of no effect; one form for equal tables
	}
	switch {
	case len(c.Degrees) > 0 && c.Hashes != 0:
		return fail("give Hashes or Degrees, not both")
	case len(c.Degrees) > maxDegrees:
		return fail("%d Degrees are more than %d", len(c.Degrees), maxDegrees)
	case len(c.Degrees) > 0 && c.Placement != Distinct:
		return fail("Degrees need Placement: Distinct")
	case len(c.Degrees) == 0 && (c.Hashes < 1 || c.Hashes > MaxHashes):
		return fail("Hashes is %d; choose 1 to %d (3 to 7 as a rule)", c.Hashes, MaxHashes)
	case c.Placement > Distinct || c.Sums > XOR || c.Checks > CheckProducts || c.Encoding > Words:
		return fail("an unknown Placement, Sums, Checks or Encoding")
	case c.CheckBits < 8 || c.CheckBits > 64 || c.CheckBits%8 != 0:
		return fail("CheckBits is %d; choose a multiple of 8 up to 64", c.CheckBits)
	case c.Quotient && c.Placement != Subtables:
		return fail("Quotient needs Placement: Subtables")
	case c.Checks == CheckProducts && c.Sums != XOR:
		return fail("CheckProducts needs Sums: XOR")
	}
	for _, d := range c.Degrees {
		if d.Hashes < 1 || d.Hashes > MaxHashes || d.Share < 1 || d.Share > maxShare {
			return fail("a degree of %d hashes with a share of %d; hashes go to %d, shares to %d", d.Hashes, d.Share, MaxHashes, maxShare)
		}
	}
	if most := c.mostHashes(); c.Cells < most || c.Cells > MaxTableCells {
		return fail("Cells is %d; choose %d to %d", c.Cells, most, MaxTableCells)
	}
	c.Degrees = slices.Clone(c.Degrees)
	return c, nil
}

// mostHashes is the number of cells of the keys that have most.
func (c *TableConfig) mostHashes() int {
	most := c.Hashes
	for _, d := range c.Degrees {
		most = max(most, d.Hashes)
	}
	return most
}

// equal reports whether two valid configurations describe the same table.
func (c *TableConfig) equal(d *TableConfig) bool {
	return c.Cells == d.Cells && c.Hashes == d.Hashes && c.Seed == d.Seed &&
		c.Placement == d.Placement && c.Sums == d.Sums && c.Checks == d.Checks &&
		c.CheckBits == d.CheckBits && c.Quotient == d.Quotient && c.Encoding == d.Encoding &&
		slices.Equal(c.Degrees, d.Degrees)
}
