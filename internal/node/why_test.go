package node

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// why asks another machine and explains.
func (m *machine) why(t *testing.T, ns *Namespace, other *machine, key string) status.Why {
	t.Helper()
	q := must(ns.Sets()[0].HeldQuestion([]byte(key)))
	answer, _, err := m.ask(ns, other, q)
	if err != nil {
		return ns.Sets()[0].Unanswered(other.ID, q, err)
	}
	there := other.Namespace(ns.Sets()[0].Keys.ID)
	return must(ns.Sets()[0].Explain(other.ID, q, &wire.Reply{Greeting: there.Sets()[0].introduce(), Answer: answer}))
}

func has(w *status.Why, kinds ...status.CauseKind) bool {
	return slices.ContainsFunc(w.Causes, func(c status.Cause) bool { return slices.Contains(kinds, c.Kind) })
}

// standingOf is what the explanation has to say of two records, looked up by hand.
func standingOf(here, there dbadapter.Record, errHere, errThere error) status.Standing {
	switch {
	case errHere != nil && errThere != nil:
		return "held by neither"
	case errHere != nil:
		return "missing here"
	case errThere != nil:
		return "missing there"
	case here.Version == there.Version && bytes.Equal(here.Value, there.Value) && here.Deleted == there.Deleted:
		return "same"
	case here.Version == there.Version:
		return "two contents"
	case here.Version.Compare(there.Version) > 0:
		return "newer here"
	}
	return "newer there"
}

// A version of a clock that was ages ahead rests for as long as can be told, and no longer.
func TestRestOfADistantVersion(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil {
		t.Fatal(err)
	}
	now := a.clock
	a.clock = now.AddDate(320, 0, 0)
	must(put(sa, "k", "1"))
	a.clock = now
	if _, _, err := a.sync(sa, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
		t.Fatalf("a record of the future was taken: %v", err)
	}
	q := must(sa.Sets()[0].HeldQuestion([]byte("k")))
	reason, rest := sa.Sets()[0].restsWith(b.ID, sb.Members().Digest(), &q.Held, q.Digest)
	if reason != wire.ReasonClock || rest != wire.MaxRest*time.Millisecond {
		t.Errorf("%v, %s", reason, rest)
	}
}

// A record that a peer has declined for its clock, which was behind, and would take by now
// travels only when the node that holds it offers it again: both sides say so, and when.
func TestWhyOfWhatWasDeclinedBefore(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil {
		t.Fatal(err)
	}
	b.clock = a.clock.Add(-time.Hour)
	a.clock = a.clock.Add(time.Second)
	must(put(sa, "k", "1"))
	if _, _, err := a.sync(sa, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
		t.Fatalf("a record of the future was taken: %v", err)
	}
	b.clock = a.clock
	both := func() (kinds [2]string, texts [2]string) {
		for i, w := range []status.Why{a.why(t, sa, b, "k"), b.why(t, sb, a, "k")} {
			if len(w.Causes) != 1 {
				t.Fatalf("%+v", w)
			}
			kinds[i], texts[i] = string(w.Causes[0].Kind), w.Causes[0].Text
		}
		return kinds, texts
	}
	kinds, texts := both()
	for i, want := range []string{"this node offers it again in 5m", "the peer offers it again in 5m"} {
		if kinds[i] != string(status.CauseRests) || !strings.Contains(texts[i], want) {
			t.Errorf("%q: %q, not %q", kinds[i], texts[i], want)
		}
	}
	if _, _, err := a.sync(sa, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
		t.Fatalf("a record that rests has travelled: %v", err)
	}
	for _, m := range []*machine{a, b} {
		m.clock = m.clock.Add(refusals.DeclinedLife)
	}
	if kinds, texts = both(); kinds != [2]string{string(status.CauseNotSynced), string(status.CauseNotSynced)} {
		t.Errorf("%q: %q", kinds, texts)
	}
	if _, _, err := a.sync(sa, b, syncing.Ask{}); err != nil {
		t.Fatal(err)
	}
}

