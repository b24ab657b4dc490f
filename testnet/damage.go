package testnet

import (
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/testnet/internal/model"
)

// collisions counts the indices under which two sides hold other records of one checksum.
// It counts where there may be any: the plan has shortened the checksums, or a sync has
// counted some. Of two versions of one minute one pair in 2^22 has one checksum by chance.
func (r *runner) collisions(dumps [2][]dbadapter.Record, counted int) (n int) {
	if r.plan.Checksums == 0 && counted == 0 {
		return 0
	}
	h := r.cluster.Keys().Hasher
	there := model.Buckets(h, dumps[1])
	for i, a := range model.Buckets(h, dumps[0]) {
		if b := there[i]; b != nil && a.Digest != b.Digest && a.Pair(h) == b.Pair(h) {
			n++
		}
	}
	return n
}

// audit has the nodes compute anew what they keep, as each does once a day: what no sync
// has met is put right then. What syncs must have met, is right before.
func (r *runner) audit() {
	for _, group := range r.reach() {
		_, alike := r.cluster.Node(group[0]).Wrong() // at all nodes
		for _, i := range group {
			_, sums := r.cluster.Node(i).Wrong()
			alike = slices.DeleteFunc(alike, func(d model.Deviation) bool { return !slices.Contains(sums, d) })
		}
		for _, i := range group {
			n := r.cluster.Node(i)
			if !n.Damaged() || !n.Member() {
				continue
			}
			if d := n.Audit(); d.Ranges > len(alike) && len(group) > 1 && !r.stuck(i) {
				r.history.Unhealed(i, d.Ranges)
			}
		}
	}
}
