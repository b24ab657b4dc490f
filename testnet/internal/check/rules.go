package check

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule names a promise; see the package's documentation.
type Rule string

// The rules.
const (
	Equal     Rule = "equal"
	KeptState Rule = "kept"
	Durable   Rule = "durable"
	Resurrect Rule = "resurrect"
	Early     Rule = "early"
	Aside     Rule = "aside"
	Lost      Rule = "lost"
	Backwards Rule = "backwards"
	Collected Rule = "collected"
	Floor     Rule = "floor"
	Members   Rule = "members"
	Rights    Rule = "rights"
	Identity  Rule = "identity"
	Intended  Rule = "intended"
	Idle      Rule = "idle"
	Honest    Rule = "honest"
	Count     Rule = "count"
	Keys      Rule = "keys"
	Healed    Rule = "healed"
	Full      Rule = "full"
	Why       Rule = "why"
	Wait      Rule = "wait"
	Watch     Rule = "watch"
	Answer    Rule = "answer"
	Scan      Rule = "scan"
	Later     Rule = "later"
	Condition Rule = "condition"
	Rows      Rule = "rows"
	Handover  Rule = "handover"
	Replicas  Rule = "replicas"
	Body      Rule = "body"
	Leak      Rule = "leak"
)

// Violation is one broken promise.
type Violation struct {
	Rule Rule `json:"rule"`
	// Node is the node that shows it; -1 without one.
	Node int    `json:"node"`
	Key  string `json:"key,omitempty"`
	Text string `json:"text"`
}

// String is one line for people.
func (v Violation) String() string {
	where := string(v.Rule)
	if v.Node >= 0 {
		where += fmt.Sprintf(": node %d", v.Node)
	}
	if v.Key != "" {
		where += fmt.Sprintf(": %q", v.Key)
	}
	return where + ": " + v.Text
}

// maxViolations is how many a verdict names: one fault can break a promise for
// every key, and a reader needs a few.
const maxViolations = 100

// verdict gathers violations, each once.
type verdict struct {
	list []Violation
	seen map[Violation]bool
}

func (v *verdict) say(rule Rule, node int, key, format string, args ...any) {
	one := Violation{rule, node, key, fmt.Sprintf(format, args...)}
	if v.seen[one] || len(v.list) >= maxViolations {
		return
	}
	v.seen[one] = true
	v.list = append(v.list, one)
}

// sorted lists the violations in an order that does not depend on that of the
// calls.
func (v *verdict) sorted() []Violation {
	return slices.SortedFunc(slices.Values(v.list), func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Text, b.Text))
	})
}
