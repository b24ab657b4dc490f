package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/nodes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a net, and closes it with all checks at the end of the test.
func open(t *testing.T, cfg nodes.Config) *nodes.Net {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	n, err := nodes.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, n *nodes.Net, i int, key, value string) dbadapter.Version {
	t.Helper()
	v, err := n.Namespace(i).Put(t.Context(), []byte(key), []byte(value))
	must(t, err)
	return v
}

func converge(t *testing.T, n *nodes.Net) nodes.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o, err := n.Converge(ctx)
	must(t, err)
	if len(o.Violations) > 0 || len(o.Hints) > 0 {
		t.Fatalf("%v\n%v", o.Violations, o.Hints)
	}
	return o
}

func holds(t *testing.T, n *nodes.Net, i int, key, want string) {
	t.Helper()
	r, err := n.Namespace(i).Get(t.Context(), []byte(key))
	if err != nil || string(r.Value) != want {
		t.Errorf("node %d holds %q of %s, want %q (%v)", i, r.Value, key, want, err)
	}
}

// No sync crosses a partition, each side goes on alone, and after the partition
// the nodes reach one another at once.
func TestPartition(t *testing.T) {
	n := open(t, nodes.Config{Nodes: 4})
	put(t, n, 0, "k", "before")
	converge(t, n) // connects
	must(t, n.Partition(t.Context(), []int{0, 1}))
	if _, err := n.Sync(t.Context(), 0, 2, peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("a sync across: %v", err)
	}
	if _, err := n.Sync(t.Context(), 3, 1, peer.SyncOptions{}); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("a sync across: %v", err)
	}
	put(t, n, 0, "k", "left")
	n.Skew(2, time.Second)
	put(t, n, 2, "k", "right")
	put(t, n, 1, "l", "left")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o, err := n.Converge(ctx)
	must(t, err)
	if len(o.Violations) > 0 {
		t.Error(o.Violations)
	}
	if len(o.Hints) != 1 { // that the net is in parts
		t.Error(o.Hints)
	}
	holds(t, n, 1, "k", "left")
	holds(t, n, 3, "k", "right")
	n.Heal()
	converge(t, n)
	for i := range n.Len() {
		holds(t, n, i, "k", "right")
		holds(t, n, i, "l", "left")
	}
	for _, wrong := range [][][]int{{{0, 4}}, {{0}, {0}}, {{-1}}} {
		if err := n.Partition(t.Context(), wrong...); err == nil {
			t.Errorf("partition %v was taken", wrong)
		}
	}
}

// A cut holds the bytes of one direction; they arrive when it is healed.
func TestCut(t *testing.T) {
	n := open(t, nodes.Config{Nodes: 2, Memory: true, Limits: peer.Limits{IdleTimeout: time.Minute, DialTimeout: time.Minute}})
	put(t, n, 0, "k", "v")
	converge(t, n)
	put(t, n, 0, "k", "w")
	must(t, n.Cut(1, 0)) // the answer does not come
	done := make(chan error, 1)
	asked := make(chan reconcile.Report, 100)
	go func() {
		_, err := n.Sync(t.Context(), 0, 1, peer.SyncOptions{Progress: func(r reconcile.Report) {
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
	n.Heal()
	must(t, <-done)
	holds(t, n, 1, "k", "w")

	// New connections fail in both directions.
	must(t, n.Partition(t.Context(), []int{0}))
	n.Heal()
	must(t, n.Cut(0, 1))
	for _, way := range [][2]int{{0, 1}, {1, 0}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := n.Sync(ctx, way[0], way[1], peer.SyncOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a dial over a cut: %v", err)
		}
		cancel()
	}
	n.Heal()
	converge(t, n)
	if n.Cut(0, 0) == nil || n.Cut(0, 2) == nil {
		t.Error("cuts of no link were taken")
	}
}

// Acknowledged writes outlive each kind of end, on both stores; the other nodes
// reach the node at its old address.
func TestRestartAndKill(t *testing.T) {
	for _, memory := range []bool{false, true} {
		t.Run(fmt.Sprintf("memory=%t", memory), func(t *testing.T) {
			n := open(t, nodes.Config{Nodes: 3, Memory: memory})
			ends := map[string]func(context.Context, int) error{"restart": n.Restart, "kill": func(ctx context.Context, i int) error {
				if err := n.Kill(ctx, i); err != nil {
					return err
				}
				if n.Node(i) != nil || n.Namespace(i) != nil {
					t.Error("a killed node is there")
				}
				return n.Start(ctx, i)
			}}
			for name, end := range ends {
				converge(t, n)
				put(t, n, 1, name, "unsynced")
				before, id := n.Node(1), n.Node(1).ID()
				must(t, end(t.Context(), 1))
				if n.Node(1) == before || n.Node(1).ID() != id {
					t.Error("not the same node, opened anew")
				}
				holds(t, n, 1, name, "unsynced")
				if _, err := n.Sync(t.Context(), 2, 1, peer.SyncOptions{}); err != nil {
					t.Error(err)
				}
				converge(t, n)
				holds(t, n, 0, name, "unsynced")
			}
			if n.Start(t.Context(), 1) == nil {
				t.Error("a node that runs was started")
			}
			must(t, n.Stop(t.Context(), 2))
			if n.Stop(t.Context(), 2) == nil || n.Kill(t.Context(), 2) == nil {
				t.Error("a node that is down was ended")
			}
			if _, err := n.Sync(t.Context(), 0, 2, peer.SyncOptions{}); err == nil {
				t.Error("a sync with a node that is down")
			}
		})
	}
}

// Close finds goroutines that an application has left running, and files that it
// has left open.
func TestLeftovers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until it is sure")
	}
	n, err := nodes.Open(t.Context(), nodes.Config{Nodes: 1, Memory: true, Dir: t.TempDir()})
	must(t, err)
	stop := make(chan struct{})
	started := make(chan struct{})
	go func() {
		n.Adopt(t.Context())
		go func() { close(started); <-stop }()
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := n.Close(ctx); err == nil {
		t.Error("a goroutine that runs on was not found")
	} else {
		t.Log(err)
	}
	close(stop)
	must(t, n.Close(context.Background()))
}
