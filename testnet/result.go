package testnet

import (
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// Violation is a broken promise. Its rules:
//
//	equal, kept, durable, resurrect, early, aside, lost, collected, floor, backwards,
//	members, rights, identity, intended, idle, honest, count, keys,
//	healed, full, why, wait, watch, answer, handover, replicas, leak
//	                      what the sync promises; testnet/internal/check says
//	                      each in a line
//	status                what a node tells of how it is, or of all that it
//	                      holds, is not so
//	version               nodes of different protocol versions did not refuse
//	                      one another
//	sound                 a session of two honest nodes broke the protocol, did
//	                      not prove its own result, found no end by cells, or
//	                      failed after everything was healed
//	overtaken             a write got a version below the one it was to replace
//	damage                a node found its data damaged without a fault of the disk
//	endless               the run did not end
//	panic                 the code under test panicked
type Violation = check.Violation

// The rules of a run, besides the checker's.
const (
	ruleStatus    check.Rule = "status"
	ruleVersion   check.Rule = "version"
	ruleSound     check.Rule = "sound"
	ruleOvertaken check.Rule = "overtaken"
	ruleDamage    check.Rule = "damage"
	ruleEndless   check.Rule = "endless"
	rulePanic     check.Rule = "panic"
)

// Result is the outcome of a run.
type Result struct {
	Nodes    int    `json:"nodes"`
	Seed     uint64 `json:"seed"`
	Scenario string `json:"scenario"`
	// Tier is "A": simulated, and replayable.
	Tier string `json:"tier"`
	// Converged says that all nodes that can run were equal in the end.
	Converged bool `json:"converged"`
	// Violations are the broken promises; empty, not nil, if all hold.
	Violations []Violation `json:"violations"`
	// VirtualMS is how long the run took in virtual time, WallMS in real time.
	VirtualMS int64   `json:"virtual_ms"`
	WallMS    float64 `json:"wall_ms"`
	// TraceHash is a hash of all events, in order: the same for the same plan.
	TraceHash *string `json:"trace_hash"`
	// Unmet lists the expectations of the scenario that did not hold, in words.
	Unmet []string `json:"unmet,omitempty"`
	// SettledMS is how long the nodes took to become equal after the last
	// event, in virtual time; -1 if they did not.
	SettledMS int64 `json:"settled_ms"`
	// Asks is how many waits began, and how many questions were answered.
	Asks int `json:"asks"`
	// Routed is how many reads and writes of shards were answered.
	Routed int `json:"routed,omitempty"`
	// Lost is how many reads found that no host has a value.
	Lost int `json:"lost,omitempty"`
	// Nowhere is how many reads of them a locator answered without a request.
	Nowhere int `json:"nowhere,omitempty"`
	// Watched is how many events programs were told by watches.
	Watched int `json:"watched"`
	// Events, Sessions and Frames are numbers of the run; Refused counts the
	// refusals by reason.
	Events   int `json:"events"`
	Sessions int `json:"sessions"`
	// Repairs counts the sessions that did not prove themselves by their cells.
	Repairs int `json:"repairs"`
	// Parts counts, of both sides, the sessions that were parts of a large sync.
	Parts int `json:"parts"`
	// Full counts the records that nodes lacked in the end, of all nodes, since their
	// indices were full, before a person made room.
	Full    int            `json:"full"`
	Frames  int            `json:"frames"`
	Refused map[string]int `json:"refused,omitempty"`
	// Damaged are the nodes that found their data damaged, and stay down.
	Damaged []int `json:"damaged,omitempty"`
	// Series are samples of the number of different sets over time.
	Series []Point `json:"series,omitempty"`

	outcome plan.Outcome
	plan    *plan.Plan
}

// Point is a moment of a run.
type Point struct {
	VirtualMS int64 `json:"virtual_ms"`
	// Up is how many nodes run, Sets how many different sets of records they
	// hold; 1 means that all are equal. Records is the size of the largest.
	Up      int    `json:"up"`
	Sets    int    `json:"sets"`
	Records uint64 `json:"records"`
}

// Passed reports whether the run met its expectations, and broke no promise but
// the one that its scenario expects to be broken.
func (r *Result) Passed() bool { return len(r.Unmet) == 0 }
