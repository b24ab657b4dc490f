package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/coded"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// announced is what the initiator's cells told of the records that it will send. It has
// the checksum of each index that the initiator alone holds, or holds with another
// checksum. Under the indices that were asked of it, it sends all its records, so that
// the responder can hold what comes against what was told.
type announced struct {
	hasher dbadapter.Hasher
	pairs  []dbadapter.Pair // by index
	// marks are those of the indices that were listed.
	marks map[dbadapter.Index]uint64
	key   *rangeKey

	// What has come under the last index.
	index  dbadapter.Index // 0: nothing that is to be checked
	sum    dbadapter.Checksum
	bucket dbadapter.Bucket
}

// announce notes the initiator's side of the differences.
func announce(hasher dbadapter.Hasher, found []coded.Difference) *announced {
	n := &announced{hasher: hasher}
	for _, d := range found {
		if d.Kind != rateless.MissingThere {
			n.pairs = append(n.pairs, dbadapter.Pair{Index: d.Index, Checksum: d.Theirs})
		}
	}
	slices.SortFunc(n.pairs, func(a, b dbadapter.Pair) int { return cmp.Compare(a.Index, b.Index) })
	return n
}

// exact notes the marks of the initiator's records that are in the plan.
func (n *announced) exact(key *rangeKey, marks []wire.Mark, p *plan) {
	n.key, n.marks = key, map[dbadapter.Index]uint64{}
	for _, m := range marks {
		if _, asked := p.role[m.Index]; asked {
			n.marks[m.Index] = m.Hash
		}
	}
}

// next takes a record under an index; whole says that all records under it
// come. It fails if those under the index before are not what was told.
func (n *announced) next(r *arrival, whole bool) error {
	if r.Index != n.index {
		if err := n.finish(); err != nil {
			return err
		}
		at, told := slices.BinarySearchFunc(n.pairs, r.Index, func(p dbadapter.Pair, i dbadapter.Index) int { return cmp.Compare(p.Index, i) })
		_, marked := n.marks[r.Index]
		switch {
		case !whole || !told && !marked:
			return nil
		case told:
			n.sum = n.pairs[at].Checksum
		}
		n.index = r.Index
	}
	n.bucket.Add(&r.Hashed)
	return nil
}

// complete reports whether what has come under the last index is what was
// told.
func (n *announced) complete() bool {
	if mark, marked := n.marks[n.index]; marked {
		return n.key.mark(n.index, n.bucket.Digest) == mark
	}
	return n.index == 0 || n.bucket.Pair(n.hasher).Checksum == n.sum
}

// finish fails if what has come under the last index is not what was told.
func (n *announced) finish() error {
	if !n.complete() {
		return fmt.Errorf("%w: the records that came under index %d are not those that the cells told of", ErrNotVerified, n.index)
	}
	n.index, n.bucket = 0, dbadapter.Bucket{}
	return nil
}
