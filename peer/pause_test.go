package peer_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/reconcile"
)

// A namespace that is paused takes part in no sync that either side begins, also after
// a restart, while it is read and written; resumed, it is made equal.
func TestPause(t *testing.T) {
	dir := t.TempDir()
	na, nb, sa, sb := pair(t, peer.Config{Dir: dir}, peer.Config{}, peer.Policy{})
	put(t, sb, "there", "1")
	must(t, sa.Pause(t.Context()))
	refused := func(when string) {
		t.Helper()
		for side, try := range map[string]func() error{
			"its own sync": func() error { _, err := sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{}); return err },
			"its own diff": func() error { _, err := sa.Diff(t.Context(), nb.ID(), peer.SyncOptions{}); return err },
			"a peer's":     func() error { _, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); return err },
		} {
			if err := try(); !errors.Is(err, peer.ErrPaused) {
				t.Errorf("%s, %s: %v", when, side, err)
			}
		}
		if !sa.Info().Paused || sb.Info().Paused {
			t.Errorf("%s: paused %t, and at the peer %t", when, sa.Info().Paused, sb.Info().Paused)
		}
	}
	refused("paused")
	put(t, sa, "here", "2")
	must(t, na.Close(t.Context()))
	na = open(t, peer.Config{Dir: dir})
	var err error
	sa, err = na.Namespace(sa.Name())
	must(t, err)
	must(t, errOf(nb.Connect(t.Context(), na.Addrs()[0])))
	refused("after a restart")
	if r, err := sa.Get(t.Context(), []byte("here")); err != nil || string(r.Value) != "2" {
		t.Errorf("what was written meanwhile: %q, %v", r.Value, err)
	}
	must(t, sa.Resume(t.Context()))
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
}

// A peer that is paused is not synced with, also after a restart, and others are.
func TestPausePeer(t *testing.T) {
	dir := t.TempDir()
	na, nb, sa, sb := pair(t, peer.Config{Dir: dir}, peer.Config{}, peer.Policy{})
	nc := open(t, peer.Config{})
	sc := join(t, sa, nc, peer.RoleWrite)
	put(t, sb, "k", "v")
	must(t, na.PausePeer(t.Context(), nb.ID()))
	must(t, na.Close(t.Context()))
	registry := prometheus.NewRegistry()
	na = open(t, peer.Config{Dir: dir, Registerer: registry})
	var err error
	sa, err = na.Namespace(sa.Name())
	must(t, err)
	for _, n := range []*peer.Node{nb, nc} {
		must(t, errOf(n.Connect(t.Context(), na.Addrs()[0])))
	}
	_, here := sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{})
	_, there := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{})
	if !errors.Is(here, peer.ErrPaused) || !errors.Is(there, peer.ErrPaused) {
		t.Errorf("it hears %v, the peer %v", here, there)
	}
	sync1(t, sc, na.ID())
	for _, p := range na.Peers() {
		if p.Paused != (p.ID == nb.ID()) {
			t.Errorf("%+v", p)
		}
	}
	// A peer that was forgotten stays paused where it is a member, and can be resumed.
	must(t, na.RemovePeer(t.Context(), nb.ID()))
	if _, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); !errors.Is(err, peer.ErrPaused) {
		t.Errorf("a peer that was removed from the book hears %v", err)
	}
	must(t, na.ResumePeer(t.Context(), nb.ID()))
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
	stranger := open(t, peer.Config{})
	for _, err := range []error{na.PausePeer(t.Context(), stranger.ID()), na.ResumePeer(t.Context(), stranger.ID())} {
		if !errors.Is(err, peer.ErrNotFound) {
			t.Errorf("a peer that is not known: %v", err)
		}
	}
}

// A pause cuts the syncs that run, of either side, and returns when they are over.
func TestPauseCutsSyncs(t *testing.T) {
	for name, begunHere := range map[string]bool{"begun here": true, "begun there": false} {
		t.Run(name, func(t *testing.T) {
			na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{}, peer.Policy{})
			put(t, sa, "k", "v")
			put(t, sb, "l", "w") // each side waits for what the other has
			from, to := sb, na.ID()
			if begunHere {
				from, to = sa, nb.ID()
			}
			inside, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			ended := make(chan error, 1)
			go func() {
				_, err := from.Sync(t.Context(), to, peer.SyncOptions{Progress: func(r reconcile.Report) {
					if r.WireBytesReceived > 0 {
						once.Do(func() { close(inside); <-release })
					}
				}})
				ended <- err
			}()
			<-inside
			if begunHere { // it is in the hands of its caller
				ctx, cancel := context.WithCancel(t.Context())
				paused := make(chan error, 1)
				go func() { paused <- sa.Pause(ctx) }()
				eventually(t, "the namespace is paused", func() bool { return sa.Info().Paused })
				cancel()
				if err := <-paused; !errors.Is(err, context.Canceled) {
					t.Errorf("a pause whose caller has no patience: %v", err)
				}
				close(release)
				if err := <-ended; !errors.Is(err, peer.ErrPaused) {
					t.Errorf("the sync ended with %v", err)
				}
			}
			if err := sa.Pause(t.Context()); err != nil || !sa.Info().Paused || na.Syncing() != 0 {
				t.Errorf("%v; paused %t, and %d syncs run", err, sa.Info().Paused, na.Syncing())
			}
			if !begunHere {
				close(release)
				if err := <-ended; err == nil {
					t.Error("a sync that was cut has ended well")
				}
			}
		})
	}
}
