package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/reconcile"
)

func TestWrite(t *testing.T) {
	_, ns := newNotes(Policy{})
	first := must(put(ns, "k", "1"))
	if r := must(get(ns, "k")); r.Version != first || string(r.Value) != "1" || first.Writer != writerOf(1) || first.Incarnation != ns.incarnation || first.Incarnation == 0 {
		t.Errorf("held %+v, written as %s", r, first)
	}
	conditional := func(key, value string, held dbadapter.Version) error {
		d := draft(key, value)
		d.If = &held
		_, err := commit(ns.Sets()[0].Write(d))
		return err
	}
	if err := conditional("k", "2", dbadapter.Version{}); !errors.Is(err, dbadapter.ErrConflict) || !strings.Contains(err.Error(), first.String()) {
		t.Errorf("on the condition that the key holds nothing: %v", err)
	}
	succeeds(t, conditional("k", "2", first))
	wantErr(t, conditional("k", "3", first), dbadapter.ErrConflict, "on the condition of an older one")
	succeeds(t, conditional("l", "1", dbadapter.Version{}))
	wantErr(t, second(commit(ns.Sets()[0].Delete([]byte("m")))), dbadapter.ErrNotFound, "delete of nothing")
	grave := must(commit(ns.Sets()[0].Delete([]byte("k"))))
	if r := must(get(ns, "k")); !r.Deleted || r.Version != grave || grave.Compare(first) <= 0 {
		t.Errorf("deleted: %+v", r)
	}
	wantErr(t, second(commit(ns.Sets()[0].Delete([]byte("k")))), dbadapter.ErrDeleted, "the second delete")
	for name, d := range map[string]Draft{
		"no key":        draft("", ""),
		"a long key":    draft(strings.Repeat("k", dbadapter.MaxKey+1), ""),
		"a large value": draft("k", strings.Repeat("v", dbadapter.MaxValue+1)),
	} {
		if _, err := ns.Sets()[0].Write(draft("good", ""), d); !errors.Is(err, dbadapter.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantErr(t, second(ns.Sets()[0].Write(make([]Draft, dbadapter.MaxBatch+1)...)), dbadapter.ErrLimit, "a batch that is too long")
	// The versions of a batch grow in its order.
	batch := must(ns.Sets()[0].Write(draft("1", ""), draft("2", ""), draft("3", "")))
	if _, err := commit(batch, nil); err != nil || batch.Version(0).Compare(batch.Version(1)) >= 0 || batch.Version(1).Compare(batch.Version(2)) >= 0 {
		t.Errorf("%s, %s, %s; %v", batch.Version(0), batch.Version(1), batch.Version(2), err)
	}
}

// Only a member that may write does.
func TestWriteTakesTheRole(t *testing.T) {
	for _, policy := range []Policy{{}, {Unsigned: true}} {
		m, ns := newNotes(policy)
		succeeds(t, errors.Join(setRole(ns, idOf(other), RoleAdmin), setRole(ns, m.ID, RoleRead)))
		_, err := put(ns, "k", "")
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "read") {
			t.Errorf("a reader writes: %v", err)
		}
		im := ns.Sets()[0].Import()
		im.Add(&Item{Key: []byte("k")})
		wantErr(t, second(im.Cut().Writes()), ErrDenied, "a reader imports")
		if len(records(ns)) != 0 {
			t.Error("a reader has written")
		}
	}
}

// A namespace that allows any skew is never ahead of a clock, also while it is
// empty: the differences exceed what a time.Duration holds.
func TestAheadOfAnySkew(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{MaxSkew: math.MaxInt64})
	if ns.Ahead() != 0 {
		t.Errorf("empty, it is ahead by %s", ns.Ahead())
	}
	must(put(ns, "k", ""))
	if ns.Ahead() != 0 {
		t.Errorf("ahead by %s", ns.Ahead())
	}
}

