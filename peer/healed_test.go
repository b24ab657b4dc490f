package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// unsalvageable is a store of which repairs fail.
type unsalvageable struct {
	dbadapter.Store
	of  dbadapter.Salvager
	err error
	// tried counts the repairs.
	tried int
}

func (u *unsalvageable) Examine(ctx context.Context) error { return u.of.Examine(ctx) }

func (u *unsalvageable) Salvage(ctx context.Context, known map[dbadapter.NamespaceID]dbadapter.Hasher, keep func(dir string) error) (*dbadapter.Salvaged, error) {
	u.tried++
	if u.err != nil {
		return nil, u.err
	}
	return u.of.Salvage(ctx, known, keep)
}

// A repair that something else than the damage has ended is tried again, and one that has
// found that the damage cannot be mended is not.
func TestHealingTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		err   error
		again bool
	}{
		{"a full disk", fmt.Errorf("write: %w", syscall.ENOSPC), true},
		{"an error of the disk", fmt.Errorf("read: %w", syscall.EIO), true},
		{"a backup is being made", fmt.Errorf("%w: try again", dbadapter.ErrLocked), true},
		{"nothing can be read", fmt.Errorf("%w: nothing can be read", ErrCorrupt), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{Dir: t.TempDir(), StoreKind: ondisk.Pebble}
			n := openForTest(t, config)
			ns, err := n.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ns.Put(t.Context(), []byte("k"), []byte("the value of k")); err != nil {
				t.Fatal(err)
			}
			if err := n.store.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			flipIn(t, config.Dir, "the value of k")
			if _, err := ns.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("verify says %v", err)
			}
			store := &unsalvageable{n.store, n.store.(dbadapter.Salvager), c.err, 0}
			n.store = store
			h := newHealing(n)
			for range 2 {
				if done := h.round(t.Context()); done == c.again {
					t.Errorf("after %d repairs it is over: %t", store.tried, done)
				}
			}
			if want := map[bool]int{true: 2, false: 1}[c.again]; store.tried != want {
				t.Errorf("it has tried %d times, not %d", store.tried, want)
			}
			if !c.again {
				return
			}
			store.err = nil
			if !h.round(t.Context()) || ns.Info().Damage != nil || store.tried != 3 {
				t.Errorf("once it can be repaired: %d repairs, %+v", store.tried, ns.Info().Damage)
			}
		})
	}
}

// What nothing can give back is asked of no member, however many there are.
func TestHealingAsksForNothing(t *testing.T) {
	a, b, c := openForTest(t, Config{NoPush: true}), openForTest(t, Config{NoPush: true}), openForTest(t, Config{NoPush: true})
	ours, err := a.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	joinForTest(t, ours, b)
	joinForTest(t, ours, c)
	loseForTest(t, ours, dbadapter.Loss{Kept: 3})
	h := newHealing(a)
	if !h.round(t.Context()) {
		t.Error("it goes on, though entries of the kept log alone are gone")
	}
	if of := h.asked[ours]; of != nil || ours.Lost() == nil {
		t.Errorf("it has asked %+v; it lists %+v", of, ours.Lost())
	}
}

// loseForTest notes a loss as a repair does.
func loseForTest(t *testing.T, ns *Namespace, l dbadapter.Loss) {
	t.Helper()
	if err := ns.core.MayLack(); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.core.Salvaged(t.Context(), l, dbadapter.Loss{}, false); err != nil {
		t.Fatal(err)
	}
}

// Members that are never there at once are asked one after the other, and all of them
// again for what was lost after that.
func TestHealingAsksAnewForANewerLoss(t *testing.T) {
	quiet := Config{NoPush: true}
	a, b, c := openForTest(t, quiet), openForTest(t, quiet), openForTest(t, quiet)
	ours, err := a.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	joinForTest(t, ours, b)
	joinForTest(t, ours, c)
	pause := func(n *Node, away bool) {
		t.Helper()
		set := a.ResumePeer
		if away {
			set = a.PausePeer
		}
		if err := set(t.Context(), n.ID()); err != nil {
			t.Fatal(err)
		}
	}
	h := newHealing(a)
	loseForTest(t, ours, dbadapter.Loss{Records: 1, Keys: [][]byte{[]byte("first")}})
	pause(c, true)
	if h.round(t.Context()) {
		t.Error("one member is away, and it has ended")
	}
	of := h.asked[ours]
	if _, losses := ours.core.Losses(); !of.has(b.ID(), losses) || of.has(c.ID(), losses) {
		t.Errorf("it has asked %v", of.from)
	}
	loseForTest(t, ours, dbadapter.Loss{Records: 1, Keys: [][]byte{[]byte("second")}})
	pause(c, false)
	pause(b, true)
	if h.round(t.Context()) {
		t.Error("one member was not asked for the second loss, and it has ended")
	}
	pause(b, false)
	if !h.round(t.Context()) {
		t.Error("each was asked since the second loss, and it goes on")
	}
	if l := ours.Lost(); l == nil || len(l.Keys) != 2 {
		t.Errorf("it lists %+v", l)
	}
}

// The pauses between the rounds grow, up to a bound, and the end of the node cuts them.
func TestHealingPauses(t *testing.T) {
	var pauses []time.Duration
	untilDone(func() bool { return len(pauses) == 9 }, func(d time.Duration) bool {
		pauses = append(pauses, d)
		return true
	})
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(pauses, want) {
		t.Errorf("it pauses %v", pauses)
	}
	rounds := 0
	untilDone(func() bool { rounds++; return false }, func(time.Duration) bool { return false })
	if rounds != 1 {
		t.Errorf("a pause that is cut is followed by %d rounds", rounds-1)
	}
}
