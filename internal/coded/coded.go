// Package coded converts between the two vocabularies of pairs: that of records
// and stores (dbadapter) and that of coded cells (iblt/rateless). The numbers
// are the same; neither package imports the other, so that each is of use alone.
package coded

import (
	"iter"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// Pair is a bucket's pair as the cells hold it.
func Pair(index dbadapter.Index, sum dbadapter.Checksum) rateless.Pair {
	return rateless.Pair{Index: rateless.Index(index), Checksum: rateless.Checksum(sum)}
}

// Pairs are the pairs of a snapshot as the cells hold them.
func Pairs(pairs iter.Seq2[dbadapter.Pair, error]) iter.Seq2[rateless.Pair, error] {
	return func(yield func(rateless.Pair, error) bool) {
		for p, err := range pairs {
			if !yield(Pair(p.Index, p.Checksum), err) {
				return
			}
		}
	}
}

// Lookup lets a Decoder ask a store. The result must not be used by two
// goroutines at a time: it keeps its buffers.
func Lookup(lookup func([]dbadapter.Index, []dbadapter.Checksum) error) rateless.Lookup {
	var indices []dbadapter.Index
	var sums []dbadapter.Checksum
	return func(in []rateless.Index, out []rateless.Checksum) error {
		indices, sums = indices[:0], sums[:0]
		for _, i := range in {
			indices, sums = append(indices, dbadapter.Index(i)), append(sums, 0)
		}
		if err := lookup(indices, sums); err != nil {
			return err
		}
		for n, sum := range sums {
			out[n] = rateless.Checksum(sum)
		}
		return nil
	}
}

// Difference is a decoded difference in the terms of the store.
type Difference struct {
	Kind         rateless.Kind
	Index        dbadapter.Index
	Theirs, Ours dbadapter.Checksum
}

// Differences are what a Decoder found, in the terms of the store.
func Differences(found []rateless.Difference) []Difference {
	out := make([]Difference, len(found))
	for n, d := range found {
		out[n] = Difference{d.Kind, dbadapter.Index(d.Index), dbadapter.Checksum(d.Theirs), dbadapter.Checksum(d.Ours)}
	}
	return out
}
