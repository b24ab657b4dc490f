package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// A write names the versions that it was built on: those of other writers, and of
// this one before its last start. What another member wrote beside it, it does not
// name.
func TestWritesNameWhatTheyReplace(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	sync := func() {
		t.Helper()
		b.clock, a.clock = b.clock.Add(time.Minute), a.clock.Add(time.Minute)
		if report, _, err := b.sync(sb, a, Ask{}); err != nil || !report.Verified {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	want := func(r dbadapter.Record, seen, beside []dbadapter.Version) {
		t.Helper()
		for _, v := range seen {
			if !r.Supersedes(v) {
				t.Errorf("%s, which replaces %v, does not supersede %s", r.Version, r.Replaces, v)
			}
		}
		for _, v := range beside {
			if r.Supersedes(v) {
				t.Errorf("%s, which replaces %v, supersedes %s", r.Version, r.Replaces, v)
			}
		}
	}
	v1 := must(put(sa, "k", "1"))
	v2 := must(put(sa, "k", "2"))
	r := must(get(sa, "k"))
	if r.Replaces != nil {
		t.Errorf("a second put names %v", r.Replaces)
	}
	want(r, []dbadapter.Version{v1}, nil)
	sync()
	v3 := must(put(sb, "k", "3"))
	want(must(get(sb, "k")), []dbadapter.Version{v1, v2}, nil)
	// Beside v3, in another incarnation: a batch, a deletion and an import.
	sa.incarnation++
	v4 := must(put(sa, "k", "4"))
	want(must(get(sa, "k")), []dbadapter.Version{v1, v2}, []dbadapter.Version{v3})
	batch := must(sa.Sets()[0].Write(draft("k", "5"), draft("l", "")))
	must(commit(batch, nil))
	v5 := batch.Version(0)
	v6 := must(commit(sa.Sets()[0].Delete([]byte("k"))))
	must(importAll(sa, []Item{{Key: []byte("k"), Value: []byte("7")}}))
	last := must(get(sa, "k"))
	want(last, []dbadapter.Version{v1, v2, v4, v5, v6}, []dbadapter.Version{v3})
	sync()
	// Each of the two is there; the winner did not know the other.
	if r := must(get(sb, "k")); r.Compare(&last) != 0 {
		t.Errorf("held %+v", r)
	}
	v8 := must(put(sb, "k", "8"))
	want(must(get(sb, "k")), []dbadapter.Version{v1, v2, v4, v5, v6, last.Version}, nil)
	sync()
	// Over a dated record nothing is named, and a dated record names nothing.
	must(importAll(sa, []Item{{Key: []byte("k"), Value: []byte("9"), Time: a.clock.Add(time.Minute)}}))
	if r := must(get(sa, "k")); r.Replaces != nil || r.Version.Writer != 0 {
		t.Errorf("a dated import: %+v", r)
	}
	must(put(sa, "k", "10"))
	if r := must(get(sa, "k")); r.Replaces != nil {
		t.Errorf("over a dated import: %v", r.Replaces)
	}
	want(must(get(sa, "k")), nil, []dbadapter.Version{v8})
}

// Of more than MaxReplaces writers the oldest are not named.
func TestWritesNameTheLatestWriters(t *testing.T) {
	_, ns := newNotes(Policy{Unsigned: true})
	for seed := 2; seed < 20; seed++ {
		held, _ := get(ns, "k")
		r := dbadapter.Record{Key: []byte("k"), Value: fmt.Append(nil, seed), Version: at(seed, time.Duration(seed)*time.Second)}
		if seed > 2 {
			r.Replace(&held)
		}
		admit(ns, 1, r)
	}
	must(put(ns, "k", "last"))
	r := must(get(ns, "k"))
	if err := r.Validate(); err != nil || len(r.Replaces) != dbadapter.MaxReplaces {
		t.Fatalf("%v, %v", r.Replaces, err)
	}
	for seed := 2; seed < 20; seed++ {
		if got, want := r.Supersedes(at(seed, time.Duration(seed)*time.Second)), seed >= 20-dbadapter.MaxReplaces; got != want {
			t.Errorf("supersedes the version of writer %d: %t", seed, got)
		}
	}
}

// A record that is to rest on what other hosts hold supersedes that alone, and not what another call of its node has
// given to them in the same incarnation.
func TestConditionsSupersedeWhatTheyRestOn(t *testing.T) {
	a := newMachine(1)
	ns := a.create("notes", Policy{})
	v1 := must(put(ns, "k", "1"))
	held := must(get(ns, "k"))
	remote := ns.Remote([]byte("k"))
	beside := must(remote.Make(draft("k", "beside")))
	on := draft("k", "2")
	on.If, on.Seen = &v1, []*dbadapter.Record{&held}
	attempt := must(ns.Sets()[0].Write(on))
	must(commit(attempt, nil))
	for what, r := range map[string]*dbadapter.Record{"here": attempt.Record(0), "elsewhere": must(remote.Make(on))} {
		if !r.Supersedes(v1) || r.Supersedes(beside.Version) || r.Version.Compare(beside.Version) < 0 {
			t.Errorf("%s: %s replaces %v, beside %s", what, r.Version, r.Replaces, beside.Version)
		}
	}
	if over := must(remote.Make(Draft{Record: dbadapter.Record{Key: []byte("k")}, Seen: []*dbadapter.Record{attempt.Record(0)}})); !over.Supersedes(attempt.Version(0)) {
		t.Errorf("what is put over it replaces %v", over.Replaces)
	}
}

// A write on what another host holds, or a deletion of that, at a host that holds something else, which neither has seen,
// replaces the former alone: the latter becomes a conflict. A put has seen both.
func TestConditionsAtAHostThatHoldsAnother(t *testing.T) {
	x, y := dbadapter.Record{Key: []byte("k"), Value: []byte("x"), Version: at(writer, time.Second)}, dbadapter.Record{Key: []byte("k"), Value: []byte("y"), Version: at(other, 2*time.Second)}
	on := draft("k", "z")
	on.If, on.Seen = &y.Version, []*dbadapter.Record{&y}
	over := on
	over.If = nil
	for what, c := range map[string]struct {
		write func(*Set) (*Attempt, error)
		kept  int
	}{
		"a put on it":              {func(set *Set) (*Attempt, error) { return set.Write(on) }, 1},
		"a put on it, and another": {func(set *Set) (*Attempt, error) { return set.Write(on, draft("k", "again")) }, 1},
		"a deletion":               {func(set *Set) (*Attempt, error) { return set.Delete(y.Key, &y) }, 1},
		"a put":                    {func(set *Set) (*Attempt, error) { return set.Write(over) }, 0},
	} {
		_, ns := newNotes(Policy{Unsigned: true})
		admit(ns, writer, x)
		set := ns.Sets()[0]
		attempt := must(c.write(set))
		must(commit(attempt, nil))
		if r := attempt.Record(0); !r.Supersedes(y.Version) || r.Version.Compare(y.Version) < 0 || r.Supersedes(x.Version) != (c.kept == 0) {
			t.Errorf("%s: %s replaces %v", what, r.Version, r.Replaces)
		}
		if got := set.Store.KeptCount(dbadapter.KeptConflict); got != c.kept {
			t.Errorf("%s: %d conflicts, want %d", what, got, c.kept)
		}
	}
}
