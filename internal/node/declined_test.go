package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// ahead makes two nodes of which b wrote a record while its clock was six hours
// ahead, which a declines. The clock is right again.
func ahead(t *testing.T) (a, b *machine, sa, sb *Namespace) {
	t.Helper()
	a, b = newMachine(1), newMachine(2)
	sa = a.create("notes", Policy{})
	sb = must(b.join(a, invite(sa, RoleWrite)))
	must(put(sa, "shared", ""))
	succeeds(t, third(b.sync(sb, a, finds)))
	b.clock = noon.Add(6 * time.Hour)
	must(put(sb, "k", "written six hours from now"))
	b.clock = noon
	if r, _, err := b.sync(sb, a, finds); !errors.Is(err, syncing.ErrRejected) || r.Sent != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	return a, b, sa, sb
}

// A record declined for its time waits for it, whatever the pace of the syncs, and
// then travels at once.
func TestDeclinedForItsTime(t *testing.T) {
	const slack = 5 * time.Second // by which two clocks may differ
	due := noon.Add(6*time.Hour - DefaultMaxSkew)
	t.Run("its time comes", func(t *testing.T) {
		a, b, _, sb := ahead(t)
		for b.clock = noon.Add(time.Minute); b.clock.Before(due); b.clock = b.clock.Add(time.Minute) {
			a.clock = b.clock
			if r, _, _ := b.sync(sb, a, finds); r.Sent != 0 || r.Rejected != 1 {
				t.Fatalf("at %s: %+v", b.clock, r)
			}
		}
		a.clock, b.clock = due, due
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 || !r.Verified || len(sb.Sets()[0].Declined()) != 0 {
			t.Errorf("when its time has come: %+v, %v", r, err)
		}
	})
	t.Run("the peer is a little behind", func(t *testing.T) {
		a, b, _, sb := ahead(t)
		const behind = 3 * time.Second
		sent := 0
		for b.clock = due; b.clock.Before(due.Add(time.Minute)); b.clock = b.clock.Add(time.Second) {
			a.clock = b.clock.Add(-behind)
			r, _, _ := b.sync(sb, a, finds)
			sent += r.Sent
			if r.Verified {
				break
			}
		}
		if late := b.clock.Sub(due); sent != 2 || late > behind+slack {
			t.Errorf("offered %d times, taken %s late", sent, late)
		}
	})
	t.Run("this clock is set back", func(t *testing.T) {
		a, b, _, sb := ahead(t)
		b.clock = noon.Add(-slack) // so much is no change
		if r, _, _ := b.sync(sb, a, finds); r.Sent != 0 {
			t.Errorf("a little: %+v", r)
		}
		b.clock = noon.Add(-time.Minute)
		a.clock = noon.Add(6 * time.Hour) // meanwhile the peer has found that its own was wrong
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("this clock is set forward", func(t *testing.T) {
		a, b, _, sb := ahead(t)
		a.clock, b.clock = due, due
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("the list of members changes", func(t *testing.T) {
		a, b, sa, sb := ahead(t)
		a.clock = due
		succeeds(t, setRole(sa, idOf(9), RoleRead))
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("it joins again", func(t *testing.T) {
		a, b, sa, sb := ahead(t)
		a.clock = due
		must(b.join(a, invite(sa, RoleWrite)))
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A node is told that a peer declines for its time what it wrote: once, in the
// error of each sync, and in what it says of the namespace.
func TestWrongClockIsTold(t *testing.T) {
	a, b, sa, sb := ahead(t)
	var told []status.DeclinedBy
	b.Doubted = func(set *Set, by status.DeclinedBy) {
		if set.ns != sb {
			t.Error("another namespace")
		}
		told = append(told, by)
	}
	one := status.DeclinedBy{Peer: status.ID(a.ID), Records: 1}
	sb.Sets()[0].declined.Forget()
	for range 3 {
		_, _, err := b.sync(sb, a, finds)
		for _, want := range []string{"the peer declines 1 of this node's (1: its time lies in the future or before 2020)", "is this machine's clock right?"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v", err)
			}
		}
		if got := sb.Sets()[0].Declined(); !slices.Equal(got, []status.DeclinedBy{one}) {
			t.Errorf("declined by %+v", got)
		}
	}
	_, _, err := a.sync(sa, b, finds) // the other way round
	if want := "this node declines 1 of the peer's (1: declined in an earlier sync)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(told, []status.DeclinedBy{one}) || len(sa.Sets()[0].Declined()) != 0 {
		t.Errorf("told %+v; the other node says %+v", told, sa.Sets()[0].Declined())
	}
	if n, err := sb.Restamp(t.Context()); n != 1 || err != nil || len(sb.Sets()[0].Declined()) != 0 {
		t.Errorf("restamped %d, %v; declined by %+v", n, err, sb.Sets()[0].Declined())
	}
	if r, _, err := b.sync(sb, a, finds); err != nil || !r.Verified {
		t.Errorf("after the restamp: %+v, %v", r, err)
	}
	b.clock = noon.Add(6 * time.Hour)
	must(put(sb, "l", "once more"))
	for range 2 {
		if _, _, err := b.sync(sb, a, finds); err == nil {
			t.Error("nothing was declined")
		}
	}
	if len(told) != 2 {
		t.Errorf("told %+v", told)
	}
}

// finds is a sync that finds its differences before it sends anything. It needs a
// record on either side: an empty set is sent everything.
var finds = syncing.Ask{Method: wire.MethodSketch}

// declines makes two nodes of which a refuses a record that b has of a former writer, and has
// said so.
func declines(t *testing.T) (a, b *machine, sa, sb *Namespace, former ID) {
	t.Helper()
	a, b = newMachine(1), newMachine(2)
	c := newMachine(3)
	sa = a.create("notes", Policy{})
	sb = must(b.join(a, invite(sa, RoleWrite)))
	sc := must(c.join(a, invite(sa, RoleWrite)))
	must(put(sa, "shared", ""))
	succeeds(t, third(b.sync(sb, a, finds)))
	succeeds(t, third(c.sync(sc, b, finds)))
	succeeds(t, setRole(sa, c.ID, RoleRead))
	c.clock = noon.Add(time.Second) // later than it was made a reader, of which neither has heard
	must(put(sc, "k", "of c"))
	succeeds(t, third(c.sync(sc, b, finds)))
	if r, _, err := b.sync(sb, a, finds); r.Sent != 1 || r.Rejected != 1 || r.Verified {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, _, err := b.sync(sb, a, finds); r.Sent != 0 || r.Rejected != 1 || r.Verified {
		t.Fatalf("again: %+v, %v", r, err)
	}
	return a, b, sa, sb, c.ID
}

// A record that a peer has declined travels again when that is long ago, and as
// soon as the list of members has changed.
func TestDeclinedRecordsTravelAgain(t *testing.T) {
	t.Run("after its life", func(t *testing.T) {
		a, b, _, sb, _ := declines(t)
		b.clock = noon.Add(refusals.DeclinedLife - time.Second)
		if r, _, _ := b.sync(sb, a, finds); r.Sent != 0 {
			t.Errorf("too early: %+v", r)
		}
		b.clock = noon.Add(refusals.DeclinedLife)
		if r, _, err := b.sync(sb, a, finds); !errors.Is(err, syncing.ErrRejected) || r.Sent != 1 {
			t.Errorf("in time: %+v, %v", r, err)
		}
	})
	t.Run("after its writer may write again, and could then", func(t *testing.T) {
		a, b, sa, sb, former := declines(t)
		held := sa.Hold()
		err := held.Declare(t.Context(), roster.Statement{Kind: roster.Grant, Subject: former, Role: RoleWrite, Since: dbadapter.TimestampAt(noon)})
		if held.Release(); err != nil {
			t.Fatal(err)
		}
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 || !r.Verified {
			t.Errorf("%+v, %v", r, err)
		}
	})
	// A record that took a declined one's place is another.
	t.Run("written anew", func(t *testing.T) {
		a, b, sa, sb, former := declines(t)
		a.clock = noon.Add(2 * time.Second)
		succeeds(t, setRole(sa, former, RoleWrite))
		wantErr(t, third(b.sync(sb, a, finds)), syncing.ErrRejected, "what was written by a reader")
		must(put(sb, "k", "once more"))
		if r, _, err := b.sync(sb, a, finds); err != nil || r.Sent != 1 || !r.Verified {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// While a node is given much by one peer, a sync with another one that an estimate says may
// bring much, and which does not, is held a minute later: all of it, of which cells are
// asked for more than once.
func TestSyncInDoubtIsHeldOnceAMinute(t *testing.T) {
	for _, n := range []int{150, 250} {
		for _, from := range []int{1, 2} {
			c := newCrew(t, 3)
			for i := range n {
				c.put(2, fmt.Sprint("k", i), "0")
				c.put(1, fmt.Sprint("l", i), "0")
			}
			given(c.machines[2], c.ns[2], c.machines[0].ID)
			held := false
			for range 3 {
				_, _, err := c.machines[from].converse(c.ns[from], c.machines[3-from], syncing.Ask{})
				if held = err == nil; held {
					break
				}
				if !errors.Is(err, reconcile.ErrTurn) {
					t.Fatal(err)
				}
				c.pass(syncing.TurnDoubt + time.Second)
			}
			if !held {
				t.Errorf("%d records each way, node %d calls: no sync is held", n, from)
			}
		}
	}
}

// What was refused is listed until its key holds that record or a later one, however that
// came, and no longer; a version before it changes nothing.
func TestRejectedUntilALaterVersion(t *testing.T) {
	for name, c := range map[string]struct {
		then func(a, b *machine, sa, sb *Namespace) error
		left int
	}{
		"the writer deletes it": {func(a, b *machine, sa, sb *Namespace) error {
			must(commit(sa.Sets()[0].Delete([]byte("k"))))
			_, _, err := b.sync(sb, a, syncing.Ask{})
			return err
		}, 0},
		"the writer writes it anew": {func(a, b *machine, sa, sb *Namespace) error {
			must(put(sa, "k", "later"))
			_, _, err := b.sync(sb, a, syncing.Ask{})
			return err
		}, 0},
		"this node writes it": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := put(sb, "k", "mine")
			return err
		}, 0},
		"this node imports it": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := importAll(sb, []Item{{Key: []byte("k"), Value: []byte("mine")}})
			return err
		}, 0},
		"this node imports an older one": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := importAll(sb, []Item{{Key: []byte("k"), Value: []byte("mine"), Time: noon.Add(-time.Hour)}})
			return err
		}, 1},
		"the writer deletes it, and another peer has not heard": {func(a, b *machine, sa, sb *Namespace) error {
			third := newMachine(3)
			sc := must(third.join(a, invite(sa, RoleWrite)))
			third.clock = a.clock.Add(2 * sa.Members().Policy().MaxSkew)
			must(put(sc, "k", "of the third"))
			if _, _, err := third.sync(sc, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
				return err
			}
			a.clock = third.clock.Add(time.Minute)
			a.turn(sa, third)
			must(commit(sa.Sets()[0].Delete([]byte("k"))))
			b.clock = a.clock
			if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || sb.Sets()[0].RejectedCount() != 0 {
				return errors.Join(err, fmt.Errorf("%v is listed", sb.Sets()[0].Rejected()))
			}
			b.clock = noon // its clock goes wrong
			r := must(dbadapter.Hash(sb.Sets()[0].Keys.Hasher, must(get(sc, "k"))))
			verdicts := must(sb.Sets()[0].Admit(context.Background(), third.ID, 0, noTerm, []dbadapter.Hashed{r})())
			if verdicts[0].Reason != wire.ReasonClock {
				return fmt.Errorf("it was not refused: %v", verdicts)
			}
			return nil
		}, 0},
		"this node writes another key": {func(_, _ *machine, _, sb *Namespace) error {
			_, err := put(sb, "another", "")
			return err
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, sa, sb := newPair(RoleWrite)
			succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
			a.clock = a.clock.Add(2 * sa.Members().Policy().MaxSkew)
			must(put(sa, "k", "v"))
			if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) || sb.Sets()[0].RejectedCount() != 1 {
				t.Fatal(err, sb.Sets()[0].Rejected())
			}
			a.clock = a.clock.Add(time.Minute)
			b.clock = a.clock
			succeeds(t, c.then(a, b, sa, sb))
			if list := sb.Sets()[0].Rejected(); len(list) != c.left || sb.Sets()[0].RejectedCount() != c.left {
				t.Errorf("%v is listed", list)
			}
		})
	}
}
