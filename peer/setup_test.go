package peer

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The tests of both packages prepare nodes and wait by these.
var (
	OpenForTest    = openForTest
	ShutForTest    = shutForTest
	CreateForTest  = createForTest
	JoinForTest    = joinForTest
	ClusterForTest = clusterForTest
	Notes          = notes
	Items          = items
	CopyNode       = copyNode
	Gathered       = gathered
	MetricOf       = metricOf
	Must           = must
	Eventually     = eventually
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

// clusterForTest is a namespace of nodes that have joined the first one.
func clusterForTest(t testing.TB, p Policy, configs ...Config) (nodes []*Node, spaces []*Namespace) {
	t.Helper()
	for i, config := range configs {
		n := openForTest(t, config)
		nodes = append(nodes, n)
		if i == 0 {
			spaces = append(spaces, createForTest(t, n, p))
		} else {
			spaces = append(spaces, joinForTest(t, spaces[0], n, RoleWrite))
		}
	}
	return nodes, spaces
}

func items(list ...Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// copyNode copies the folder of a node that does not run, with the modes and the times of its files.
func copyNode(t testing.TB, from, to string) {
	t.Helper()
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		if d.IsDir() {
			return os.MkdirAll(target, info.Mode())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(target, b, info.Mode()), os.Chtimes(target, time.Time{}, info.ModTime()))
	}))
}

// gathered adds up the series of a metric that have a label value, or all where that is empty. ok
// is whether there are any.
func gathered(t testing.TB, from prometheus.Gatherer, name, label string) (sum float64, ok bool) {
	t.Helper()
	families, err := from.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			is := label == ""
			for _, l := range m.GetLabel() {
				is = is || l.GetValue() == label
			}
			if f.GetName() == name && is {
				sum, ok = sum+m.GetGauge().GetValue()+m.GetCounter().GetValue(), true
			}
		}
	}
	return sum, ok
}

// metricOf is gathered of a metric that there is.
func metricOf(t testing.TB, from prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	sum, ok := gathered(t, from, name, label)
	if !ok {
		t.Fatalf("no metric %s{%s}", name, label)
	}
	return sum
}

// Log is a log that a node writes to while a test reads it.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Logger writes to it what is of a level.
func (l *Log) Logger(least slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: least}))
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset forgets what was written.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// With counts the lines that have a part.
func (l *Log) With(part string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}
