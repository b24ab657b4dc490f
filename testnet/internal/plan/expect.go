package plan

import (
	"fmt"
	"maps"
	"slices"
)

// Expect is the expected outcome of a run. By default all nodes converge and the
// checker finds no violation. Its lines:
//
//	expect converged        all nodes that are up are equal in the end (the default)
//	expect corrupt 2        node 2 finds its data damaged, says so, and stays down
//	expect refused future   a node refuses something for that reason
//	expect cause lapsed     an answer to why names that cause; where a record is
//	                        declined the rule follows, as in "declined here: floor"
//	expect violation RULE   the checker finds a breach of that rule, and of no other
//
// What a single read is to come to stands behind it ([Finding]).
//
// All nodes that are not named as corrupt must be up at the end.
type Expect struct {
	// Corrupt are the nodes that must find their data damaged, ascending.
	Corrupt []int
	// Refused are reasons that must occur at least once, in alphabetical order.
	Refused []Refusal
	// Causes are what answers to why must name at least once, in alphabetical order.
	Causes []string
	// Violation, if not empty, is the rule that the checker must find broken.
	Violation string
}

// Refusal is a reason for which a node refuses a write, a record or a session.
type Refusal string

// The refusals that a scenario can expect.
const (
	// RefusedDenied: a session's proof of membership does not hold.
	RefusedDenied Refusal = "denied"
	// RefusedExpired: a watch whose cursor has expired.
	RefusedExpired Refusal = "expired"
	// RefusedFull: a write that the disk has no room for.
	RefusedFull Refusal = "full"
	// RefusedFuture: a record whose version is too far ahead of the clock.
	RefusedFuture Refusal = "future"
	// RefusedLimit: a write or a record whose index has no room for its key.
	RefusedLimit Refusal = "limit"
	// RefusedProtocol: a session that broke the protocol.
	RefusedProtocol Refusal = "protocol"
	// RefusedRemoved: a session of a node that has been removed.
	RefusedRemoved Refusal = "removed"
	// RefusedTimeout: a session of which a frame did not come in time.
	RefusedTimeout Refusal = "timeout"
	// RefusedUnproved: a session whose differences did not explain the gap between
	// the digests.
	RefusedUnproved Refusal = "unproved"
	// RefusedVersion: a session of another protocol version.
	RefusedVersion Refusal = "version"
)

// Refusals lists all of them, in alphabetical order.
func Refusals() []Refusal {
	return []Refusal{RefusedDenied, RefusedExpired, RefusedFull, RefusedFuture, RefusedLimit, RefusedProtocol, RefusedRemoved, RefusedTimeout, RefusedUnproved, RefusedVersion}
}

// Outcome is the part of a run's result that an expectation can name.
type Outcome struct {
	// Converged says that all nodes that are up hold the same.
	Converged bool
	// Corrupt are the nodes that found their data damaged, Down all that are
	// not up in the end.
	Corrupt, Down []int
	// Refused counts the refusals by reason.
	Refused map[Refusal]int
	// Causes counts the causes that answers to why have named.
	Causes map[string]int
	// Misread are reads, in words, that had another outcome than was expected of them.
	Misread []string
	// Violations are the rules that the checker found broken.
	Violations []string
}

// Unmet lists, in words, how an outcome differs from what was expected; nil
// means it does not.
func (e Expect) Unmet(o Outcome) (unmet []string) {
	say := func(format string, args ...any) { unmet = append(unmet, fmt.Sprintf(format, args...)) }
	if e.Violation != "" {
		if !slices.Contains(o.Violations, e.Violation) {
			say("the rule %q was expected to be broken, and was not", e.Violation)
		}
	} else if !o.Converged {
		say("the nodes have not converged")
	}
	for _, v := range slices.Compact(slices.Sorted(slices.Values(o.Violations))) {
		if v != e.Violation {
			say("the rule %q is broken", v)
		}
	}
	for _, n := range e.Corrupt {
		if !slices.Contains(o.Corrupt, n) {
			say("node %d was expected to find its data damaged, and did not", n)
		}
	}
	for _, n := range o.Corrupt {
		if !slices.Contains(e.Corrupt, n) {
			say("node %d found its data damaged", n)
		}
	}
	for _, n := range o.Down {
		if !slices.Contains(e.Corrupt, n) && !slices.Contains(o.Corrupt, n) {
			say("node %d is down", n)
		}
	}
	for _, c := range e.Causes {
		if o.Causes[c] == 0 {
			say("an answer to why was expected to name %q, and the causes were %q", c, slices.Sorted(maps.Keys(o.Causes)))
		}
	}
	unmet = append(unmet, o.Misread...)
	for _, r := range e.Refused {
		if o.Refused[r] == 0 {
			say("something was expected to be refused as %q, and nothing was", r)
		}
	}
	return unmet
}
