package peer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/dbadapter"
)

// tries counts how often a lane tries a namespace in so many seconds of virtual
// time, at an interval of one second.
func tries(t *testing.T, l *lane, ns byte, seconds int, reached bool, result error) (n int) {
	t.Helper()
	for range seconds {
		time.Sleep(time.Second) // virtual
		l.attempt(dbadapter.NamespaceID{ns}, func() (bool, error) { n++; return reached, result })
	}
	return n
}

// Rests grow, to about eight intervals, and end with the first success. Those
// of a namespace are its own, those of a peer that is away are for all.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane(time.Second)
		if n := tries(t, l, 1, 100, true, ErrDenied); n < 8 || n > 40 {
			t.Errorf("a namespace that fails was tried %d times", n)
		}
		if n := tries(t, l, 2, 1, true, nil); n != 1 {
			t.Error("a second namespace rests with the first")
		}
		if n := tries(t, l, 2, 100, true, ErrUnreachable); n < 8 || n > 40 {
			t.Errorf("a stream that breaks was tried %d times", n)
		}
		if n := tries(t, l, 3, 1, true, nil); n != 1 {
			t.Error("a third namespace rests with one whose stream broke")
		}
		if n := tries(t, l, 3, 100, false, ErrUnreachable); n < 8 || n > 40 {
			t.Errorf("a peer that is away was tried %d times", n)
		}
		l.whole.until = time.Now().Add(5 * time.Second)
		if n := tries(t, l, 4, 4, false, nil); n != 0 {
			t.Error("a peer that is away was tried for another namespace")
		}
		if n := tries(t, l, 4, 20, true, nil); n < 19 {
			t.Errorf("a peer that is back was tried %d times", n)
		}
		if n := tries(t, l, 4, 20, true, context.Canceled); n != 20 {
			t.Errorf("a sync that was cut off was tried %d times", n)
		}
	})
}

// A sync that gets on may take its time, one that does not is ended.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, worked := time.Now(), 0
		err := patiently(t.Context(), time.Minute, func(ctx context.Context, progress func(Report)) error {
			for worked = range 100 {
				time.Sleep(50 * time.Second) // virtual
				progress(Report{Cells: worked + 1})
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
			for ctx.Err() == nil {
				time.Sleep(time.Second)
				progress(Report{Cells: worked + 1, Rounds: 7, WireBytesReceived: 8})
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, errStalled) || worked != 99 || time.Since(start) > 5000*time.Second+2*time.Minute {
			t.Errorf("after %d steps and %s: %v", worked, time.Since(start), err)
		}
		err = patiently(t.Context(), time.Minute, func(context.Context, func(Report)) error { return ErrBusy })
		if !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	})
}

func openForTest(t *testing.T, cfg Config) *Node {
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

func joinForTest(t *testing.T, at *Namespace, n *Node) *Namespace {
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
	timeout := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("waited a minute for this: %s", what)
		}
	}
}

// A member that falls silent within a sync keeps none of the others waiting.
func TestSilentMemberHoldsUpNobody(t *testing.T) {
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

// A namespace that a peer has dropped starves none of those that it shares.
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
	if err := b.DropNamespace(t.Context(), "first"); err != nil {
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
