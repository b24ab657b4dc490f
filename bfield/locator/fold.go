package locator

import (
	"github.com/syncd-io/syncd/bfield"
	"github.com/syncd-io/syncd/bfield/keyed"
)

// fold merges the tail into what is below it, and begins another. The caller
// holds writing.
//
//	tail    a→3  b gone  c→1  d gone  e→2        below: a, b; c, d, e are new
//	          │    │       │    │       └──────►  the field, if there is one
//	run     a→3  b gone  c→1    ✗
func (l *Locator) fold() {
	v := *l.view.Load()
	entries := v.tail.sorted()
	drop := make([]bool, len(entries))
	l.sort(&v, entries, drop)
	v.run = v.run.overlay(l.config.codeBits(), entries, func(i int) bool { return !drop[i] })
	v.tail = newTail(v.run.len() + l.inField(&v))
	l.folds++
	l.view.Store(&v)
}

// sort says which of a tail's entries the run does not need, puts those into
// the field that go there, and leaves the codes of the others as a run has them.
func (l *Locator) sort(v *view, entries []entry, drop []bool) {
	var hashes, shards []uint64
	var chosen []int // for the field
	room := 0
	if l.config.Delta == FieldDelta && !l.rebuilding && !l.repairing {
		room = l.fieldRoom(v)
	}
	for i := range entries {
		known := entries[i].code&below != 0
		code := entries[i].code&^below - 1
		entries[i].code = code
		switch {
		case known:
		case code == l.config.gone():
			drop[i] = true
		case len(hashes) < room:
			hashes = append(hashes, l.hash(entries[i].key))
			shards = append(shards, uint64(code))
			chosen = append(chosen, i)
		}
	}
	if len(hashes) == 0 {
		return
	}
	// New makes sure that there is a plan; if a field cannot be made all the same,
	// the exact map takes the keys.
	if l.intoField(v, hashes, shards) == nil {
		for _, i := range chosen {
			drop[i] = true
		}
	}
}

// inField is how many keys the field holds.
func (l *Locator) inField(v *view) int {
	if v.field == nil {
		return 0
	}
	return int(v.field.Stats().Keys)
}

// fieldKeys is how many keys the field is planned for.
func (l *Locator) fieldKeys(v *view) int {
	if v.field != nil {
		return int(v.field.Plan().Keys)
	}
	return max(leastField, v.base.Stats().Keys/fieldPart)
}

func (l *Locator) fieldRoom(v *view) int { return max(0, l.fieldKeys(v)-l.inField(v)) }

func (l *Locator) intoField(v *view, hashes, shards []uint64) error {
	field := v.field
	if field == nil {
		plan, err := l.plan()
		if err != nil {
			return err
		}
		c := l.config.field(uint64(l.fieldKeys(v)))
		c.Nu, c.Kappa, c.Hashes, c.CellsPerKey = plan.Nu, plan.Kappa, plan.Hashes, plan.CellsPerKey
		if field, err = bfield.New(c); err != nil {
			return err
		}
	}
	field, err := field.With(keyed.Numbers(hashes), shards)
	if err != nil {
		return err
	}
	v.field = field
	return nil
}
