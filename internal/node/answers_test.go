package node

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// What travels has room for each shard.
func TestNumbersOfShards(t *testing.T) {
	if wire.MaxShards != placement.MaxShards {
		t.Errorf("%d shards can be named, of %d", wire.MaxShards, placement.MaxShards)
	}
}

// A routed question of a stranger, of a removed member, without the secret, or about
// another namespace gets one answer; so many are answered at once.
func TestRoutedQuestionsAreOfMembers(t *testing.T) {
	a, b, stranger := newMachine(1), newMachine(2), newMachine(3)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleRead)))
	question := must(sb.Ask(a.ID, &wire.AskRecord{Key: []byte("k")}))
	for name, edit := range map[string]func(m *wire.Ask) ID{
		"a stranger":            func(*wire.Ask) ID { return stranger.ID },
		"another member":        func(*wire.Ask) ID { return a.ID },
		"another nonce":         func(m *wire.Ask) ID { m.Nonce[0]++; return b.ID },
		"another proof":         func(m *wire.Ask) ID { m.Proof[0]++; return b.ID },
		"no such namespace":     func(m *wire.Ask) ID { m.Namespace = dbadapter.NamespaceID{9}; return b.ID },
		"the control namespace": func(m *wire.Ask) ID { m.Namespace = sa.Control.Keys.ID; return b.ID },
	} {
		m := *question
		from := edit(&m)
		if _, err := a.Routed(from, &m); err != ErrDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Routed(b.ID, &wire.Ask{Version: 9}); err != reconcile.ErrVersion {
		t.Errorf("another version: %v", err)
	}
	wantErr(t, second(a.Routed(b.ID, must(sb.Sets()[0].Ask(a.ID, 0, &wire.AskSet{})))), reconcile.ErrProtocol, "a question that is not routed")
	var open []*Asked
	for i := range syncing.MaxRouted + 1 {
		one, err := a.Routed(b.ID, question)
		if want := i == syncing.MaxRouted; errors.Is(err, reconcile.ErrBusy) != want {
			t.Fatalf("question %d: %v", i, err)
		}
		if err == nil {
			open = append(open, one)
		}
	}
	for i := range syncing.MaxFeeding + 1 { // of the directory a peer hears all the same
		one, err := a.Routed(b.ID, must(sb.Ask(a.ID, &wire.AskFeed{})))
		if want := i == syncing.MaxFeeding; errors.Is(err, reconcile.ErrBusy) != want {
			t.Fatalf("question %d about the directory beside others: %v", i, err)
		}
		if err == nil {
			open = append(open, one)
		}
	}
	open[0].Done()
	if one, err := a.Routed(b.ID, question); err != nil {
		t.Errorf("a question beside those about the directory: %v", err)
	} else {
		open[0] = one
	}
	for _, one := range open {
		one.Done()
	}
	a.Config.Paused = func(id ID) bool { return id == b.ID }
	wantErr(t, second(a.Routed(b.ID, question)), reconcile.ErrPaused, "paused")
	a.Config.Paused = nil
	succeeds(t, sa.Remove(t.Context(), b.ID, false))
	if _, err := a.Routed(b.ID, question); err != ErrDenied {
		t.Errorf("removed: %v", err)
	}
	wantErr(t, second(sa.Ask(b.ID, question.Question)), ErrDenied, "a question to a removed member")
}

// newTimedMovers are movers that have settled, and whose clocks both go as the test says. Shard
// is one that the first two of the three hold.
func newTimedMovers(t *testing.T) (w *movers, shard placement.Shard) {
	t.Helper()
	w = newMovers(t, 1, 3)
	for _, m := range w.all {
		m.Elapsed = func() time.Duration { return m.clock.Sub(noon) }
	}
	w.settle()
	for s := range placement.Shard(w.rule.Shards) {
		if w.all[0].held(s) != nil && w.all[1].held(s) != nil {
			return w, s
		}
	}
	t.Fatal("no shard is held by the first two")
	return nil, 0
}

// Who loses records again while it recovers from a loss has to be found equal anew.
func TestLossBesideARecovery(t *testing.T) {
	w, shard := newTimedMovers(t)
	host := w.all[0]
	set := host.held(shard)
	succeeds(t, mayLack(host.ns))
	if term := set.tenure.begun(host.elapsed()); term != noTerm {
		t.Errorf("a sync just after the loss counts in term %d", term)
	}
	w.pass(quorum.LongestDeadline)
	term := set.tenure.begun(host.elapsed())
	set.tenure.equal(w.all[1].ID, 0, term)
	if missing := set.tenure.missing(); term == noTerm || len(missing) > 0 {
		t.Fatalf("in term %d it misses %v", term, missing)
	}
	succeeds(t, mayLack(host.ns))
	if missing, term := set.tenure.missing(), set.tenure.begun(host.elapsed()); term != noTerm || len(missing) != 1 {
		t.Errorf("after another loss it misses %v, and a sync counts in term %d", missing, term)
	}
}
