package testnettest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/failing"
	"github.com/syncd-io/syncd/testnet/testnettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 5 * time.Minute

func put(t testing.TB, net *testnettest.Net, i int, key, value string) {
	t.Helper()
	if _, err := net.Namespace(i).Put(t.Context(), []byte(key), []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// view is what a node holds under some keys.
func view(t testing.TB, net *testnettest.Net, keys ...string) func(i int) string {
	return func(i int) string {
		var all []string
		for _, key := range keys {
			r, err := net.Namespace(i).Get(t.Context(), []byte(key))
			if err != nil {
				all = append(all, err.Error())
			}
			all = append(all, string(r.Value))
		}
		return strings.Join(all, " ")
	}
}

// All methods, on five nodes, in two nets at once: neither net takes the other's
// goroutines for leaks.
func TestFiveNodes(t *testing.T) {
	for name, options := range map[string][]testnettest.Option{
		"disk":       nil,
		"memory":     {testnettest.Memory(), testnettest.Policy(peer.Policy{Unsigned: true, MaxSkew: time.Hour})},
		"background": {testnettest.Memory(), testnettest.Background(20 * time.Millisecond), testnettest.Limits(peer.Limits{Sessions: 8})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := testnettest.New(t, 5, options...)
			put(t, net, 0, "a", "1")
			net.AssertConverged(soon)
			net.Partition([]int{0, 1}, []int{2})
			put(t, net, 1, "a", "left")
			net.Skew(4, time.Minute)
			put(t, net, 4, "a", "right")
			put(t, net, 3, "b", "unsynced")
			put(t, net, 2, "c", "unsynced")
			net.Kill(3)
			net.Stop(2)
			net.Heal()
			if net.Running(3) || net.Running(2) || !net.Running(1) || net.Len() != 5 {
				t.Error("not those run that should")
			}
			net.Start(2)
			net.Start(3)
			net.Restart(4)
			net.Cut(0, 4)
			net.Heal()
			if r := net.Sync(2, 4); !r.Verified {
				t.Errorf("%+v", r)
			}
			net.AssertConverged(soon)
			net.AssertSame("all", view(t, net, "a", "b", "c"))
			if got := view(t, net, "a", "b", "c")(0); got != "right unsynced unsynced" {
				t.Errorf("the later write or one before an end has lost: %q", got)
			}
			if ahead := net.Now(4).Sub(net.Now(0)); ahead < 50*time.Second {
				t.Errorf("the skewed clock is %s ahead", ahead)
			}
		})
	}
}

// A cut holds the bytes of one direction; they arrive when it is healed.
func TestCut(t *testing.T) {
	net := testnettest.New(t, 2, testnettest.Memory(), testnettest.Limits(peer.Limits{IdleTimeout: time.Minute, DialTimeout: time.Minute}))
	put(t, net, 0, "k", "v")
	net.AssertConverged(soon)
	put(t, net, 0, "k", "w")
	net.Cut(1, 0) // the answer does not come
	done := make(chan error, 1)
	asked := make(chan reconcile.Report, 100)
	go func() {
		_, err := net.Namespace(0).Sync(t.Context(), net.Node(1).ID(), peer.SyncOptions{Progress: func(r reconcile.Report) {
			if r.WireBytesSent > 0 {
				asked <- r
			}
		}})
		done <- err
	}()
	<-asked
	select {
	case err := <-done:
		t.Fatalf("a sync without an answer has ended: %v", err)
	default:
	}
	net.Heal()
	if err := <-done; err != nil || view(t, net, "k")(1) != "w" {
		t.Errorf("after the cut: %v, %s", err, view(t, net, "k")(1))
	}

	// New connections fail in both directions.
	net.Partition([]int{0})
	if _, err := net.Namespace(0).Sync(t.Context(), net.Node(1).ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("a sync across a partition: %v", err)
	}
	net.Heal()
	net.Cut(0, 1)
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := net.Namespace(way[0]).Sync(ctx, net.Node(way[1]).ID(), peer.SyncOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a dial over a cut: %v", err)
		}
		cancel()
	}
	net.Heal()
	net.AssertConverged(soon)
}

