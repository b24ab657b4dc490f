package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt"
	"github.com/syncd-io/syncd/reconcile"
)

// Each case has the rules that it breaks, and no others.
func TestRules(t *testing.T) {
	synced := func(h *History, verified, quiet bool, method string, applied int, b0, b1, a0, a1 []dbadapter.Record) {
		h.Synced(&Sync{
			Node: 0, Peer: 1, Gets: true, Gives: true, Quiet: quiet,
			Before: [2][]dbadapter.Record{b0, b1}, After: [2][]dbadapter.Record{a0, a1},
			Report: reconcile.Report{Method: method, Verified: verified, Applied: applied},
		})
	}
	tested := map[Rule]bool{}
	for _, c := range []struct {
		name string
		want string // the rules, with a space between
		run  func(h *History) []Final
	}{
		{"nothing", "", func(*History) []Final { return nil }},
		{"all equal", "", func(h *History) []Final {
			h.written(0, red)
			h.written(1, erased)
			h.written(1, other)
			h.Observe(0, &erased)
			return []Final{final(0, 0, erased, other), final(1, 0, erased, other)}
		}},

		{"equal: a record is missing", "equal", func(h *History) []Final {
			h.written(0, red)
			return []Final{final(0, 0, red), final(1, 0)}
		}},
		{"equal: a record is old", "equal", func(h *History) []Final {
			h.written(0, red)
			h.written(1, blue)
			return []Final{final(0, 0, red), final(1, 0, blue)}
		}},
		{"equal: a digest differs", "equal", func(h *History) []Final {
			h.written(0, red)
			a, b := final(0, 0, red), final(1, 0, red)
			b.Kept.Digest[0]++
			b.Recomputed = b.Kept
			return []Final{a, b}
		}},
		{"groups that do not reach each other", "", func(h *History) []Final {
			h.written(0, red)
			return []Final{final(0, 0, red), final(1, 1)}
		}},
		{"a node that is down", "", func(h *History) []Final {
			h.written(0, red)
			return []Final{final(0, 0, red), {Node: 1, Down: true}}
		}},

		{"kept: the digest", "kept equal", func(h *History) []Final {
			h.written(0, red)
			a := final(0, 0, red)
			a.Kept.Digest[0]++
			return []Final{a, final(1, 0, red)}
		}},
		{"kept: the count", "kept", func(h *History) []Final {
			h.written(0, red)
			a := final(0, 0, red)
			a.Kept.Records++
			return []Final{a}
		}},
		{"kept: both counts", "kept", func(h *History) []Final {
			h.written(0, red)
			a := final(0, 0, red)
			a.Kept.Records++
			a.Recomputed.Records++
			return []Final{a}
		}},
		{"kept: the cells", "kept", func(h *History) []Final {
			a := final(0, 0)
			a.Kept.Cells = []iblt.Cell{{Count: 1}}
			return []Final{a}
		}},
		{"kept: a key twice", "kept", func(h *History) []Final {
			h.written(0, red)
			return []Final{final(0, 0, red, red)}
		}},

		{"durable: an acknowledged write is gone", "durable", func(h *History) []Final {
			h.written(0, red)
			return []Final{final(0, 0), final(1, 0)}
		}},
		{"durable: an older one stands", "durable backwards", func(h *History) []Final {
			h.written(0, red)
			h.written(0, blue)
			return []Final{final(0, 0, red)}
		}},
		{"durable: an older one stands elsewhere", "durable equal", func(h *History) []Final {
			h.written(0, red)
			h.written(1, blue)
			return []Final{final(0, 0, red), final(1, 0)}
		}},
		{"durable: a tombstone is gone", "durable", func(h *History) []Final {
			h.written(0, erased)
			return []Final{final(0, 0)}
		}},
		{"durable: after a start", "durable", func(h *History) []Final {
			h.written(0, red)
			h.Started(0, nil)
			return []Final{final(0, 0, red)}
		}},
		{"what only a node that is down has seen", "", func(h *History) []Final {
			h.written(0, red)
			return []Final{{Node: 0, Down: true}, final(1, 0)}
		}},
		{"what only a restored node has seen", "", func(h *History) []Final {
			h.written(0, red)
			h.Restored(0)
			h.Started(0, nil)
			return []Final{final(0, 0), final(1, 0)}
		}},
		{"durable: what another has seen of a restored node", "durable", func(h *History) []Final {
			h.written(0, red)
			h.Observe(1, &red)
			h.Restored(0)
			return []Final{final(0, 0), final(1, 0)}
		}},
		{"durable: a copy that lacks what was there when it was made", "durable", func(h *History) []Final {
			h.written(0, red)
			h.Copied(0)
			h.written(0, other)
			h.Restored(0)
			h.Started(0, nil)
			return []Final{final(0, 0)}
		}},
		{"a copy that holds what was there when it was made", "", func(h *History) []Final {
			h.written(0, red)
			h.Copied(0)
			h.written(0, other)
			h.Restored(0)
			h.Started(0, dump(red))
			return []Final{final(0, 0, red)}
		}},
		{"backwards: a copy that is older than when it was made", "backwards durable", func(h *History) []Final {
			h.written(0, red)
			h.written(0, blue)
			h.Copied(0)
			h.Restored(0)
			return []Final{final(0, 0, red)}
		}},
		{"a copy that is restored twice", "durable", func(h *History) []Final {
			h.written(0, red)
			h.Copied(0)
			h.Restored(0)
			h.written(0, other)
			h.Restored(0)
			h.Started(0, dump(red))
			h.Restored(0)
			return []Final{final(0, 0)}
		}},
		{"durable: a restored node, then a write", "durable", func(h *History) []Final {
			h.Restored(0)
			h.written(0, red)
			return []Final{final(0, 0)}
		}},
		{"dominated by a winner", "", func(h *History) []Final {
			h.written(0, red)
			h.written(1, blue)
			return []Final{final(0, 0, blue), final(1, 0, blue)}
		}},

		{"resurrect: at a node", "resurrect", func(h *History) []Final {
			h.written(0, red)
			h.written(0, erased)
			h.Observe(0, &red)
			h.Observe(0, &erased)
			return []Final{final(0, 0, erased)}
		}},
		{"resurrect: in the end", "resurrect", func(h *History) []Final {
			h.written(0, red)
			h.Observe(1, &red)
			h.written(0, erased)
			return []Final{final(0, 0, red), final(1, 0, red)}
		}},
		{"written again after a deletion", "", func(h *History) []Final {
			h.written(0, erased)
			again := put("k", "red", at(5))
			h.written(0, again)
			return []Final{final(0, 0, again)}
		}},

		{"backwards", "backwards", func(h *History) []Final {
			h.written(0, red)
			h.written(0, blue)
			h.Observe(0, &red)
			return []Final{final(0, 0, blue)}
		}},
		{"backwards: another content of the same date", "backwards", func(h *History) []Final {
			a, b := put("k", "a", dbadapter.Version{Clock: 5}), put("k", "b", dbadapter.Version{Clock: 5})
			if b.Compare(&a) < 0 {
				a, b = b, a
			}
			h.written(0, a)
			h.written(0, b)
			h.Observe(0, &a)
			return []Final{final(0, 0, b)}
		}},
		{"backwards: a write that comes before what it overwrites", "backwards", func(h *History) []Final {
			h.written(1, blue)
			h.Observe(0, &blue)
			h.written(0, red)
			return []Final{final(0, 0, blue)}
		}},
		{"a write that crosses a later one", "", func(h *History) []Final {
			op := h.Intend(0, "k", false, []byte("red"))
			h.written(1, blue)
			h.Observe(0, &blue)
			h.Acknowledge(op, red.Version)
			return []Final{final(0, 0, blue)}
		}},
		{"a write to a restored disk", "", func(h *History) []Final {
			h.written(0, blue)
			op := h.Intend(0, "k", false, []byte("red"))
			h.Restored(0)
			h.Acknowledge(op, red.Version)
			return []Final{final(0, 0, red)}
		}},
		{"an import of older data", "", func(h *History) []Final {
			v := dbadapter.Version{Clock: 1}
			h.written(0, blue)
			h.written(0, put("k", "old", v))
			return []Final{final(0, 0, blue)}
		}},
		{"once after a restored copy", "", func(h *History) []Final {
			h.written(0, red)
			h.written(0, blue)
			h.Restored(0)
			h.Started(0, dump(red))
			return []Final{final(0, 0, red)}
		}},
		{"backwards: twice after one restored copy", "backwards", func(h *History) []Final {
			h.written(0, red)
			h.written(0, blue)
			h.Restored(0)
			h.Started(0, dump(red))
			h.Observe(0, &blue)
			h.Observe(0, &red)
			return []Final{final(0, 0, blue)}
		}},

		{"identity: two contents", "identity", func(h *History) []Final {
			h.written(0, put("k", "a", at(5)))
			h.Restored(0)
			h.written(0, put("k", "b", at(5)))
			h.Restored(0)
			return []Final{final(0, 0)}
		}},
		{"identity: a deletion and a value", "identity", func(h *History) []Final {
			h.written(0, put("k", "", at(5)))
			h.Restored(0)
			h.written(0, gone("k", at(5)))
			h.Restored(0)
			return []Final{final(0, 0)}
		}},
		{"identity: two keys", "identity", func(h *History) []Final {
			a, b := put("k", "a", at(5)), put("l", "a", at(5))
			h.written(0, a)
			h.written(0, b)
			return []Final{final(0, 0, a, b)}
		}},
		{"imports of one date", "", func(h *History) []Final {
			v := dbadapter.Version{Clock: 5}
			a, b := put("k", "a", v), put("l", "b", v)
			h.written(0, a)
			h.written(0, b)
			return []Final{final(0, 0, a, b)}
		}},

		{"intended: out of nowhere", "intended", func(h *History) []Final {
			return []Final{final(0, 0, red)}
		}},
		{"intended: seen, and gone again", "intended durable", func(h *History) []Final {
			h.Observe(0, &red)
			return []Final{final(0, 0)}
		}},
		{"intended: refused, yet there", "intended", func(h *History) []Final {
			h.Refuse(h.Intend(0, "k", false, []byte("red")))
			return []Final{final(0, 0, red)}
		}},
		{"intended: another version than was acknowledged", "intended", func(h *History) []Final {
			h.Acknowledge(h.Intend(0, "k", false, []byte("red")), at(0))
			return []Final{final(0, 0, red)}
		}},
		{"an unknown outcome, there", "", func(h *History) []Final {
			h.Intend(0, "k", false, []byte("red"))
			return []Final{final(0, 0, red)}
		}},
		{"an unknown outcome, not there", "", func(h *History) []Final {
			h.Intend(0, "k", false, []byte("red"))
			return []Final{final(0, 0)}
		}},
		{"intended: one unknown outcome, two versions", "intended", func(h *History) []Final {
			h.Intend(0, "k", false, []byte("red"))
			h.Observe(0, &red)
			return []Final{final(0, 0, put("k", "red", at(2)))}
		}},
		{"seen before it is acknowledged", "", func(h *History) []Final {
			h.Intend(0, "k", false, []byte("red"))
			op := h.Intend(0, "k", false, []byte("red"))
			h.Observe(0, &red)
			h.Acknowledge(op, red.Version)
			return []Final{final(0, 0, red)}
		}},

		{"idle", "idle", func(h *History) []Final {
			h.Synced(&Sync{Again: true, Peer: 1, Report: reconcile.Report{Verified: true, Sent: 1}})
			return nil
		}},
		{"idle: not verified", "idle", func(h *History) []Final {
			h.Synced(&Sync{Again: true, Peer: 1})
			return nil
		}},
		{"a second sync that moves nothing", "", func(h *History) []Final {
			h.Synced(&Sync{Again: true, Peer: 1, Report: reconcile.Report{Verified: true, Method: "same"}})
			return nil
		}},

		{"honest: this side lacks a record", "honest", func(h *History) []Final {
			synced(h, true, false, "sketch", 0, dump(red), dump(red, other), dump(red), dump(red, other))
			return nil
		}},
		{"honest: the peer holds an older one", "honest", func(h *History) []Final {
			synced(h, true, true, "sketch", 0, dump(blue), dump(red), dump(blue), dump(red))
			return nil
		}},
		{"honest: same, said of differing sets", "honest", func(h *History) []Final {
			synced(h, true, false, "same", 0, dump(blue), dump(red), dump(blue), dump(blue))
			return nil
		}},
		{"differing sets, not called verified", "", func(h *History) []Final {
			synced(h, false, false, "sketch", 0, dump(red), dump(red, other), dump(red), dump(red, other))
			return nil
		}},
		{"a peer that is down meanwhile", "", func(h *History) []Final {
			synced(h, true, true, "sketch", 0, dump(red, other), dump(red), dump(red, other), nil)
			return nil
		}},
		{"a verified sync, and writes meanwhile", "", func(h *History) []Final {
			synced(h, true, false, "sketch", 1, dump(red), dump(red, other), dump(erased, other), dump(blue, other))
			return nil
		}},

		{"count: too many", "count", func(h *History) []Final {
			synced(h, true, false, "sketch", 2, dump(red), dump(red, other), dump(red, other), dump(red, other))
			return nil
		}},
		{"count: too few", "count", func(h *History) []Final {
			synced(h, true, true, "sketch", 1, dump(red), dump(blue, other), dump(blue, other), dump(blue, other))
			return nil
		}},
		{"fewer, for somebody else wrote", "", func(h *History) []Final {
			synced(h, true, false, "sketch", 1, dump(red), dump(blue, other), dump(blue, other), dump(blue, other))
			return nil
		}},
		{"count: another number than the store took", "count", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 1, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 2}})
			return nil
		}},
		{"count: fewer than the store took", "count", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 2, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"what the store took is what is counted", "", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 1, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"fewer than were taken by a sync that failed in the middle", "", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 2, Counted: true, Failed: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"count: applied in a dry run", "count", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Dry: true, Before: [2][]dbadapter.Record{nil, dump(red)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"count: sent in a dry run", "count", func(h *History) []Final {
			h.Synced(&Sync{Gives: true, Dry: true, Before: [2][]dbadapter.Record{dump(red), nil}, Report: reconcile.Report{Sent: 1}})
			return nil
		}},
		{"a dry run is verified of sets that differ", "", func(h *History) []Final {
			h.Synced(&Sync{
				Gives: true, Gets: true, Dry: true, Quiet: true, Before: [2][]dbadapter.Record{dump(red), dump(other)}, After: [2][]dbadapter.Record{dump(red), dump(other)},
				Report: reconcile.Report{Verified: true, Method: "sketch"},
			})
			return nil
		}},
		{"count: applied where nothing is asked for", "count", func(h *History) []Final {
			h.Synced(&Sync{Gives: true, Before: [2][]dbadapter.Record{nil, dump(red)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},

		{"leak", "leak", func(h *History) []Final {
			h.Measured("goroutines", 12, 10)
			return nil
		}},
		{"no leak", "", func(h *History) []Final {
			h.Measured("goroutines", 10, 10)
			return nil
		}},
	} {
		var h History
		finals := c.run(&h)
		verdict := h.Check(finals)
		var rules []string
		for _, v := range verdict {
			rules = append(rules, string(v.Rule))
		}
		got := slices.Compact(rules)
		want := strings.Fields(c.want)
		for _, rule := range want {
			tested[Rule(rule)] = true
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v; %v", c.name, got, want, verdict)
		}
		if again := h.Check(finals); !slices.Equal(again, verdict) {
			t.Errorf("%s: a second verdict differs: %v, %v", c.name, verdict, again)
		}
	}
	for _, rule := range Rules() {
		if !tested[rule] {
			t.Errorf("no case breaks the rule %q", rule)
		}
	}
}
