package peer

import (
	"context"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

func openForTest(t testing.TB, cfg Config) *Node {
	t.Helper()
	n, err := Open(t.Context(), cfg)
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

func joinForTest(t testing.TB, at *Namespace, n *Node) *Namespace {
	t.Helper()
	ticket, err := at.Invite(t.Context(), InviteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := n.Join(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	timeout := time.After(5 * time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("waited in vain for this: %s", what)
		}
	}
}

// A member that falls silent within a sync does not delay the others.
func TestSilentMemberHoldsUpNobody(t *testing.T) {
	t.Parallel()
	a := openForTest(t, Config{SyncInterval: 5 * time.Millisecond, Limits: Limits{IdleTimeout: time.Hour}})
	silent, other := openForTest(t, Config{}), openForTest(t, Config{})
	inside, release := make(chan struct{}, 1), make(chan struct{})
	defer close(release)
	silent.host.SetStreamHandler(SyncProtocol, func(s network.Stream) {
		inside <- struct{}{}
		<-release
		s.Reset()
	})
	sa, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	joinForTest(t, sa, silent)
	<-inside
	so := joinForTest(t, sa, other)
	if _, err := sa.Put(t.Context(), []byte("k"), nil); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the other member has the record", func() bool { return so.Info().Digest == sa.Info().Digest })
}

// A namespace that a peer has dropped does not keep their other namespaces from
// being synced.
func TestDroppedNamespaceStarvesNone(t *testing.T) {
	a, b := openForTest(t, Config{SyncInterval: 5 * time.Millisecond}), openForTest(t, Config{})
	var here, there [2]*Namespace
	for i, name := range []string{"first", "second"} {
		var err error
		if there[i], err = b.CreateNamespace(t.Context(), name, Policy{}); err != nil {
			t.Fatal(err)
		}
		here[i] = joinForTest(t, there[i], a)
	}
	if err := b.ForceDrop(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	failed := func() (n int) {
		for _, s := range a.RecentSyncs() {
			if s.Report.Namespace == "first" && s.Error != "" {
				n++
			}
		}
		return n
	}
	waitFor(t, "the first namespace fails, again and again", func() bool { return failed() > 2 })
	if _, err := here[1].Put(t.Context(), []byte("k"), nil); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the second namespace is synced", func() bool { return here[1].Info().Digest == there[1].Info().Digest })
}