// Partitions hold while nodes sync in the background; each side agrees.
func TestPartitionHolds(t *testing.T) {
	net := testnettest.New(t, 4, testnettest.Memory(), testnettest.Background(5*time.Millisecond))
	net.AssertConverged(soon)
	net.Partition([]int{0, 1}, []int{2, 3})
	put(t, net, 0, "k", "left")
	put(t, net, 2, "l", "right")
	net.AssertConverged(soon)
	for i, want := range []string{"k", "k", "l", "l"} {
		if n := net.Namespace(i).Info().Records; n != 1 {
			t.Errorf("node %d holds %d records", i, n)
		}
		if _, err := net.Namespace(i).Get(t.Context(), []byte(want)); err != nil {
			t.Error(err)
		}
	}
}

// A failure names each key, hints at the cause, and shows the logs; a success
// shows nothing.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		body func(t testing.TB, net *testnettest.Net)
		want []string // in this order; empty: success
	}{
		{"success", func(t testing.TB, net *testnettest.Net) { net.AssertConverged(soon) }, nil},
		{"a record from the future", func(t testing.TB, net *testnettest.Net) {
			put(t, net, 1, "fine", "v")
			net.Skew(1, time.Hour)
			put(t, net, 1, "early", "v")
			net.AssertConverged(soon)
		}, []string{
			"have not converged", `equal: node 1: "early": it holds a value`, "of which node 0 has nothing",
			`hint: node 0 has refused "early"`, "ahead of this node's clock", "next: ", "the last lines of node 0", "the node is open",
		}},
		{"no time", func(t testing.TB, net *testnettest.Net) {
			put(t, net, 0, "k", "v")
			net.AssertConverged(0)
		}, []string{`equal: node 1: "k": it has nothing of what node 0 holds`, "hint: time ran out"}},
		{"a member that was left out", func(t testing.TB, net *testnettest.Net) {
			if err := net.Node(0).ForceDrop(t.Context(), net.Namespace(0).Name()); err != nil {
				t.Fatal(err)
			}
			net.AssertConverged(soon)
		}, []string{"converge: node 0 has dropped the namespace"}},
		{"a node that is down", func(t testing.TB, net *testnettest.Net) {
			net.Stop(1)
			net.Node(1)
			t.Error("not reached")
		}, []string{"node 1 is down; Start it first", "the last lines of node 1", "the node is closed"}},
		{"no such node", func(_ testing.TB, net *testnettest.Net) { net.Partition([]int{2}) }, []string{"partition: there is no node 2"}},
		{"a node in two groups", func(_ testing.TB, net *testnettest.Net) { net.Partition([]int{0}, []int{0}) }, []string{"partition: node 0 is named twice"}},
		{"no such link", func(_ testing.TB, net *testnettest.Net) { net.Cut(0, 2) }, []string{"cut: there is no link from node 0 to node 2"}},
		{"a node that runs", func(_ testing.TB, net *testnettest.Net) { net.Start(0) }, []string{"start node 0: it runs"}},
		{"different views", func(t testing.TB, net *testnettest.Net) {
			net.AssertSame("the number", func(i int) string { return fmt.Sprint(i) })
		}, []string{"the number differs", "node 0: 0", "node 1: 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &failing.Test{TB: t}
			t.Run("inside", func(t *testing.T) {
				r.TB = t // whose cleanups end the net
				r.Run(func() { c.body(r, testnettest.New(r, 2, testnettest.Memory())) })
			})
			said := r.Said()
			if c.want == nil && said != "" {
				t.Errorf("said at a success: %s", said)
			}
			rest := said
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("%q does not come where it should in:\n%s", want, said)
				}
				rest = after
			}
		})
	}
	r := &failing.Test{TB: t}
	r.Run(func() { testnettest.New(r, 0) })
	if !strings.Contains(r.Said(), "a net of 0 nodes; want 1 to") {
		t.Error(r.Said())
	}
}