// A version that the other members would refuse is never made: of a clock that
// was set back beyond the skew, or is before 2020, nothing is acknowledged.
func TestWriteOfAWrongClock(t *testing.T) {
	m, ns := newNotes(Policy{MaxSkew: time.Minute})
	right := must(put(ns, "k", "right"))
	refused := func(what string) {
		t.Helper()
		applied := false
		m.apply = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) {
			applied = true
			return nil, errors.New("applied")
		}
		im := ns.Sets()[0].Import()
		im.Add(&Item{Key: []byte("k")})
		_, imported := im.Cut().Writes()
		for how, err := range map[string]error{
			"put":    second(put(ns, "l", "")),
			"batch":  second(commit(ns.Sets()[0].Write(draft("l", ""), draft("m", "")))),
			"delete": second(commit(ns.Sets()[0].Delete([]byte("k")))),
			"import": imported,
		} {
			if !errors.Is(err, ErrFutureVersion) || applied {
				t.Errorf("%s, %s: %v; it reached the store: %t", how, what, err, applied)
			}
		}
		m.apply = nil
		if got := records(ns); len(got) != 1 || got[0].Version != right {
			t.Errorf("%s: held %v", what, got)
		}
	}
	// Behind by what the namespace allows: the next version is a little ahead.
	m.clock = noon.Add(-time.Minute)
	right = must(put(ns, "k", "still right"))
	if ns.Ahead() != 0 {
		t.Errorf("ahead by %s", ns.Ahead())
	}
	m.clock = noon.Add(-time.Minute - time.Millisecond)
	refused("a millisecond more than the skew behind")
	if ns.Ahead() != time.Millisecond {
		t.Errorf("ahead by %s", ns.Ahead())
	}
	m.clock = hlc.Epoch.Add(-time.Hour)
	refused("before 2020")
	// It is over when the clock is right.
	m.clock = noon
	if v := must(put(ns, "k", "right again")); v.Compare(right) <= 0 {
		t.Errorf("%s after %s", v, right)
	}
	early := newMachine(2)
	early.clock = hlc.Epoch.Add(-time.Hour)
	if _, err := early.Found(dbadapter.Secret{}, "fresh", Policy{}); !errors.Is(err, ErrFutureVersion) || !strings.Contains(err.Error(), "2019") {
		t.Errorf("a namespace founded before 2020: %v", err)
	}
}

// overtake lets a later version of another writer into the store before each
// commit, past the clock; it returns how often.
func overtake(m *machine, times int) *int {
	n := 0
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if n++; n <= times {
			w := writes[0].Record
			w.Version = dbadapter.Version{Clock: w.Version.Clock + 1, Writer: 7}
			w.Deleted, w.Value = false, fmt.Append(nil, n)
			must(store.Apply(context.Background(), []dbadapter.Write{{Record: w}}))
		}
		return store.Apply(context.Background(), writes)
	}
	return &n
}

// A single write that another overtakes is made anew, later each time, and given
// up after ten tries; so is a batch, as a whole.
func TestOvertakenWrites(t *testing.T) {
	m, ns := newNotes(Policy{})
	n := overtake(m, MaxAttempts-1)
	v := must(put(ns, "k", "ours"))
	if r := must(get(ns, "k")); *n != MaxAttempts || string(r.Value) != "ours" || r.Version != v || MaxAttempts != 10 {
		t.Errorf("after %d tries %+v", *n, r)
	}
	n = overtake(m, 1000)
	if _, err := put(ns, "l", "ours"); !errors.Is(err, reconcile.ErrBusy) || *n != MaxAttempts {
		t.Errorf("after %d tries: %v", *n, err)
	}
	if r := must(get(ns, "l")); string(r.Value) != "10" {
		t.Errorf("the last of the others is not there: %+v", r)
	}
	// A write upon a condition is tried once: the caller decides what now.
	held := must(get(ns, "l")).Version
	d := draft("l", "ours")
	d.If = &held
	n = overtake(m, 1)
	if _, err := commit(ns.Sets()[0].Write(d)); !errors.Is(err, dbadapter.ErrConflict) || *n != 1 {
		t.Errorf("after %d tries: %v", *n, err)
	}
	n = overtake(m, 1)
	if _, err := commit(ns.Sets()[0].Write(draft("m", "ours"), draft("n", "ours"))); err != nil || *n != 2 {
		t.Errorf("a batch, after %d tries: %v", *n, err)
	}
	for _, key := range []string{"m", "n"} {
		if r := must(get(ns, key)); string(r.Value) != "ours" {
			t.Errorf("of the batch: %+v", r)
		}
	}
	n = overtake(m, 1000)
	if _, err := commit(ns.Sets()[0].Write(draft("o", "ours"), draft("p", "ours"))); !errors.Is(err, reconcile.ErrBusy) || *n != MaxAttempts {
		t.Errorf("a batch, after %d tries: %v", *n, err)
	}
	wantErr(t, second(get(ns, "p")), dbadapter.ErrNotFound, "of a batch that was given up")
	// A store that fails is not asked again.
	failure := errors.New("the disk is full")
	tries := 0
	m.apply = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) {
		tries++
		return nil, failure
	}
	if _, err := put(ns, "k", ""); !errors.Is(err, failure) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	// A version so late that the clock may not follow it ends the write, too.
	m.apply = nil
	must(ns.Sets()[0].Store.Apply(t.Context(), []dbadapter.Write{{Record: hashed(ns, dbadapter.Record{Key: []byte("far"), Version: at(7, time.Hour)})[0]}}))
	wantErr(t, second(put(ns, "far", "ours")), ErrFutureVersion, "a write that follows a version an hour ahead")
	wantErr(t, second(put(ns, "near", "ours")), nil, "a write of another key")
}

