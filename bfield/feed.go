package bfield

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// A field need not remember its keys if something else does: a store, or other
// nodes that sent them. What follows is for that.

// BuildFrom returns a field of the keys that a feed yields, repaired, as Build does. The feed is read twice, in any order, and must yield the same both times. A key that
// only the second time yields is not inserted. Meanwhile it keeps only those keys that the
// primary array leaves indeterminate, as RepairedFrom says. c.Keys is to be their number or
// more: the field does not grow. An error of the feed is returned as it is.
func BuildFrom(c Config, feed func(yield func(key keyed.Key, value uint64) bool) error) (*Field, error) {
	plan, err := NewPlan(c)
	if err != nil {
		return nil, err
	}
	f := newField(plan, c.Seed, c.Workers)
	var wrong error
	err = feed(func(key keyed.Key, value uint64) bool {
		if value >= plan.Values {
			wrong = fmt.Errorf("build: value %d: the values go from 0 to %d: %w", value, plan.Values-1, ErrValue)
			return false
		}
		f.mark(entry{f.keyOf(key), value})
		return true
	})
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, wrong
	}
	return f.RepairedFrom(feed)
}

// Add inserts a key in place if the field does not know it, and keeps nothing of it. From then
// on the field is not repaired if the key went in. It returns what Lookup answered
// before, and whether Lookup answers the value now. Only an Absent key goes in. Where Lookup
// is not right in the end, the caller is to keep the key elsewhere.
//
// As others are added, keys turn Indeterminate, none Absent. A few of those that turn so are
// answered with a wrong candidate, as if found. The secondary arrays, which they are not in,
// show one by chance: one in 10^5 with 256 values and α = 2^-12. RepairedFrom ends both. It
// needs the field for itself.
func (f *Field) Add(key keyed.Key, value uint64) (before Answer, right bool, err error) {
	if value >= f.plan.Values {
		return Absent, false, fmt.Errorf("insert value %d: the values go from 0 to %d: %w", value, f.plan.Values-1, ErrValue)
	}
	e := entry{f.keyOf(key), value}
	is, before := f.lookup(e.key)
	if before != Absent {
		return before, before == Found && is == value, nil
	}
	f.mark(e)
	is, now := f.lookup(e.key)
	return Absent, now == Found && is == value, nil
}

// RepairedFrom returns a field with secondary arrays for the keys that the primary one leaves
// indeterminate. Both share one primary array, and look-ups of this one go on. But once there is
// an insertion into either, the other is not to be used any more. The feed must yield every key
// that the field holds and that will be looked up, with its value, in any order. Others that it
// yields do no harm. It keeps 40 bytes of each indeterminate key meanwhile.
//
// An error of the feed is returned as it is. It fails with ErrContradiction if
// the feed yields a key with two values that the array both shows.
func (f *Field) RepairedFrom(feed func(yield func(key keyed.Key, value uint64) bool) error) (*Field, error) {
	g := f.primary()
	var pending []undecided
	var wrong error
	err := feed(func(key keyed.Key, value uint64) bool {
		e := entry{g.keyOf(key), value}
		if value >= g.plan.Values {
			wrong = fmt.Errorf("repair: value %d: the values go from 0 to %d: %w", value, g.plan.Values-1, ErrValue)
			return false
		}
		acc := g.levels[0].common(e.key, g.mask(), &g.plan)
		if code := g.encode(e); acc != code && acc&code == code {
			pending = append(pending, undecided{e, acc})
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, wrong
	}
	if err := g.decide(pending); err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	return g, nil
}

// primary is the field with its primary array alone, which both share.
func (f *Field) primary() *Field {
	g := *f
	g.levels, g.repaired = slices.Clone(f.levels[:1]), false
	return &g
}
