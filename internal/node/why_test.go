package node_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/ask"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/peer/status"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// asks asks another machine, as a driver would; settled says whether the answer would have come at once.
func asks(m node.Machine, ns *node.Namespace, other node.Machine, q wire.Question) (reply *wire.Reply, settled bool, err error) {
	question, err := ns.Sets()[0].Ask(other.ID, time.Second, q)
	if err != nil {
		return nil, false, err
	}
	asked, err := other.Asked(m.ID, question)
	if err == nil {
		defer asked.Done()
		reply, settled, err = ask.Answer(asked)
	}
	return reply, settled, err
}

// why asks another machine and explains.
func why(m node.Machine, ns *node.Namespace, other node.Machine, key string) status.Why {
	set := ns.Sets()[0]
	q := must(ask.HeldQuestion(set, []byte(key)))
	reply, _, err := asks(m, ns, other, q)
	if err != nil {
		return ask.Unanswered(set, other.ID, q, err)
	}
	return must(ask.Explain(set, other.ID, q, reply))
}

// A record that a peer has declined for its clock, which was behind, and would take by now
// travels only when the node that holds it offers it again: both sides say so, and when.
func TestWhyOfWhatWasDeclinedBefore(t *testing.T) {
	a, b := node.NewMachine(1), node.NewMachine(2)
	sa := a.Create("notes", node.Policy{})
	sb := must(b.Join(a, node.Invite(sa, node.RoleWrite)))
	node.Succeeds(t, b.SyncWith(sb, a, syncing.Ask{}))
	b.Pass(-time.Hour)
	a.Pass(time.Second)
	must(node.Put(sa, "k", "1"))
	if err := a.SyncWith(sa, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
		t.Fatalf("a record of the future was taken: %v", err)
	}
	b.Pass(time.Hour + time.Second)
	both := func() (kinds [2]string, texts [2]string) {
		for i, w := range []status.Why{why(a, sa, b, "k"), why(b, sb, a, "k")} {
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
	if err := a.SyncWith(sa, b, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
		t.Fatalf("a record that rests has travelled: %v", err)
	}
	for _, m := range []node.Machine{a, b} {
		m.Pass(refusals.DeclinedLife)
	}
	if kinds, texts = both(); kinds != [2]string{string(status.CauseNotSynced), string(status.CauseNotSynced)} {
		t.Errorf("%q: %q", kinds, texts)
	}
	node.Succeeds(t, a.SyncWith(sa, b, syncing.Ask{}))
}

// A wait counts those that hold it, each once, and never loses one that did.
func TestAwaiting(t *testing.T) {
	a := node.NewMachine(1)
	sa := a.Create("notes", node.Policy{})
	var ids []node.ID
	for seed := 2; seed < 6; seed++ {
		m := node.NewMachine(seed)
		must(m.Join(a, node.Invite(sa, node.RoleRead)))
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	if got := sa.Others(); !slices.Equal(got, ids) {
		t.Fatalf("%q, not %q", got, ids)
	}
	node.Succeeds(t, sa.Lapse(t.Context(), ids[3]))
	for name, c := range map[string]struct {
		named []node.ID
		count int
	}{
		"more than there are": {nil, 4}, "fewer than none": {nil, -1}, "itself": {[]node.ID{a.ID}, 0}, "a stranger": {[]node.ID{node.IDOfSeed(9)}, 0},
		"more than named": {ids[:2], 3}, "one twice": {[]node.ID{ids[0], ids[0]}, 2},
	} {
		if _, err := ask.NewAwaiting(sa, c.named, c.count); !errors.Is(err, node.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := must(ask.NewAwaiting(sa, nil, 0))
	if all.Need() != 3 || must(ask.NewAwaiting(sa, ids, 0)).Need() != 4 {
		t.Errorf("%d members are waited for", all.Need())
	}
	failed := errors.New("away")
	all.Heard(ids[0], nil)
	all.Heard(ids[0], nil)
	all.Heard(ids[0], failed)
	all.Heard(ids[1], failed)
	id := func(i int) status.ID { return status.ID(ids[i]) }
	want := status.Waited{Held: []status.ID{id(0)}, Missing: []status.Unconfirmed{{Peer: id(1), Why: "away"}, {Peer: id(2), Why: "no answer yet"}}}
	if found, err := all.End(); all.Done() || !errors.Is(err, ask.ErrUnconfirmed) || !reflect.DeepEqual(found, want) {
		t.Errorf("%+v, %v", found, err)
	}
	all.Heard(ids[1], nil)
	all.Heard(ids[2], nil)
	if found, err := all.End(); !all.Done() || err != nil || len(found.Missing) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	alone := node.NewMachine(8).Create("alone", node.Policy{})
	if w := must(ask.NewAwaiting(alone, nil, 0)); !w.Done() {
		t.Error("a node that is alone waits")
	}
}

// A version is confirmed by a peer that holds it or a later one, and by one that has
// collected its deletion; by no other.
func TestConfirms(t *testing.T) {
	a, b := node.NewMachine(1), node.NewMachine(2)
	sa := a.Create("notes", node.Policy{})
	sb := must(b.Join(a, node.Invite(sa, node.RoleWrite)))
	confirmed := func(v dbadapter.Version) error {
		t.Helper()
		q := must(ask.VersionQuestion(sb.Sets()[0], []byte("k"), v))
		reply, _, err := asks(b, sb, a, q)
		if err != nil {
			t.Fatal(err)
		}
		return ask.Confirms(sb.Sets()[0], a.ID, q, reply)
	}
	if _, err := ask.VersionQuestion(sb.Sets()[0], []byte("k"), dbadapter.Version{}); !errors.Is(err, dbadapter.ErrNotFound) {
		t.Errorf("nothing to wait for: %v", err)
	}
	v1 := must(node.Put(sb, "k", "1"))
	node.WantErr(t, confirmed(v1), ask.ErrNotThere, "missing")
	node.Succeeds(t, b.SyncWith(sb, a, syncing.Ask{}))
	v2 := must(node.Put(sb, "k", "2"))
	node.WantErr(t, confirmed(v1), nil, "the version before")
	node.WantErr(t, confirmed(v2), ask.ErrNotThere, "older there")
	a.Pass(time.Minute)
	must(node.Put(sa, "k", "3"))
	node.WantErr(t, confirmed(v2), nil, "newer there")
	node.Collect(t, sa, "k")
	node.WantErr(t, confirmed(v2), ask.ErrNotThere, "gone there")
	// Two nodes with one identity can give one version to two contents.
	q := must(ask.HeldQuestion(sb.Sets()[0], []byte("k")))
	answer := &wire.KeyAnswer{Held: q.Held, Digest: q.Digest}
	reply, _, err := asks(b, sb, a, q)
	if err != nil {
		t.Fatal(err)
	}
	reply.Answer = answer
	node.WantErr(t, ask.Confirms(sb.Sets()[0], a.ID, q, reply), nil, "the same there")
	answer.Digest[0]++
	node.WantErr(t, ask.Confirms(sb.Sets()[0], a.ID, q, reply), ask.ErrNotThere, "another content of the version there")
	sum := ask.SetQuestion(sa.Sets()[0])
	node.Succeeds(t, ask.ConfirmsSet(sum, &wire.Reply{Subject: wire.SubjectSet, Answer: &wire.SetAnswer{Sum: sum.Sum}}))
	if err := ask.ConfirmsSet(sum, &wire.Reply{Subject: wire.SubjectSet, Answer: &wire.SetAnswer{Sum: ask.SetQuestion(sb.Sets()[0]).Sum}}); !errors.Is(err, ask.ErrNotThere) {
		t.Error(err)
	}
}

// What a peer holds under a key is told as it is, and the wait for a version is over once
// it, or a later one, is there.
func TestAnswersAboutAKey(t *testing.T) {
	a, b := node.NewMachine(1), node.NewMachine(2)
	sa := a.Create("notes", node.Policy{})
	sb := must(b.Join(a, node.Invite(sa, node.RoleWrite)))
	told := func() (*wire.KeyAnswer, bool) {
		t.Helper()
		reply, settled, err := asks(b, sb, a, must(ask.HeldQuestion(sb.Sets()[0], []byte("k"))))
		if err != nil {
			t.Fatal(err)
		}
		return reply.Answer.(*wire.KeyAnswer), settled
	}
	if got, settled := told(); got.Held.Key != nil || settled || got.Declines != 0 {
		t.Errorf("neither holds it: %+v, settled %t", got, settled)
	}
	must(node.Put(sb, "k", "1"))
	if got, settled := told(); got.Held.Key != nil || settled || got.Declines != 0 {
		t.Errorf("missing there: %+v, settled %t", got, settled)
	}
	node.Succeeds(t, b.SyncWith(sb, a, syncing.Ask{}))
	got, settled := told()
	held := must(dbadapter.Hash(sa.Sets()[0].Keys.Hasher, must(node.Get(sa, "k"))))
	if got.Digest != held.Digest || got.Held.Version != held.Version || len(got.Held.Value) > 0 || !settled {
		t.Errorf("the same: %+v, settled %t", got, settled)
	}
	must(node.Put(sb, "k", "2"))
	if got, settled := told(); got.Digest != held.Digest || settled {
		t.Errorf("older there: %+v, settled %t", got, settled)
	}
	a.Pass(time.Second)
	later := must(node.Put(sa, "k", "3"))
	if got, settled := told(); got.Held.Version != later || !settled {
		t.Errorf("newer there: %+v, settled %t", got, settled)
	}
	asked := must(a.Asked(b.ID, must(sb.Ask(a.ID, &wire.AskRecord{Key: []byte("k")}))))
	defer asked.Done()
	if _, _, err := ask.Answer(asked); !errors.Is(err, reconcile.ErrProtocol) {
		t.Errorf("a routed question among others: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
