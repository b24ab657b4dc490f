package reconcile

import (
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// Replica is one side's set of records as one sync reads it. It answers as of
// one moment, however long the sync takes.
type Replica interface {
	// Sum is of all records, tombstones included: what two sides compare first.
	Sum() dbadapter.Sum
	// Ranges is that of the records in the ranges [from, to).
	Ranges(from, to dbadapter.Range) dbadapter.Sum

	// The steps sketch, subtract and peel read what follows.

	// Cells returns the cells [from, to) of the set's sequence. It may scan
	// the set, and then calls Session.Tick at least every few milliseconds.
	Cells(from, to int) ([]rateless.Cell, error)
	// Estimator is the set's, for the number of differences.
	Estimator() rateless.Estimator
	// Lookup sets sums[i] to the checksum under indices[i], or to 0.
	Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error
	// Decoded says that neither cells nor checksums will be asked for again.
	Decoded()

	// The steps fetch and verify read what follows.

	// Buckets returns the records under each of the indices, by key. The indices
	// ascend, and none comes twice.
	Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error)
	// All yields every record; of a whole namespace, by key.
	All() iter.Seq2[dbadapter.Hashed, error]

	// The proof by range reads, and mends, what follows.

	// List yields what is held in the given ranges, which ascend, bucket by bucket in
	// the order of their indices. It reads the records, and calls Session.Tick.
	List(ranges []dbadapter.Range) iter.Seq2[Listed, error]
	// Repair replaces the sum that was kept of a range by that of its records. So it
	// does with the sum of all ranges, of this replica and of what it was taken from.
	Repair(r dbadapter.Range, sum dbadapter.Sum)
}

// Listed is the sum of the records under an index.
type Listed struct {
	Index dbadapter.Index
	Sum   dbadapter.Sum
}
