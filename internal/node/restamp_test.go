package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

var errCut = errors.New("cut")

// future is how many records of a namespace are from the future.
func future(ns *Namespace) (n int) {
	for r, err := range ns.Sets()[0].Future(context.Background()) {
		must(r, err)
		n++
	}
	return n
}

// restarted is the namespace in a process that begins with what the disk has.
func (m *machine) restarted(ns *Namespace) *Namespace {
	m.Forget(ns)
	m.store = m.store.Reopen()
	return must(m.open(ns.secret, ns.state.Load()))
}

// A version that others have accepted, from a clock that was fast by less than the
// skew, does not win over what was written after it and restamped.
func TestRestampWinsOverWhatOthersHold(t *testing.T) {
	m, ns := newAlone()
	m.clock = noon.Add(DefaultMaxSkew - time.Minute)
	old := must(put(ns, "k", "old"))
	m.clock = noon.Add(24 * time.Hour)
	succeeds(t, second(put(ns, "k", "new")))
	m.clock = noon.Add(time.Minute)
	if n, err := ns.Restamp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r := records(ns)[0]
	if string(r.Value) != "new" || r.Version.Compare(old) <= 0 || ns.Ahead() != 0 {
		t.Errorf("%q has version %s, after %s; %s ahead", r.Value, r.Version, old, ns.Ahead())
	}
	succeeds(t, second(put(ns, "k", "newer")))
}

// A restamp that dies between two batches is finished by a second one; what is
// held keeps its content, and no version is used twice.
func TestRestampInBatches(t *testing.T) {
	m, ns := newAlone()
	const long, small = 3, 10 // the long ones fill a batch each
	succeeds(t, second(put(ns, "before", "right")))
	m.clock = m.clock.Add(365 * 24 * time.Hour)
	used := map[dbadapter.Version]string{}
	value := map[string]string{}
	for i := range long + small {
		key := fmt.Sprint("k", i)
		value[key] = strings.Repeat("v", i)
		if i < long {
			value[key] = strings.Repeat("v", dbadapter.MaxValue-i)
		}
		v := must(put(ns, key, value[key]))
		used[v] = key
	}
	m.clock = m.clock.Add(-365 * 24 * time.Hour)
	if _, err := put(ns, "after", "refused"); !errors.Is(err, ErrFutureVersion) || !strings.Contains(err.Error(), "syncd restamp") {
		t.Errorf("a write after the clock was set right: %v", err)
	}
	if n := future(ns); n != long+small {
		t.Errorf("%d records from the future", n)
	}

	batches := 0
	m.apply = func(store dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
		if batches++; batches > 1 { // the process dies between two batches
			return nil, errCut
		}
		return store.Apply(t.Context(), writes)
	}
	n, err := ns.Restamp(t.Context())
	if !errors.Is(err, errCut) || n == 0 || ns.Ahead() == 0 {
		t.Errorf("the first restamp, which dies: %d, %v, ahead by %s", n, err, ns.Ahead())
	}
	m.apply = nil
	ns = m.restarted(ns)
	if ns.Ahead() == 0 || future(ns) != long+small-n {
		t.Errorf("reopened: ahead by %s, %d from the future", ns.Ahead(), future(ns))
	}
	rest, err := ns.Restamp(t.Context())
	if err != nil || n+rest != long+small {
		t.Errorf("the second restamp: %d after %d, %v", rest, n, err)
	}
	v, err := put(ns, "after", "accepted")
	if err != nil || v.Clock.Time().After(m.clock.Add(DefaultMaxSkew)) {
		t.Errorf("a write after the restamp: %v, %v", v, err)
	}
	ns = m.restarted(ns)
	if latest := ns.Sets()[0].Store.Latest(); ns.Ahead() != 0 || latest != v.Clock {
		t.Errorf("reopened: ahead by %s, the latest is of %s", ns.Ahead(), latest.Time())
	}

	snap := must(ns.Sets()[0].Store.Snapshot())
	defer snap.Close()
	members := ns.Members()
	for key, want := range value {
		r := must(snap.Get([]byte(key)))
		why := ns.Sets()[0].examineAll(members, m.ID, m.clock, hashed(ns, r))[0]
		if string(r.Value) != want || used[r.Version] != "" || why != nil {
			t.Errorf("%s has %d bytes, version %s, %v", key, len(r.Value), r.Version, why)
		}
		used[r.Version] = key
	}
	// A year later, in the process that has been restamped, the clock says again
	// what it said while it was wrong.
	m.clock = m.clock.Add(365 * 24 * time.Hour)
	for i := range 2 * small {
		v, err := put(ns, fmt.Sprint("later", i), "")
		if err != nil || used[v] != "" {
			t.Errorf("version %s was used for %q, %v", v, used[v], err)
		}
	}
	if n, err := ns.Restamp(t.Context()); n != 0 || err != nil {
		t.Errorf("a restamp of nothing: %d, %v", n, err)
	}
}

// In the process that has restamped, the clock comes to say again what it said
// while it was wrong: a second record does not get a version of then.
func TestRestampUsesNoVersionTwice(t *testing.T) {
	m, ns := newAlone()
	m.clock = m.clock.Add(time.Hour)
	wrong := must(put(ns, "k", "while it was wrong"))
	m.clock = m.clock.Add(-time.Hour)
	if n, err := ns.Restamp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	m.clock = m.clock.Add(time.Hour)
	later, err := put(ns, "k", "an hour later")
	if err != nil || later.Clock != wrong.Clock || later == wrong {
		t.Errorf("version %s was given before the restamp, and %s after it, %v", wrong, later, err)
	}
}

// Records of another member from the future are listed, and stay.
func TestRestampLeavesOthersAlone(t *testing.T) {
	m, ns := newAlone()
	m.clock = m.clock.Add(time.Hour)
	other := dbadapter.Record{Key: []byte("other"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(m.clock), Writer: 99, Incarnation: 1}}
	hashed := must(dbadapter.Hash(ns.Sets()[0].Keys.Hasher, other))
	succeeds(t, second(ns.Sets()[0].Store.Apply(t.Context(), []dbadapter.Write{{Record: hashed}})))
	succeeds(t, second(put(ns, "own", "")))
	m.clock = m.clock.Add(-time.Hour)
	if n, err := ns.Restamp(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	for r := range ns.Sets()[0].Future(t.Context()) {
		if string(r.Key) != "other" || r.Own {
			t.Errorf("from the future: %+v", r)
		}
	}
	if _, err := put(ns, "own", ""); future(ns) != 1 || !errors.Is(err, ErrFutureVersion) {
		t.Errorf("%d from the future, and a write gives %v", future(ns), err)
	}
}
