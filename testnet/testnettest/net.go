package testnettest

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/nodes"
)

// patience bounds each step that waits for nodes to start, stop or notice. Only a
// node that hangs reaches it.
const patience = time.Minute

// Net is a number of nodes, numbered from 0. Call its methods from the test's own
// goroutine: they fail the test if they fail. Any goroutine may use its nodes and
// namespaces.
type Net struct {
	t     testing.TB
	nodes *nodes.Net
	logs  *logs
}

// New starts n nodes. The first makes the namespace and is its admin; the others
// join it with the role write. The test's cleanup ends them, and looks for leaks;
// your own cleanups, which run before, close what uses the nodes. Until then the
// test's goroutine, and those it starts, have a profiler label, by which the net
// finds leaked goroutines.
func New(t testing.TB, n int, options ...Option) *Net {
	t.Helper()
	logs := newLogs(n)
	cfg := nodes.Config{Nodes: n, Dir: t.TempDir(), Logger: func(i int) *slog.Logger { return logs.of(i) }}
	for _, o := range options {
		o(&cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	running, err := nodes.Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	net := &Net{t, running, logs}
	t.Cleanup(net.end)
	running.Adopt(context.Background())
	return net
}

func (n *Net) end() {
	pprof.SetGoroutineLabels(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.nodes.Close(ctx); err != nil {
		n.t.Errorf("at the end of the test: %v", err)
	}
	if n.t.Failed() {
		var ids []peer.ID
		for i := range n.Len() {
			ids = append(ids, n.nodes.ID(i))
		}
		n.logs.show(n.t, ids)
	}
}

// do runs a step of the net under a deadline.
func (n *Net) do(what string, step func(ctx context.Context) error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := step(ctx); err != nil {
		n.t.Fatalf("%s: %v", what, err)
	}
}

// Len is the number of nodes, running or not.
func (n *Net) Len() int { return n.nodes.Len() }

// Node is the i-th node. After Restart, or Kill and Start, it is another one,
// with the same identity; take it anew. It fails the test while the node is down.
func (n *Net) Node(i int) *peer.Node {
	n.t.Helper()
	node := n.nodes.Node(i)
	if node == nil {
		n.t.Fatalf("node %d is down; Start it first", i)
	}
	return node
}

// Namespace is the shared namespace on the i-th node. After a restart it is
// another one, as the node is.
func (n *Net) Namespace(i int) *peer.Namespace {
	n.t.Helper()
	n.Node(i)
	space := n.nodes.Namespace(i)
	if space == nil {
		n.t.Fatalf("node %d has dropped the shared namespace", i)
	}
	return space
}

// Running reports whether the i-th node runs.
func (n *Net) Running(i int) bool { return n.nodes.Node(i) != nil }

// Partition lets the nodes of each group reach one another only; the nodes in no
// group form one more. Connections between groups break at once, in the middle of
// a frame, and new ones are refused. It replaces an earlier partition or cut.
func (n *Net) Partition(groups ...[]int) {
	n.t.Helper()
	n.do("partition", func(ctx context.Context) error { return n.nodes.Partition(ctx, groups...) })
}

// Cut holds back the bytes from one node to another, as a network does that drops its
// packets. Syncs between them hang until a time-out ends them, or until Heal lets the
// held bytes pass. New connections between the two fail, from either side.
func (n *Net) Cut(from, to int) {
	n.t.Helper()
	n.do("cut", func(context.Context) error { return n.nodes.Cut(from, to) })
}

// Heal ends the partition and all cuts. The nodes find each other with the next
// sync; background syncs that have failed may rest for some intervals first.
func (n *Net) Heal() { n.nodes.Heal() }

// Restart closes the i-th node in an orderly way and opens it again on the same
// data.
func (n *Net) Restart(i int) {
	n.t.Helper()
	n.do("restart", func(ctx context.Context) error { return n.nodes.Restart(ctx, i) })
}

// Stop closes the i-th node in an orderly way, until Start.
func (n *Net) Stop(i int) {
	n.t.Helper()
	n.do("stop", func(ctx context.Context) error { return n.nodes.Stop(ctx, i) })
}

// Kill ends the i-th node as a crash of its process would, until Start. Its connections
// break first, and its database is not closed but recovered at the next start. The
// package's limits name the differences from a real crash.
func (n *Net) Kill(i int) {
	n.t.Helper()
	n.do("kill", func(ctx context.Context) error { return n.nodes.Kill(ctx, i) })
}

// Start opens a node that was stopped or killed, on the same data.
func (n *Net) Start(i int) {
	n.t.Helper()
	n.do("start", func(ctx context.Context) error { return n.nodes.Start(ctx, i) })
}

// Skew sets the wall clock of the i-th node ahead of the true time, or behind it. It
// does not add up: 0 sets the clock right. Writes of a node that is behind lose against
// those that others made before, until it has seen them. Versions too far ahead are
// refused (peer.Policy), and offered again after five minutes of the writer's clock.
func (n *Net) Skew(i int, d time.Duration) { n.nodes.Skew(i, d) }

// Now is the reading of the wall clock of the i-th node, for applications that
// keep times in their records.
func (n *Net) Now(i int) time.Time { return n.nodes.Now(i) }

// Sync makes the records of two nodes equal; the first begins. It tries again while the
// link is whole and the peer cannot be reached, which may be so for a moment after Heal
// or Restart. Any other failure fails the test. Use Namespace(i).Sync to see a failure.
func (n *Net) Sync(a, b int) reconcile.Report {
	n.t.Helper()
	var report reconcile.Report
	n.do("sync", func(ctx context.Context) (err error) {
		report, err = n.nodes.Sync(ctx, a, b)
		return err
	})
	return report
}

// AssertConverged gives the nodes this time to become equal, and then checks the
// promises in the package's documentation. Without Background it syncs them itself,
// over all links that are whole, until nothing moves; it takes no longer than
// that. Do not write meanwhile. Under a partition each side must agree within
// itself.
func (n *Net) AssertConverged(within time.Duration) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	outcome, err := n.nodes.Converge(ctx)
	if err != nil {
		n.t.Fatalf("converge: %v", err)
	}
	if len(outcome.Violations) > 0 || outcome.Late {
		n.t.Error(explain(&outcome))
	}
}

// AssertSame compares what the application makes of the records on each node
// that runs. Call it after AssertConverged.
func (n *Net) AssertSame(what string, view func(i int) string) {
	n.t.Helper()
	first, want := -1, ""
	for i := range n.Len() {
		if !n.Running(i) {
			continue
		}
		got := view(i)
		if first < 0 {
			first, want = i, got
		}
		if got != want {
			n.t.Errorf("%s differs:\n\tnode %d: %s\n\tnode %d: %s\n%s", what, first, want, i, got,
				"the records are compared by AssertConverged; if they are equal, look for state beside them that a sync does not bring up to date")
		}
	}
}

// explain lists the violations and hints.
func explain(o *nodes.Outcome) string {
	text := fmt.Sprintf("the nodes have not converged, or have broken a promise (%d findings):", len(o.Violations))
	for _, v := range o.Violations {
		text += "\n\t" + v.String()
	}
	for _, h := range o.Hints {
		text += "\n  hint: " + h
	}
	return text + "\n  next: the last log lines of each node follow at the end of the test; where one record is concerned, Namespace(i).Get and Rejected tell more"
}
