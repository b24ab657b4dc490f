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

// story is a history in sentences, and what the nodes hold at its end; "alone" is a node that
// the others do not reach.
func story(text string) func(h *History) []Final {
	records := map[string]dbadapter.Record{"red": red, "blue": blue, "erased": erased, "other": other}
	return func(h *History) (finals []Final) {
		for sentence := range strings.SplitSeq(text, ". ") {
			words := strings.Fields(sentence)
			if len(words) == 0 {
				continue
			}
			node := int(words[0][0] - '0')
			var of []dbadapter.Record
			for _, name := range words[2:] {
				of = append(of, records[name])
			}
			switch words[1] {
			case "writes":
				h.written(node, of[0])
			case "asks": // and is not answered
				h.Intend(node, string(of[0].Key), of[0].Deleted, of[0].Value)
			case "sees":
				h.Observe(node, &of[0])
			case "copied":
				h.Copied(node)
			case "restored":
				h.Restored(node)
			case "starts":
				h.Started(node, of)
			case "holds":
				finals = append(finals, final(node, 0, of...))
			case "alone":
				finals = append(finals, final(node, 1, of...))
			case "down":
				finals = append(finals, Final{Node: node, Down: true})
			default:
				panic(sentence)
			}
		}
		return finals
	}
}

// Each case breaks its named rules, and no others.
func TestRules(t *testing.T) {
	tested := map[Rule]bool{}
	for _, c := range slices.Concat(syncCases(), keyCases(), expiryCases(), listedCases(), []ruleCase{
		{"nothing", "", func(*History) []Final { return nil }},
		{"all equal", "", story("0 writes red. 1 writes erased. 1 writes other. 0 sees erased. 0 holds erased other. 1 holds erased other")},

		{"equal: a record is missing", "equal", story("0 writes red. 0 holds red. 1 holds")},
		{"equal: a record is old", "equal", story("0 writes red. 1 writes blue. 0 holds red. 1 holds blue")},
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
		{"groups that do not reach each other", "", story("0 writes red. 0 holds red. 1 alone")},
		{"a node that is down", "", story("0 writes red. 0 holds red. 1 down")},

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
		{"kept: a key twice", "kept", story("0 writes red. 0 holds red red")},

		{"durable: an acknowledged write is gone", "durable", story("0 writes red. 0 holds. 1 holds")},
		{"durable: an older one stands", "durable backwards", story("0 writes red. 0 writes blue. 0 holds red")},
		{"durable: an older one stands elsewhere", "durable equal", story("0 writes red. 1 writes blue. 0 holds red. 1 holds")},
		{"durable: a tombstone is gone", "durable", story("0 writes erased. 0 holds")},
		{"durable: after a start", "durable", story("0 writes red. 0 starts. 0 holds red")},
		{"what only a node that is down has seen", "", story("0 writes red. 0 down. 1 holds")},
		{"what only a restored node has seen", "", story("0 writes red. 0 restored. 0 starts. 0 holds. 1 holds")},
		{"durable: what another has seen of a restored node", "durable", story("0 writes red. 1 sees red. 0 restored. 0 holds. 1 holds")},
		{"durable: a copy that lacks what was there when it was made", "durable", story("0 writes red. 0 copied. 0 writes other. 0 restored. 0 starts. 0 holds")},
		{"a copy that holds what was there when it was made", "", story("0 writes red. 0 copied. 0 writes other. 0 restored. 0 starts red. 0 holds red")},
		{"backwards: a copy that is older than when it was made", "backwards durable", story("0 writes red. 0 writes blue. 0 copied. 0 restored. 0 holds red")},
		{"a copy that is restored twice", "durable", story("0 writes red. 0 copied. 0 restored. 0 writes other. 0 restored. 0 starts red. 0 restored. 0 holds")},
		{"durable: a restored node, then a write", "durable", story("0 restored. 0 writes red. 0 holds")},
		{"dominated by a winner", "", story("0 writes red. 1 writes blue. 0 holds blue. 1 holds blue")},

		{"resurrect: at a node", "resurrect", story("0 writes red. 0 writes erased. 0 sees red. 0 sees erased. 0 holds erased")},
		{"resurrect: in the end", "resurrect", story("0 writes red. 1 sees red. 0 writes erased. 0 holds red. 1 holds red")},
		{"written again after a deletion", "", func(h *History) []Final {
			h.written(0, erased)
			again := put("k", "red", at(5))
			h.written(0, again)
			return []Final{final(0, 0, again)}
		}},

		{"backwards", "backwards", story("0 writes red. 0 writes blue. 0 sees red. 0 holds blue")},
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
		{"backwards: a write that comes before what it overwrites", "backwards", story("1 writes blue. 0 sees blue. 0 writes red. 0 holds blue")},
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
		{"once after a restored copy", "", story("0 writes red. 0 writes blue. 0 restored. 0 starts red. 0 holds red")},
		{"backwards: twice after one restored copy", "backwards", story("0 writes red. 0 writes blue. 0 restored. 0 starts red. 0 sees blue. 0 sees red. 0 holds blue")},

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

		{"intended: out of nowhere", "intended", story("0 holds red")},
		{"intended: seen, and gone again", "intended durable", story("0 sees red. 0 holds")},
		{"intended: refused, yet there", "intended", func(h *History) []Final {
			h.Refuse(h.Intend(0, "k", false, []byte("red")))
			return []Final{final(0, 0, red)}
		}},
		{"intended: another version than was acknowledged", "intended", func(h *History) []Final {
			h.Acknowledge(h.Intend(0, "k", false, []byte("red")), at(0))
			return []Final{final(0, 0, red)}
		}},
		{"an unknown outcome, there", "", story("0 asks red. 0 holds red")},
		{"an unknown outcome, not there", "", story("0 asks red. 0 holds")},
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
