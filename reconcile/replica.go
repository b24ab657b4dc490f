package reconcile

import (
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Replica is one side's set of records as one sync reads it. It answers as of
// one moment, however long the sync takes.
type Replica interface {
	// Records and Digest are the number of records, tombstones included, and
	// the sum of their digests.
	Records() uint64
	Digest() dbadapter.Digest
	// Cells returns the cells [from, to) of the set's sequence.
	Cells(from, to int) ([]rateless.Cell, error)
	// Decoded says that no further cells or checksums will be asked for.
	Decoded()
	// Estimator is the set's, for the estimate.
	Estimator() rateless.Estimator
	// Lookup sets sums[i] to the checksum under indices[i], 0 where none is.
	Lookup(indices []dbadapter.Index, sums []dbadapter.Checksum) error
	// Bucket returns the records under an index, by key.
	Bucket(index dbadapter.Index) ([]dbadapter.Record, error)
	// All yields every record, by key.
	All() iter.Seq2[dbadapter.Record, error]
}

// Admission checks the limits, rights, signatures and clocks of records that
// arrive, and commits those that pass in one transaction. The verdicts are in
// the order of the records.
type Admission func(records []dbadapter.Record) ([]Verdict, error)

// Verdict says what the admission made of a record.
type Verdict struct {
	// Result is Applied, Same or Dominated where the record was let in.
	Result dbadapter.Result
	// Reason, if not 0, is why it was refused.
	Reason wire.Reason
}
