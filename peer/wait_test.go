package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
)

// Each write that was confirmed is held by as many others as were asked for, when the wait
// returns, whatever is written at the same time.
func TestWaitForConfirmsWhatIsHeld(t *testing.T) {
	_, spaces := pushCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 10 {
				key := fmt.Appendf(nil, "%d", i%3)
				v, err := spaces[0].Put(ctx, key, fmt.Appendf(nil, "%d/%d", w, i))
				if err != nil {
					t.Error(err)
					return
				}
				waited, err := spaces[0].Wait(ctx, peer.WaitOptions{Key: key, Version: v, Count: 2})
				if err != nil || len(waited.Held) != 2 || len(waited.Missing) != 0 {
					t.Errorf("%+v, %v", waited, err)
					return
				}
				for _, ns := range spaces[1:] {
					if r, err := ns.Get(ctx, key); err != nil || r.Version.Compare(v) < 0 {
						t.Errorf("confirmed, and %s is held: %v", r.Version, err)
					}
				}
			}
		})
	}
	writers.Wait()
}

// Without pushes, and without syncs of the nodes' own accord, a wait ends all the same; a
// member that is away makes it end with its time, and takes nothing back.
func TestWaitWithoutPushes(t *testing.T) {
	t.Parallel()
	a := open(t, peer.Config{SyncInterval: time.Hour, NoPush: true})
	b := open(t, peer.Config{SyncInterval: time.Hour, NoPush: true})
	away := open(t, peer.Config{SyncInterval: time.Hour, NoPush: true})
	sa := create(t, a, peer.Policy{})
	sb := join(t, sa, b, peer.RoleWrite)
	join(t, sa, away, peer.RoleRead)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if waited, err := sa.Wait(ctx, peer.WaitOptions{}); err != nil || len(waited.Held) != 2 {
		t.Fatalf("%+v, %v", waited, err)
	}
	v, err := sa.Put(ctx, []byte("k"), []byte("v"))
	must(t, err)
	must(t, errOf(sa.Wait(ctx, peer.WaitOptions{Key: []byte("k"), Version: v, Count: 2})))
	must(t, sb.Pause(ctx))
	must(t, away.Close(ctx))
	v, err = sa.Put(ctx, []byte("k"), []byte("w"))
	must(t, err)
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	waited, err := sa.Wait(short, peer.WaitOptions{Key: []byte("k"), Version: v, Count: 1})
	if !errors.Is(err, peer.ErrUnconfirmed) || len(waited.Held) != 0 || len(waited.Missing) != 2 {
		t.Errorf("%+v, %v", waited, err)
	}
	if r, err := sa.Get(ctx, []byte("k")); err != nil || string(r.Value) != "w" {
		t.Errorf("the record: %q, %v", r.Value, err)
	}
	whys, err := sa.Why(ctx, []byte("k"))
	if err != nil || len(whys) != 2 {
		t.Fatal(whys, err)
	}
	for _, w := range whys {
		cause := status.CauseUnreachable
		if w.Peer == b.ID() {
			cause = status.CausePaused
		}
		if w.Standing != status.StandingUnknown || len(w.Causes) != 1 || w.Causes[0].Kind != cause || w.Verified.IsZero() || w.Here.Version != v {
			t.Errorf("%+v", w)
		}
	}
	must(t, sb.Resume(ctx))
	if waited, err := sa.Wait(ctx, peer.WaitOptions{Key: []byte("k"), Version: v, Count: 1}); err != nil || len(waited.Held) != 1 || waited.Held[0] != b.ID() {
		t.Errorf("%+v, %v", waited, err)
	}
}

// A wait ends with its namespace, and what was asked for wrongly is refused at once.
func TestWaitEnds(t *testing.T) {
	a, b := open(t, peer.Config{SyncInterval: time.Hour}), open(t, peer.Config{SyncInterval: time.Hour})
	sa := create(t, a, peer.Policy{})
	join(t, sa, b, peer.RoleRead)
	for name, o := range map[string]peer.WaitOptions{
		"too many": {Count: 2}, "itself": {Peers: []peer.ID{a.ID()}}, "an empty key": {Key: []byte{}}, "a long key": {Key: bytes.Repeat([]byte{1}, dbadapter.MaxKey+1)},
	} {
		if _, err := sa.Wait(t.Context(), o); !errors.Is(err, peer.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sa.Wait(t.Context(), peer.WaitOptions{Key: []byte("k")}); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("nothing to wait for: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := sa.Wait(t.Context(), peer.WaitOptions{Key: []byte("k"), Version: dbadapter.Version{Clock: 1<<63 + 1}, Count: 1})
		ended <- err
	}()
	eventually(t, "the question has come", func() bool { return peer.Questions(a, b.ID()) > 0 })
	must(t, a.Close(t.Context()))
	if err := <-ended; !errors.Is(err, peer.ErrClosed) {
		t.Error(err)
	}
	if _, err := sa.Wait(t.Context(), peer.WaitOptions{}); !errors.Is(err, peer.ErrClosed) {
		t.Error(err)
	}
}