// Whatever two members have written, with clocks that are off, roles that were taken and
// records that have expired: the standing is what both hold, and a sync then brings over
// exactly what was not said to be declined.
func TestWhyForetellsTheSync(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	common := []string{"same", "missing here", "missing there", "newer here", "newer there", string(status.CauseDeclinedThere), string(status.CauseDeclinedHere), string(status.CauseExpired), string(status.CauseConflict), string(status.CauseNotSynced)}
	unseen := func(what string) bool { return seen[what] == 0 }
	for round := 0; round < 100 || round < 5000 && slices.ContainsFunc(common, unseen); round++ {
		a, b, c := newMachine(1), newMachine(2), newMachine(3)
		sa := a.create("notes", Policy{})
		sb := must(b.join(a, invite(sa, RoleWrite)))
		sc := must(c.join(a, invite(sa, RoleWrite)))
		for _, with := range []*machine{b, c} {
			if _, _, err := a.sync(sa, with, syncing.Ask{}); err != nil {
				t.Fatal(err)
			}
		}
		ms, sets := []*machine{a, b, c}, []*Namespace{sa, sb, sc}
		for range 12 {
			n := random.IntN(3)
			key := fmt.Sprint("k", random.IntN(4))
			switch random.IntN(9) {
			case 0, 1, 2, 3:
				d := draft(key, fmt.Sprint(random.Uint64()))
				if random.IntN(3) == 0 {
					d.TTL = time.Duration(1+random.IntN(20)) * time.Second
				}
				_, _ = commit(sets[n].Sets()[0].Write(d))
			case 4:
				_, _ = commit(sets[n].Sets()[0].Delete([]byte(key)))
			case 5:
				ms[n].clock = ms[n].clock.Add(time.Duration(random.IntN(900)-300) * time.Second)
			case 6:
				_, _, _ = ms[n].sync(sets[n], ms[(n+1)%3], syncing.Ask{Direction: wire.Direction(random.IntN(3))})
			case 7:
				_ = setRole(sa, c.ID, []Role{RoleRead, RoleWrite}[random.IntN(2)])
			case 8:
				for _, m := range ms {
					m.clock = m.clock.Add(time.Duration(random.IntN(10)) * time.Second)
				}
			}
		}
		n := random.IntN(3)
		other := (n + 1 + random.IntN(2)) % 3
		// The lists are made equal first: a sync does so, and then some of what was
		// declined is not any more.
		_, _, _ = ms[n].sync(sets[n], ms[other], syncing.Ask{Control: true})
		whys, before := map[string]status.Why{}, map[string]dbadapter.Record{}
		for k := range 4 {
			key := fmt.Sprint("k", k)
			here, errHere := get(sets[n], key)
			there, errThere := get(sets[other], key)
			before[key] = there
			w := ms[n].why(t, sets[n], ms[other], key)
			if want := standingOf(here, there, errHere, errThere); w.Standing != want {
				t.Fatalf("%s is %q, not %q: here %+v, there %+v", key, w.Standing, want, here, there)
			}
			if w.Here.Version != here.Version || w.There.Version != there.Version {
				t.Fatalf("%s: %+v of %+v and %+v", key, w, here, there)
			}
			if expired := errHere == nil && here.Expired(ms[n].clock); has(&w, status.CauseExpired) != expired {
				t.Fatalf("%s: expired is %t: %+v", key, expired, w.Causes)
			}
			whys[key] = w
		}
		if _, _, err := ms[n].sync(sets[n], ms[other], syncing.Ask{}); err != nil && !errors.Is(err, syncing.ErrRejected) {
			if errors.Is(err, reconcile.ErrDenied) || errors.Is(err, reconcile.ErrTwin) {
				continue
			}
			t.Fatal(err)
		}
		for key, w := range whys {
			seen[string(w.Standing)]++
			for _, c := range w.Causes {
				seen[string(c.Kind)]++
			}
			now, _ := get(sets[other], key)
			mine, _ := get(sets[n], key)
			switch w.Standing {
			case "missing there", "newer here":
				brought := now.Version.Compare(w.Here.Version) >= 0
				if declined := has(&w, status.CauseDeclinedThere, status.CauseCollectedThere, status.CauseRests); brought == declined || declined == has(&w, status.CauseNotSynced) {
					t.Fatalf("%s: brought by the sync: %t; %+v", key, brought, w)
				}
			case "missing here", "newer there":
				brought := mine.Version.Compare(w.There.Version) >= 0
				if declined := has(&w, status.CauseDeclinedHere, status.CauseCollectedHere, status.CauseRests); brought == declined || declined == has(&w, status.CauseNotSynced) {
					t.Fatalf("%s: brought by the sync: %t; %+v", key, brought, w)
				}
			}
		}
	}
	for _, what := range slices.DeleteFunc(common, func(what string) bool { return !unseen(what) }) {
		t.Errorf("%q has not come up: %v", what, seen)
	}
}

