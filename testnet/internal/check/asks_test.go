package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// noon is what clocks say here.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func version(t time.Time) dbadapter.Version {
	return dbadapter.Version{Clock: dbadapter.TimestampAt(t), Writer: 7, Incarnation: 9}
}

// openDoor is a door that lets everything in but what is of the future.
func openDoor(holds *dbadapter.Record) Door {
	return Door{Holds: holds, Clock: noon, Skew: time.Minute, MayWrite: true, TheirsMayWrite: true, Allows: func(*dbadapter.Record) bool { return true }}
}

// An answer that is not so, and one that names no rule, or a wrong one, or one too many, is
// found; what is so is not.
func TestTold(t *testing.T) {
	held, newer := put("k", "1", version(noon)), put("k", "2", version(noon.Add(time.Second)))
	future := put("k", "3", version(noon.Add(time.Hour)))
	for name, c := range map[string]struct {
		told  Told
		wrong string
	}{
		"so":                 {Told{Said: held, Asked: newer, Door: openDoor(&held)}, ""},
		"nothing":            {Told{Asked: newer, Door: openDoor(nil)}, ""},
		"another one":        {Told{Said: newer, Door: openDoor(&held)}, "it holds"},
		"nothing, though":    {Told{Door: openDoor(&held)}, "it holds"},
		"of the future":      {Told{Said: held, Asked: future, Declines: wire.ReasonClock, Door: openDoor(&held)}, ""},
		"no rule":            {Told{Said: held, Asked: future, Door: openDoor(&held)}, "the reason"},
		"the wrong rule":     {Told{Said: held, Asked: future, Declines: wire.ReasonWriter, Door: openDoor(&held)}, "the reason"},
		"a rule for nothing": {Told{Said: held, Asked: newer, Declines: wire.ReasonClock, Door: openDoor(&held)}, "the reason"},
	} {
		h := New()
		h.written(1, held)
		c.told.Node, c.told.Key = 1, "k"
		h.Told(&c.told)
		expect(t, name, h, Why, c.wrong)
	}
	h := New() // it says what it holds in memory alone
	h.Told(&Told{Node: 1, Key: "k", Said: held, Door: openDoor(&held)})
	expect(t, "not durable", h, Why, "durable")
}

func expect(t *testing.T, name string, h *History, rule Rule, text string) {
	t.Helper()
	all := h.found.sorted()
	switch {
	case text == "" && len(all) > 0:
		t.Errorf("%s: %v", name, all)
	case text != "" && !slices.ContainsFunc(all, func(v Violation) bool { return v.Rule == rule && strings.Contains(v.Text, text) }):
		t.Errorf("%s: %v, not %q", name, all, text)
	}
}

// Each cause must be named if and only if it is so.
func TestExplained(t *testing.T) {
	old, newer, future := put("k", "1", version(noon)), put("k", "2", version(noon.Add(time.Second))), put("k", "3", version(noon.Add(time.Hour)))
	beside := put("k", "x", dbadapter.Version{Clock: newer.Version.Clock, Writer: 8})
	cause := func(kind string, rule wire.Reason) []Cause { return []Cause{{kind, rule}} }
	for name, c := range map[string]struct {
		e     Explained
		wrong string
	}{
		"same":              {Explained{Standing: "same", Here: &old, There: &old}, ""},
		"the wrong way":     {Explained{Standing: "newer there", Here: &newer, There: &old}, "it is"},
		"not synced":        {Explained{Standing: "newer here", Here: &newer, There: &old, Causes: cause("not synced yet", 0)}, ""},
		"no cause":          {Explained{Standing: "newer here", Here: &newer, There: &old}, "nothing of"},
		"a conflict":        {Explained{Standing: "newer here", Here: &beside, There: &old, Causes: cause("not synced yet", 0)}, "nothing of"},
		"no conflict":       {Explained{Standing: "newer here", Here: &newer, There: &old, Causes: []Cause{{"not synced yet", 0}, {"conflict", 0}}}, "for the reason"},
		"declined here":     {Explained{Standing: "newer there", Here: &old, There: &future, Causes: cause("declined here", wire.ReasonClock)}, ""},
		"by the wrong rule": {Explained{Standing: "newer there", Here: &old, There: &future, Causes: cause("declined here", wire.ReasonFull)}, "for the reason"},
		"declined before":   {Explained{Standing: "newer here", Here: &newer, There: &old, Causes: cause("declined before", wire.ReasonClock)}, ""},
		"and now, too":      {Explained{Standing: "newer here", Here: &future, There: &old, Declined: wire.ReasonClock, Causes: cause("declined before", wire.ReasonClock)}, "for the reason"},
		"declined there":    {Explained{Standing: "newer here", Here: &future, There: &old, Declined: wire.ReasonClock, Causes: cause("declined there", wire.ReasonClock)}, ""},
		"lapsed":            {Explained{Standing: "same", Here: &old, There: &old, Lapsed: true}, "nothing of"},
		"other lists":       {Explained{Standing: "held by neither", ListsDiffer: true, Causes: cause("lists differ", 0)}, ""},
	} {
		h := New()
		c.e.Key, c.e.Door = "k", openDoor(c.e.Here)
		h.Explained(&c.e)
		expect(t, name, h, Why, c.wrong)
	}
}

// A wait finds only what is durable, and finds it in the end.
func TestWaits(t *testing.T) {
	old, newer := put("k", "1", version(noon)), put("k", "2", version(noon.Add(time.Second)))
	begun := func(key string) (*History, Await) {
		h := New()
		h.written(0, old)
		h.written(0, newer)
		return h, h.Awaiting(0, []int{1, 2}, key, newer.Version, dump(newer))
	}
	for _, key := range []string{"k", ""} {
		h, w := begun(key)
		h.Observe(1, &newer)
		h.Confirmed(w, 1, 0)
		h.Unheard(w, []int{1})
		expect(t, "it holds it", h, Wait, "")
		h.Unheard(w, []int{1, 2})
		expect(t, "in the end", h, Wait, "all nodes are equal")
		h, w = begun(key)
		h.Observe(1, &old)
		h.Confirmed(w, 1, 0)
		expect(t, "it holds an older one", h, Wait, "holds")
		h, w = begun(key)
		h.Confirmed(w, 1, 0)
		expect(t, "it holds nothing", h, Wait, "holds")
		h, w = begun(key)
		h.Restored(1)
		h.Confirmed(w, 1, 0)
		expect(t, "its disk was replaced meanwhile", h, Wait, "")
	}
}
