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
	for name, c := range map[string]struct {
		do   func(h *History)
		want []Rule
	}{
		"all have held it": {func(h *History) {
			h.Observe(1, gone)
			h.Collected(0, gone, []int{0, 1})
			h.Collected(1, gone, []int{0, 1})
		}, nil},
		"one has not": {func(h *History) { h.Collected(0, gone, []int{0, 1}) }, []Rule{Early}},
		"one has not, and is not waited for": {func(h *History) {
			h.Excuse()
			h.Collected(0, gone, []int{0, 1})
		}, nil},
		"set aside": {func(h *History) { h.SetAside(0, gone, time.Time{}) }, []Rule{Aside}},
		"set aside when it had expired": {func(h *History) {
			h.SetAside(0, &expires, now)
		}, nil},
		"set aside before it has expired": {func(h *History) {
			h.SetAside(0, &expires, now.Add(-time.Second))
		}, []Rule{Aside}},
		"set aside by one that two admins gave different rights apart": {func(h *History) {
			h.Founded(1)
			h.Granting(1, 0, "read")
			h.Granting(2, 0, "write")
			h.SetAside(0, gone, time.Time{})
		}, nil},
		"set aside by one that two admins gave the same right": {func(h *History) {
			h.Founded(1)
			h.Granting(1, 0, "write")
			h.Granting(2, 0, "admin")
			h.SetAside(0, gone, time.Time{})
		}, []Rule{Aside}},
		"set aside after a copy": {func(h *History) {
			h.Restored(1)
			h.SetAside(0, gone, time.Time{})
		}, nil},
		"back": {func(h *History) {
			h.Observe(1, gone)
			h.Collected(0, gone, []int{0, 1})
			h.Collected(1, gone, []int{0, 1})
			h.Observe(0, live)
			h.Observe(1, live)
		}, []Rule{Resurrect}},
		"back, and only a node that recovers had collected it": {func(h *History) {
			h.Restored(1)
			h.Recovering(0, true)
			h.Collected(0, gone, []int{0, 1})
			h.Recovering(0, false)
			h.Observe(0, live)
			h.Observe(1, live)
		}, nil},
		"back, and the node that had collected it recovers": {func(h *History) {
			h.Restored(1)
			h.Collected(0, gone, []int{0, 1})
			h.Recovering(0, true)
			h.Observe(0, live)
			h.Observe(1, live)
		}, nil},
		"back, and a node had collected it": {func(h *History) {
			h.Restored(1)
			h.Recovering(0, true)
			h.Recovering(0, false)
			h.Collected(0, gone, []int{0, 1})
			h.Observe(0, live)
			h.Observe(1, live)
		}, []Rule{Resurrect}},
		"announced before a crash": {func(h *History) {
			h.Removing(0, gone, false)
			h.Started(0, nil)
		}, nil},
		"gone after a crash": {func(h *History) { h.Started(0, nil) }, []Rule{Durable}},
	} {
		t.Run(name, func(t *testing.T) {
			h := New()
			acknowledged(h, live)
			h.Observe(0, live)
			acknowledged(h, gone)
			h.Observe(0, gone)
			c.do(h)
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
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