// A wait counts those that hold it, each once, and never loses one that did.
func TestAwaiting(t *testing.T) {
	a := newMachine(1)
	sa := a.create("notes", Policy{})
	var ids []ID
	for seed := 2; seed < 6; seed++ {
		m := newMachine(seed)
		must(m.join(a, invite(sa, RoleRead)))
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	if got := sa.Others(); !slices.Equal(got, ids) {
		t.Fatalf("%q, not %q", got, ids)
	}
	if err := sa.Lapse(t.Context(), ids[3]); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		named []ID
		count int
	}{
		"more than there are": {nil, 4}, "fewer than none": {nil, -1}, "itself": {[]ID{a.ID}, 0}, "a stranger": {[]ID{idOf(9)}, 0},
		"more than named": {ids[:2], 3}, "one twice": {[]ID{ids[0], ids[0]}, 2},
	} {
		if _, err := sa.NewAwaiting(c.named, c.count); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := must(sa.NewAwaiting(nil, 0))
	if all.Need() != 3 || must(sa.NewAwaiting(ids, 0)).Need() != 4 {
		t.Errorf("%d members are waited for", all.Need())
	}
	failed := errors.New("away")
	all.Heard(ids[0], nil)
	all.Heard(ids[0], nil)
	all.Heard(ids[0], failed)
	all.Heard(ids[1], failed)
	held, missing, why := all.Result()
	if all.Done() || !slices.Equal(held, ids[:1]) || !slices.Equal(missing, ids[1:3]) || why[ids[1]] != failed || why[ids[0]] != nil {
		t.Errorf("%q, %q, %v", held, missing, why)
	}
	all.Heard(ids[1], nil)
	all.Heard(ids[2], nil)
	if _, _, why := all.Result(); !all.Done() || len(why) != 0 {
		t.Errorf("not done: %v", why)
	}
	alone := newMachine(8).create("alone", Policy{})
	if w := must(alone.NewAwaiting(nil, 0)); !w.Done() {
		t.Error("a node that is alone waits")
	}
}

// A version is confirmed by a peer that holds it or a later one, and by one that has
// collected its deletion; by no other.
func TestConfirms(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleWrite)))
	confirmed := func(v dbadapter.Version) error {
		t.Helper()
		q := must(sb.Sets()[0].VersionQuestion([]byte("k"), v))
		answer, _, err := b.ask(sb, a, q)
		if err != nil {
			t.Fatal(err)
		}
		return sb.Sets()[0].Confirms(a.ID, q, &wire.Reply{Greeting: sa.Sets()[0].introduce(), Answer: answer})
	}
	if _, err := sb.Sets()[0].VersionQuestion([]byte("k"), dbadapter.Version{}); !errors.Is(err, dbadapter.ErrNotFound) {
		t.Errorf("nothing to wait for: %v", err)
	}
	v1 := must(put(sb, "k", "1"))
	if err := confirmed(v1); !errors.Is(err, errNotThere) {
		t.Errorf("missing: %v", err)
	}
	if _, _, err := b.sync(sb, a, syncing.Ask{}); err != nil {
		t.Fatal(err)
	}
	v2 := must(put(sb, "k", "2"))
	if err := confirmed(v1); err != nil {
		t.Errorf("the version before: %v", err)
	}
	if err := confirmed(v2); !errors.Is(err, errNotThere) {
		t.Errorf("older there: %v", err)
	}
	a.clock = a.clock.Add(time.Minute)
	must(put(sa, "k", "3"))
	if err := confirmed(v2); err != nil {
		t.Errorf("newer there: %v", err)
	}
	collect(t, sa, "k")
	if err := confirmed(v2); !errors.Is(err, errNotThere) {
		t.Errorf("gone there: %v", err)
	}
	// Two nodes with one identity can give one version to two contents.
	q := must(sb.Sets()[0].HeldQuestion([]byte("k")))
	answer := &wire.KeyAnswer{Held: q.Held, Digest: q.Digest}
	reply := &wire.Reply{Greeting: sa.Sets()[0].introduce(), Answer: answer}
	if err := sb.Sets()[0].Confirms(a.ID, q, reply); err != nil {
		t.Errorf("the same there: %v", err)
	}
	answer.Digest[0]++
	if err := sb.Sets()[0].Confirms(a.ID, q, reply); !errors.Is(err, errNotThere) {
		t.Errorf("another content of the version there: %v", err)
	}
	sum := sa.Sets()[0].SetQuestion()
	if err := ConfirmsSet(sum, &wire.Reply{Answer: &wire.SetAnswer{Sum: sum.Sum}}); err != nil {
		t.Error(err)
	}
	if err := ConfirmsSet(sum, &wire.Reply{Answer: &wire.SetAnswer{Sum: sb.Sets()[0].SetQuestion().Sum}}); !errors.Is(err, errNotThere) {
		t.Error(err)
	}
}