// A deletion replaces the record that is held at the try that succeeds, and no
// other: it is bound to that one's version.
func TestDeleteIsBoundToWhatIsHeld(t *testing.T) {
	m, ns := newNotes(Policy{})
	must(put(ns, "k", "0"))
	n := overtake(m, 3)
	overtaking := m.apply
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if held := must(get(ns, "k")); writes[0].If == nil || *writes[0].If != held.Version || !writes[0].Record.Deleted {
			t.Errorf("try %d is %+v; held is %s", *n, writes[0], held.Version)
		}
		return overtaking(store, writes)
	}
	grave := must(commit(ns.Sets()[0].Delete([]byte("k"))))
	if r := must(get(ns, "k")); *n != 4 || !r.Deleted || r.Version != grave {
		t.Errorf("after %d tries %+v", *n, r)
	}
	m.apply = nil
	must(put(ns, "l", "0"))
	n = overtake(m, 1000)
	if _, err := commit(ns.Sets()[0].Delete([]byte("l"))); !errors.Is(err, reconcile.ErrBusy) || *n != MaxAttempts {
		t.Errorf("after %d tries: %v", *n, err)
	}
	// Deleted meanwhile, it is not deleted again.
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		m.apply = nil
		must(commit(ns.Sets()[0].Delete([]byte("l"))))
		return store.Apply(context.Background(), writes)
	}
	wantErr(t, second(commit(ns.Sets()[0].Delete([]byte("l")))), dbadapter.ErrDeleted, "deleted meanwhile")
}

// Single writes share the commits, a batch and an import have them alone.
func TestHold(t *testing.T) {
	_, ns := newNotes(Policy{})
	im := ns.Sets()[0].Import()
	for what, c := range map[string]struct {
		hold   func() (release func())
		shared bool
	}{
		"one write":  {must(ns.Sets()[0].Write(draft("k", ""))).Hold, true},
		"a deletion": {must(ns.Sets()[0].Delete([]byte("k"))).Hold, true},
		"a batch":    {must(ns.Sets()[0].Write(draft("k", ""), draft("l", ""))).Hold, false},
		"an import":  {im.Hold, false},
	} {
		release := c.hold()
		if ns.Sets()[0].commits.lock.TryLock() {
			t.Fatalf("%s does not hold the commits", what)
		}
		shared := ns.Sets()[0].commits.lock.TryRLock()
		if shared {
			ns.Sets()[0].commits.RUnlock()
		}
		if shared != c.shared {
			t.Errorf("%s shares the commits: %t", what, shared)
		}
		release()
		if !ns.Sets()[0].commits.lock.TryLock() {
			t.Fatalf("%s was not released", what)
		}
		ns.Sets()[0].commits.Unlock()
	}
}
