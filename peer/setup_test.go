package peer

import (
	"context"
	"testing"
	"time"
)

// The tests of both packages prepare nodes and wait by these.
var (
	OpenForTest   = openForTest
	ShutForTest   = shutForTest
	CreateForTest = createForTest
	JoinForTest   = joinForTest
	Notes         = notes
	Must          = must
	Eventually    = eventually
)

// must ends the test where what it prepares has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errOf is the error of a call whose result the test does not need.
func errOf[T any](_ T, err error) error { return err }

// openForTest opens a node until the end of the test.
func openForTest(t testing.TB, cfg Config) *Node {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { shutForTest(t, n) })
	return n
}

func shutForTest(t testing.TB, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// createForTest makes the namespace that notes finds.
func createForTest(t testing.TB, n *Node, p Policy) *Namespace {
	t.Helper()
	ns, err := n.CreateNamespace(t.Context(), "notes", p)
	must(t, err)
	return ns
}

func notes(t testing.TB, n *Node) *Namespace {
	t.Helper()
	ns, err := n.Namespace("notes")
	must(t, err)
	return ns
}

func joinForTest(t testing.TB, at *Namespace, n *Node, role Role) *Namespace {
	t.Helper()
	ticket, err := at.Invite(t.Context(), InviteOptions{Role: role})
	must(t, err)
	ns, err := n.Join(t.Context(), ticket)
	must(t, err)
	return ns
}

// eventually waits until what another goroutine does has happened.
func eventually(t testing.TB, what string, happened func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for this: %s", what)
		}
	}
}
