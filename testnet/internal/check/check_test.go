package check

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/iblt/rateless"
)

// ruleCase is a history, and the rules that it breaks, with a space between.
type ruleCase struct {
	name string
	want string
	run  func(h *History) []Final
}

// Each case breaks its named rules, and no others.
func TestRules(t *testing.T) {
	tested := map[Rule]bool{}
	for _, c := range slices.Concat(syncCases(), keyCases(), expiryCases(), listedCases(), []ruleCase{
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
		{"what could be collected differs where nothing can be done about a silent member", "", func(h *History) []Final {
			h.written(0, erased)
			a, b := final(0, 0, erased), final(1, 0)
			a.Stuck, b.Stuck = true, true
			return []Final{a, b}
		}},
		{"equal: what is alive differs there, too", "equal", func(h *History) []Final {
			h.written(0, red)
			a, b := final(0, 0, red), final(1, 0)
			a.Stuck, b.Stuck = true, true
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
		{"kept: the node's own audit", "kept", func(h *History) []Final {
			a := final(0, 0)
			a.Audit = errors.New("the digest differs")
			return []Final{a}
		}},
		{"kept: the cells", "kept", func(h *History) []Final {
			a := final(0, 0)
			a.Kept.Cells = []rateless.Cell{{Count: 1}}
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

		{"leak", "leak", func(h *History) []Final {
			h.Measured("goroutines", 12, 10)
			return nil
		}},
		{"no leak", "", func(h *History) []Final {
			h.Measured("goroutines", 10, 10)
			return nil
		}},
	}) {
		h := New()
		finals := c.run(h)
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
	for _, rule := range []Rule{Equal, KeptState, Durable, Resurrect, Lost, Backwards, Identity, Intended, Idle, Honest, Count, Leak} {
		if !tested[rule] {
			t.Errorf("no case breaks the rule %q", rule)
		}
	}
}
