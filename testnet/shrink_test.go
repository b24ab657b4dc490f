package testnet

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// Events without influence on the failure go, the others stay.
func TestShrink(t *testing.T) {
	run := func(text string) Result {
		t.Helper()
		res, err := Run(t.Context(), Config{Scenario: text})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := run(`
nodes 4
net delay=10s
at 1s random writes=30 keys=10 faults=4 profile=rough for 20s
at 21s flip 3 1000
at 22s crash 3
at 25s put 2 last "x"
settle 1s
expect refused timeout
expect corrupt 3
`)
	if res.Passed() {
		t.Fatal("no failure to begin with")
	}
	small, err := res.Shrink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if small.Passed() || !small.breaksOne(res.broken()) || small.Nodes != 2 || len(small.plan.Events) != 1 || len(small.Unmet) > 2 {
		t.Errorf("%d nodes, unmet %v:\n%s", small.Nodes, small.Unmet, small.Tape())
	}
	if again := run(small.Tape()); *again.TraceHash != *small.TraceHash {
		t.Errorf("its tape leaves another trace:\n%s", small.Tape())
	}

	// Without time it is the run that it was.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	same, err := res.Shrink(over)
	if err != nil || *same.TraceHash != *res.TraceHash {
		t.Errorf("without time to search: %v, trace %s, want %s", err, *same.TraceHash, *res.TraceHash)
	}

	for _, text := range []string{"nodes 2\n", "nodes 2\nexpect refused full\n", "nodes 2\nexpect violation durable\n"} {
		res := run(text)
		if _, err := res.Shrink(t.Context()); !errors.Is(err, ErrNothingBroken) {
			t.Errorf("%q: %v", strings.TrimSpace(text), err)
		}
	}
}
