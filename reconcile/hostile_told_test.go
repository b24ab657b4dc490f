package reconcile

import (
	"iter"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// told is what the initiator will make of what it was told.
func (v *vector) told() uint64 {
	o := v.d.w.options(v.side, worldNonces[v.side])
	key := rangeKey(o.proof("ranges", o.Self, o.Remote, worldNonces[0], worldNonces[1]))
	records := v.trial.Sum().Records
	for _, r := range v.left {
		records -= v.trial.Ranges(r, r+1).Records
	}
	return toldOf(&key, v.trial.keys.Hasher, records, maps.Keys(v.inTold), v.relisted, func(i dbadapter.Index) []dbadapter.Hashed {
		return v.trial.buckets[i]
	})
}

// toldOf is the hash that fits a set of so many records.
func toldOf(key *rangeKey, h dbadapter.Hasher, records uint64, told iter.Seq[dbadapter.Index], listed map[dbadapter.Range]bool, bucket func(dbadapter.Index) []dbadapter.Hashed) (sum uint64) {
	for i := range told {
		var b dbadapter.Bucket
		held := bucket(i)
		for n := range held {
			b.Add(&held[n])
		}
		records -= uint64(len(held))
		stands := uint64(b.Pair(h).Checksum)
		if listed[dbadapter.RangeOf(i)] && len(held) > 0 {
			stands = key.mark(i, b.Digest)
		}
		sum += (*keyhash.Key)(key).Words(keyhash.TagTold, uint64(i), stands)
	}
	return sum + (*keyhash.Key)(key).Words(keyhash.TagTold, records)
}

// listed takes out of the account what was told of ranges that are compared anew.
func (v *vector) listed(m *wire.Listing) {
	in := inRanges(slices.Concat(m.Ranges, m.Left))
	maps.DeleteFunc(v.inTold, func(i dbadapter.Index, _ wire.Role) bool { return in[dbadapter.RangeOf(i)] })
	v.left = append(v.left, m.Left...)
	if v.relisted == nil {
		v.relisted = map[dbadapter.Range]bool{}
	}
	maps.Copy(v.relisted, inRanges(m.Ranges))
}
