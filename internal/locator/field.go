package locator

import (
	"sync"

	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// falsePositive is α: of an index that no copy has, the field names a shard so often.
const falsePositive = 1.0 / (1 << 12)

// layers are what look-ups ask: a B-field of all keys, and over it an exact map of each set.
//
//	look-up ──► field ── Absent ──► Nowhere
//	              │ Found, Indeterminate
//	              ▼
//	            exact map of the set ── there ──► what it says
//	              │ not there
//	              ▼
//	            what the field says
//
// So a key that is in the exact map is never Absent in the field: what the field does not know
// goes into it first, and what it knows stays in it.
type layers struct {
	shards int
	field  *bfield.Field
	keys   int     // that it was built of
	added  int     // that were inserted since, in place
	exact  []exact // by set
}

// room is how many keys may be inserted in place: beyond it the rate of false positives grows
// over α.
func (l *layers) room() int {
	if l.field == nil {
		return -1
	}
	return int(l.field.Plan().Keys) - l.keys - l.added
}

// plans are the shapes of fields, by the number of shards: to find one takes up to 0.2 s.
var plans sync.Map

// newLayers builds a field of all keys that a feed yields, which is read twice, planned for a
// number of keys and a sixteenth more, or least.
func newLayers(c Config, keys, least int, feed func(yield func(set placement.Shard, e Entry))) (*layers, error) {
	config := bfield.Config{Keys: 1, Values: uint64(c.Shards) + 1, FalsePositive: falsePositive, Seed: c.Seed, Workers: 1}
	find, _ := plans.LoadOrStore(c.Shards, sync.OnceValues(func() (bfield.Plan, error) { return bfield.NewPlan(config) }))
	plan, err := find.(func() (bfield.Plan, error))()
	if err != nil {
		return nil, err
	}
	config.Keys = uint64(keys + max(keys/16, least))
	config.Nu, config.Kappa, config.Hashes, config.CellsPerKey = plan.Nu, plan.Kappa, plan.Hashes, plan.CellsPerKey
	l := &layers{shards: c.Shards, exact: make([]exact, c.Shards)}
	l.field, err = bfield.BuildFrom(config, func(yield func(keyed.Key, uint64) bool) error {
		feed(func(set placement.Shard, e Entry) { yield(fieldKey(set, e.Index()), l.value(e.Code())) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.keys = int(l.field.Stats().Keys)
	return l, nil
}

// fieldKey is the key of an index in a set: sets do not collide.
func fieldKey(set placement.Shard, index dbadapter.Index) keyed.Key {
	return keyed.Number(uint64(set)<<indexBits | uint64(index))
}

// value is the field's of a code that is not Gone; the one behind the shards is Shared.
func (l *layers) value(c Code) uint64 { return min(uint64(c), uint64(l.shards)) }

// put says something of an index of a set. The field needs no repair for it: what it does not
// answer, or not rightly, is in the exact map.
func (l *layers) put(set placement.Shard, e Entry) {
	x, key := &l.exact[set], fieldKey(set, e.Index())
	if e.Code() == Gone {
		if _, answer := l.field.Lookup(key); answer != bfield.Absent {
			x.put(e)
		}
		return
	}
	before, right, _ := l.field.Add(key, l.value(e.Code()))
	if before == bfield.Absent {
		l.added++
	}
	if right {
		if _, ok := x.get(e.Index(), x.maybe(e.Index())); before == bfield.Absent || !ok {
			return
		}
	}
	x.put(e)
}

// get says where a key is.
func (l *layers) get(set placement.Shard, index dbadapter.Index) (Where, placement.Shard) {
	x := &l.exact[set]
	maybe := x.maybe(index)
	value, answer := l.field.Lookup(fieldKey(set, index))
	if answer == bfield.Absent {
		return Nowhere, 0
	}
	if c, ok := x.get(index, maybe); ok {
		switch c {
		case Gone:
			return Nowhere, 0
		case Shared:
			return Ask, 0
		}
		return In, placement.Shard(c)
	}
	if answer == bfield.Indeterminate || value == uint64(l.shards) {
		return Ask, 0
	}
	return In, placement.Shard(value)
}
