package check

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The rule healed, and what a sync counts of its repairs.
func TestHealed(t *testing.T) {
	sums, cells, number := [2]Wrong{{Sums: 1}}, [2]Wrong{{Cells: 9}}, [2]Wrong{{Sums: 1, Numbers: 1}}
	held := [2][]dbadapter.Record{{{Key: []byte("k")}}, {{Key: []byte("k")}}}
	sync := func(repair reconcile.Repair, edit func(*Sync)) Sync {
		s := Sync{Before: held, After: held, Gets: true, Gives: true, Compared: true, At: time.Second, Report: reconcile.Report{Method: wire.MethodSketch, Verified: true, Repair: repair}}
		edit(&s)
		return s
	}
	later := func(s Sync) Sync {
		s.Begun, s.At = time.Minute, time.Minute+time.Second
		return s
	}
	fixed := reconcile.Repair{Ranges: 1, Digests: 1}
	none := func(*Sync) {}
	unproved := sync(reconcile.Repair{}, func(s *Sync) { s.Unproved, s.Failed, s.Wrong, s.Report.Verified = true, true, number, false })
	part := sync(reconcile.Repair{Sketch: true}, func(s *Sync) { s.Wrong, s.Still, s.Compared = cells, Wrong{Cells: 9}, false })
	noticed := sync(reconcile.Repair{Sketch: true}, func(s *Sync) { s.Wrong, s.Still = cells, Wrong{Cells: 9} })
	for name, c := range map[string]struct {
		syncs []Sync
		want  Rule
	}{
		"nothing":                    {[]Sync{sync(reconcile.Repair{}, none)}, ""},
		"a sum that is mended":       {[]Sync{sync(fixed, func(s *Sync) { s.Wrong = sums })}, ""},
		"a sum that is left":         {[]Sync{sync(fixed, func(s *Sync) { s.Wrong, s.Still = sums, Wrong{Sums: 1} })}, Healed},
		"both wrong alike":           {[]Sync{sync(reconcile.Repair{}, func(s *Sync) { s.Wrong, s.Still, s.Alike = [2]Wrong{{Sums: 1}, {Sums: 1}}, Wrong{Sums: 1}, 1 })}, ""},
		"struck meanwhile":           {[]Sync{sync(fixed, func(s *Sync) { s.Struck, s.Still = true, Wrong{Sums: 1} })}, ""},
		"mended and not counted":     {[]Sync{sync(reconcile.Repair{Ranges: 1}, func(s *Sync) { s.Wrong = sums })}, Count},
		"counted and not there":      {[]Sync{sync(fixed, none)}, Count},
		"a sound sketch blamed":      {[]Sync{sync(reconcile.Repair{Sketch: true}, none)}, Count},
		"the peer's sketch":          {[]Sync{sync(reconcile.Repair{Sketch: true}, func(s *Sync) { s.Wrong[1].Cells = 1 })}, ""},
		"collisions":                 {[]Sync{sync(reconcile.Repair{Ranges: 1, Collisions: 2}, func(s *Sync) { s.Collisions = 2 })}, ""},
		"a collision not counted":    {[]Sync{sync(reconcile.Repair{Ranges: 1, Collisions: 1}, func(s *Sync) { s.Collisions = 2 })}, Count},
		"repaired and not verified":  {[]Sync{sync(reconcile.Repair{Ranges: 1}, func(s *Sync) { s.Report.Verified = false })}, Healed},
		"cells once":                 {[]Sync{noticed, noticed}, ""},
		"cells for long":             {[]Sync{noticed, later(noticed)}, Healed},
		"cells of a part":            {[]Sync{noticed, later(part)}, ""},
		"cells audited between":      {[]Sync{noticed, sync(reconcile.Repair{}, none), later(noticed)}, ""},
		"no proof once":              {[]Sync{unproved, unproved}, ""},
		"no proof for long":          {[]Sync{unproved, later(unproved)}, Healed},
		"a proof between the two":    {[]Sync{unproved, sync(reconcile.Repair{}, none), later(unproved)}, ""},
		"no proof, the peer's fault": {[]Sync{unproved, later(sync(reconcile.Repair{}, func(s *Sync) { s.Unproved, s.Failed, s.Wrong[1] = true, true, number[0] }))}, ""},
		"no proof, a digest wrong":   {[]Sync{sync(reconcile.Repair{}, func(s *Sync) { s.Unproved, s.Failed, s.Wrong = true, true, sums })}, Healed},
		"no proof, an empty side":    {[]Sync{sync(reconcile.Repair{}, func(s *Sync) { s.Unproved, s.Failed, s.Wrong, s.Before[1] = true, true, sums, nil })}, ""},
		"no proof, a false peel":     {[]Sync{sync(reconcile.Repair{}, func(s *Sync) { s.Unproved, s.Failed, s.Stray = true, true, true })}, Healed},
	} {
		h := New()
		for i := range c.syncs {
			h.Synced(&c.syncs[i])
		}
		found := h.Check(nil)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || found[0].Rule != c.want) {
			t.Errorf("%s: %v, want %q", name, found, c.want)
		}
	}
	h := New()
	noticed.Node = 1
	h.Synced(&noticed)
	h.Started(1, nil)
	again := later(noticed)
	h.Synced(&again)
	if found := h.Check(nil); len(found) > 0 {
		t.Errorf("a restart forgets what was to be audited: %v", found)
	}
}
