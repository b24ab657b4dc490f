package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A paused namespace takes part in no sync, of its records and of its members, whichever
// side begins it; and a member alone hears of that.
func TestPausedNamespace(t *testing.T) {
	a, b, sa, sb := newPair(RoleRead)
	removed := newMachine(3)
	sr := must(removed.join(a, invite(sa, RoleRead)))
	succeeds(t, sa.Remove(t.Context(), removed.ID, false))
	var saved []*State
	a.save = func(s *State) error { saved = append(saved, s); return nil }
	if err := errors.Join(sa.SetPaused(true), sa.SetPaused(true)); err != nil || !sa.Paused() {
		t.Fatalf("paused: %t, %v", sa.Paused(), err)
	}
	if len(saved) != 1 || !must(DecodeState(must(saved[0].Encode()))).Paused {
		t.Errorf("%d states were saved, the last %+v", len(saved), saved)
	}
	if err := sa.MayCall(b.ID); !errors.Is(err, reconcile.ErrPaused) || !strings.Contains(err.Error(), "syncd resume notes") {
		t.Errorf("a sync of this node's own: %v", err)
	}
	wantErr(t, sa.MayCall(idOf(9)), ErrDenied, "a sync with a stranger")
	for name, ask := range map[string]syncing.Ask{"records": {}, "members": {Control: true}, "dry": {DryRun: true}, "pull": {Direction: wire.Pull}} {
		_, _, err := b.sync(sb, a, ask)
		if !errors.Is(err, reconcile.ErrPaused) || errors.Is(err, reconcile.ErrBusy) || strings.Contains(err.Error(), "notes") {
			t.Errorf("%s: the peer hears %v", name, err)
		}
	}
	hello := someHello(sb)
	if _, _, err := a.Answer(idOf(9), hello); err != ErrDenied {
		t.Errorf("a stranger hears %v", err)
	}
	c, proved := helloOf(t, sr, a.ID)
	defer c.End(nil)
	if _, _, err := a.Answer(removed.ID, proved); !errors.Is(err, reconcile.ErrRemoved) {
		t.Errorf("a former member hears %v", err)
	}
	must(put(sa, "k", "written meanwhile"))
	succeeds(t, sa.SetPaused(false))
	if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || string(must(get(sb, "k")).Value) != "written meanwhile" {
		t.Errorf("resumed: %v", err)
	}
}

// A paused peer is not called, and what it begins is refused, in all namespaces; others
// are synced with.
func TestPausedPeer(t *testing.T) {
	a, b, c := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb, sc := must(b.join(a, invite(sa, RoleRead))), must(c.join(a, invite(sa, RoleRead)))
	a.Config.Paused = func(id ID) bool { return id == b.ID }
	if err := sa.MayCall(b.ID); !errors.Is(err, reconcile.ErrPaused) || !strings.Contains(err.Error(), "syncd peer resume "+b.ID.String()) {
		t.Errorf("a sync of this node's own: %v", err)
	}
	if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, reconcile.ErrPaused) {
		t.Errorf("the peer hears %v", err)
	}
	wantErr(t, third(c.sync(sc, a, syncing.Ask{})), nil, "another peer")
	wantErr(t, sa.MayCall(c.ID), nil, "another peer")
}

// What is paused has no turn in the background, and has one at once when it is resumed.
func TestScheduleOfWhatIsPaused(t *testing.T) {
	m := newMachine(1)
	for i := range 2 {
		succeeds(t, setRole(m.create(fmt.Sprint("ns", i), Policy{}), idOf(other), RoleRead))
	}
	list := m.namespaces()
	round := func(err error, want int) {
		t.Helper()
		r := &countedRounds{m, err, 0}
		if m.Schedule.Round(t.Context(), r, m.Partners(func(ID) bool { return true })); r.syncs != want {
			t.Errorf("%d syncs, want %d", r.syncs, want)
		}
	}
	round(nil, 2)
	succeeds(t, list[0].SetPaused(true))
	round(nil, 1)
	m.Config.Paused = func(id ID) bool { return id == idOf(other) }
	round(nil, 0)
	m.Config.Paused = nil
	round(reconcile.ErrPaused, 1)
	round(nil, 0) // it rests after the peer has refused
	succeeds(t, list[0].SetPaused(false))
	round(nil, 2)
}

// countedRounds counts the syncs of a round, which all end in one way.
type countedRounds struct {
	*machine
	err   error
	syncs int
}

func (r *countedRounds) Sync(context.Context, *Part, ID) (bool, error) {
	r.syncs++
	return true, r.err
}

func (r *countedRounds) Now() time.Time { return r.clock }

func (r *countedRounds) Go(ctx context.Context, f func(ctx context.Context)) { f(ctx) }

// Members that push to this node are told when a namespace is paused, and when it goes on.
func TestPauseChangesAudiences(t *testing.T) {
	ns := newMachine(1).create("things", Policy{})
	for _, paused := range []bool{true, false} {
		before := ns.Audiences()
		succeeds(t, ns.SetPaused(paused))
		if ns.Audiences() == before {
			t.Errorf("paused %t: the driver does not hear of it", paused)
		}
	}
}
