package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// What the rules say of removals: a tombstone that a member has never held is
// collected too early, a live record that is set aside without a reason is a fault,
// and what was collected must not be there in the end.
func TestRemovals(t *testing.T) {
	version := func(clock dbadapter.Timestamp) dbadapter.Version {
		return dbadapter.Version{Clock: clock, Writer: 1, Incarnation: 1}
	}
	now := dbadapter.Epoch.AddDate(6, 0, 0)
	live := &dbadapter.Record{Key: []byte("k"), Version: version(1)}
	gone := &dbadapter.Record{Key: []byte("k"), Version: version(2), Deleted: true}
	expires := gone.Clone()
	expires.Expires = dbadapter.TimestampAt(now)
	acknowledged := func(h *History, r *dbadapter.Record) {
		h.Acknowledge(h.Intend(0, "k", r.Deleted, nil), r.Version)
	}
	// The steps of a case.
	observed := func(node int, r *dbadapter.Record) func(h *History) { return func(h *History) { h.Observe(node, r) } }
	collected := func(node int) func(h *History) { return func(h *History) { h.Collected(node, gone, []int{0, 1}) } }
	aside := func(r *dbadapter.Record, now time.Time) func(h *History) {
		return func(h *History) { h.SetAside(0, r, now) }
	}
	given := func(roles ...string) func(h *History) {
		return func(h *History) {
			h.Founded(1)
			for i, role := range roles {
				h.Granting(1+i, 0, role)
			}
		}
	}
	recovers := func(does bool) func(h *History) { return func(h *History) { h.Recovering(0, does) } }
	restored := func(h *History) { h.Restored(1) }
	restarted := func(h *History) { h.Started(0, nil) }
	for name, c := range map[string]struct {
		want  Rule
		steps []func(h *History)
	}{
		"all have held it":                   {"", steps(observed(1, gone), collected(0), collected(1))},
		"one has not":                        {Early, steps(collected(0))},
		"one has not, and is not waited for": {"", steps((*History).Excuse, collected(0))},
		"set aside":                          {Aside, steps(aside(gone, time.Time{}))},
		"set aside when it had expired":      {"", steps(aside(&expires, now))},
		"set aside before it has expired":    {Aside, steps(aside(&expires, now.Add(-time.Second)))},
		"set aside by one that two admins gave different rights apart": {"", steps(given("read", "write"), aside(gone, time.Time{}))},
		"set aside by one that two admins gave the same right":         {Aside, steps(given("write", "admin"), aside(gone, time.Time{}))},
		"set aside after a copy":                                       {"", steps(restored, aside(gone, time.Time{}))},
		"back":                                                         {Resurrect, steps(observed(1, gone), collected(0), collected(1), observed(0, live), observed(1, live))},
		"back, and only a node that recovers had collected it":         {"", steps(restored, recovers(true), collected(0), recovers(false), observed(0, live), observed(1, live))},
		"back, and the node that had collected it recovers":            {"", steps(restored, collected(0), recovers(true), observed(0, live), observed(1, live))},
		"back, and a node had collected it":                            {Resurrect, steps(restored, recovers(true), recovers(false), collected(0), observed(0, live), observed(1, live))},
		"announced before a crash":                                     {"", steps(func(h *History) { h.Removing(0, gone, false) }, restarted)},
		"gone after a crash":                                           {Durable, steps(restarted)},
	} {
		t.Run(name, func(t *testing.T) {
			h := New()
			acknowledged(h, live)
			h.Observe(0, live)
			acknowledged(h, gone)
			h.Observe(0, gone)
			for _, step := range c.steps {
				step(h)
			}
			dumps := [2][]dbadapter.Record{}
			if strings.HasPrefix(name, "back") {
				dumps = [2][]dbadapter.Record{{*live}, {*live}}
			}
			var got []Rule
			for _, v := range h.Check([]Final{{Node: 0, Dump: dumps[0]}, {Node: 1, Dump: dumps[1]}}) {
				if v.Rule != KeptState && !slices.Contains(got, v.Rule) {
					got = append(got, v.Rule)
				}
			}
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []Rule{c.want}) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func steps(all ...func(h *History)) []func(h *History) { return all }
