package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/refusals"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// crowding has one index for all keys that begin with "crowd", and leaves the others.
type crowding struct{ dbadapter.Hasher }

func (h crowding) Index(key []byte) dbadapter.Index {
	if strings.HasPrefix(string(key), "crowd") {
		return 12345
	}
	return h.Hasher.Index(key)
}

func crowd(i int) string { return fmt.Sprintf("crowd %03d", i) }

// newCrowded are n nodes that may write, whose keys crowd.
func newCrowded(n int) (ms []*machine, sets []*Namespace) {
	for i := range n {
		m := newMachine(i + 1)
		m.Weaken = func(h dbadapter.Hasher) dbadapter.Hasher { return crowding{h} }
		ms = append(ms, m)
		if i == 0 {
			sets = append(sets, m.create("notes", Policy{}))
		} else {
			sets = append(sets, must(m.join(ms[0], invite(sets[0], RoleWrite))))
		}
	}
	return ms, sets
}

// collect takes a record out of a set, as a collection does.
func collect(t *testing.T, ns *Namespace, key string) {
	t.Helper()
	r := must(get(ns, key))
	w := []dbadapter.Write{{Record: must(dbadapter.Hash(ns.Sets()[0].Keys.Hasher, r)), Action: dbadapter.Collect}}
	if o := must(ns.Sets()[0].Store.Apply(t.Context(), w)); o[0].Result != dbadapter.Applied {
		t.Fatalf("%q is not collected: %+v", key, o[0])
	}
}

// The 65th key of an index is not written, alone or by an import, which goes on, and
// neither is a batch that it is in; what is there can be overwritten, and deleted to make
// room.
func TestFullIndexOfThisNode(t *testing.T) {
	_, sets := newCrowded(1)
	ns := sets[0]
	for i := range dbadapter.MaxBucket {
		must(put(ns, crowd(i), "v"))
	}
	if _, err := put(ns, crowd(64), "v"); !errors.Is(err, dbadapter.ErrLimit) || !strings.Contains(err.Error(), `"crowd 064": `) ||
		!strings.Contains(err.Error(), "delete some of them, or choose another key") {
		t.Errorf("the 65th: %v", err)
	}
	_, err := commit(ns.Sets()[0].Write(draft("other", "v"), draft(crowd(64), "v"), draft(crowd(1), "w")))
	if item, ok := errors.AsType[*ItemError](err); !ok || item.Item != 1 || !errors.Is(err, dbadapter.ErrLimit) || !strings.Contains(err.Error(), `"crowd 064": `) {
		t.Errorf("in a batch: %v", err)
	}
	must(put(ns, crowd(0), "w"))
	must(commit(ns.Sets()[0].Delete([]byte(crowd(2)))))
	for key, want := range map[string]string{crowd(0): "w", crowd(1): "v"} {
		if r, err := get(ns, key); err != nil || string(r.Value) != want {
			t.Errorf("%q: %q, %v", key, r.Value, err)
		}
	}
	wantErr(t, second(get(ns, "other")), dbadapter.ErrNotFound, "another key of the batch")
	im, err := importAll(ns, []Item{
		{Key: []byte(crowd(65)), Value: []byte("v")},
		{Key: []byte(crowd(3)), Value: []byte("v")},
		{Key: []byte("another"), Value: []byte("v")},
		{Key: []byte(crowd(66)), Value: []byte("v"), Time: noon.Add(-time.Hour)},
		{Key: []byte(crowd(66)), Value: []byte("w")},
		{Key: []byte(crowd(4)), Value: []byte("w")},
	})
	if want := (ImportResult{Items: 6, Written: 3, Unchanged: 1, Full: 2, Earliest: noon.Add(-time.Hour)}); err != nil || im.Result != want {
		t.Errorf("an import: %+v, not %+v; %v", im.Result, want, err)
	}
	if n := len(records(ns)); n != dbadapter.MaxBucket+2 {
		t.Errorf("%d records are held", n)
	}
}

// Two nodes hold 64 keys of one index each, of which they share 28: neither takes one
// of the others', each says so and lists them, everything else travels, and the two are
// never called equal. Once there is room, and the refusal is a while ago, what was
// declined comes in.
func TestFullIndexBetweenTwo(t *testing.T) {
	ms, sets := newCrowded(2)
	a, b, sa, sb := ms[0], ms[1], sets[0], sets[1]
	for i := range 28 {
		must(put(sa, crowd(i), "both"))
	}
	succeeds(t, third(b.sync(sb, a, syncing.Ask{})))
	for i := 28; i < dbadapter.MaxBucket; i++ {
		must(put(sa, crowd(i), "a"))
		must(put(sb, crowd(100+i), "b"))
	}
	for i := range 10 {
		must(put(sa, fmt.Sprint("of a ", i), ""))
		must(put(sb, fmt.Sprint("of b ", i), ""))
	}
	for round, reason := range []wire.Reason{wire.ReasonFull, 0, 0} {
		mine, theirs, err := b.sync(sb, a, syncing.Ask{})
		if !errors.Is(err, syncing.ErrRejected) || mine.Verified || theirs.Verified {
			t.Fatalf("sync %d: %v; verified: %t and %t", round, err, mine.Verified, theirs.Verified)
		}
		if n := mine.DeclinedHere[reason]; n != 36 || mine.DeclinedHere.Sum() != 36 || theirs.DeclinedThere.Sum() != 36 {
			t.Errorf("sync %d: of a's, %s; a has heard %s", round, mine.DeclinedHere, theirs.DeclinedThere)
		}
		if n := mine.DeclinedThere[wire.ReasonFull]; n != 36 || mine.DeclinedThere.Sum() != 36 || theirs.DeclinedHere.Sum() != 36 {
			t.Errorf("sync %d: of b's, %s; a says %s", round, mine.DeclinedThere, theirs.DeclinedHere)
		}
		if want := 10; round == 0 && (mine.Applied != want || theirs.Applied != want) || round > 0 && mine.Applied+theirs.Applied != 0 {
			t.Errorf("sync %d: %d and %d records were applied", round, mine.Applied, theirs.Applied)
		}
		if round > 0 && mine.WireBytesSent+mine.WireBytesReceived > 32<<10 {
			t.Errorf("sync %d: %d bytes", round, mine.WireBytesSent+mine.WireBytesReceived)
		}
	}
	for _, ns := range sets {
		if n := len(records(ns)); n != dbadapter.MaxBucket+20 {
			t.Errorf("%d records are held", n)
		}
		list := ns.Sets()[0].Rejected()
		if len(list) != 36 || !strings.Contains(list[0].Reason, "share its index") {
			t.Fatalf("%d records are listed as rejected: %+v", len(list), list)
		}
	}
	for i := range 28 { // as much room as there can be: all that both hold has been deleted, and is collected
		collect(t, sa, crowd(i))
		collect(t, sb, crowd(i))
	}
	for range 2 { // the second one finds what the first has said
		a.clock, b.clock = a.clock.Add(refusals.DeclinedLife), b.clock.Add(refusals.DeclinedLife)
		if _, _, err := b.sync(sb, a, syncing.Ask{}); !errors.Is(err, syncing.ErrRejected) {
			t.Fatal(err)
		}
	}
	if na, nb := len(records(sa)), len(records(sb)); na != dbadapter.MaxBucket+20 || nb != na {
		t.Errorf("with room for 28, a holds %d records, and b %d", na, nb)
	}
	for i := range 8 { // 72 keys are left
		collect(t, sa, crowd(28+i))
		if _, err := get(sb, crowd(28+i)); err == nil {
			collect(t, sb, crowd(28+i))
		}
	}
	a.clock, b.clock = a.clock.Add(refusals.DeclinedLife), b.clock.Add(refusals.DeclinedLife)
	if mine, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || !mine.Verified {
		t.Errorf("with room for all: %v\n%+v", err, mine)
	}
	if fmt.Sprint(records(sa)) != fmt.Sprint(records(sb)) || len(sa.Sets()[0].Rejected())+len(sb.Sets()[0].Rejected()) != 0 {
		t.Errorf("the sets differ, or something is still listed: %v, %v", sa.Sets()[0].Rejected(), sb.Sets()[0].Rejected())
	}
}

// What found an index full can be deleted where it is held: its tombstone finds room
// everywhere, so that the sets are equal again and nothing holds a collection back.
func TestFullIndexIsEmptiedByDeletion(t *testing.T) {
	ms, sets := newCrowded(3)
	for i := range dbadapter.MaxBucket {
		must(put(sets[0], crowd(i), "v"))
	}
	for i := range 5 {
		must(put(sets[1], crowd(100+i), "v"))
	}
	circle := func() (failed error) {
		for range 2 {
			failed = nil
			for i, ns := range sets {
				_, _, err := ms[i].sync(ns, ms[(i+1)%3], syncing.Ask{})
				failed = errors.Join(failed, err)
			}
		}
		return failed
	}
	if err := circle(); !errors.Is(err, syncing.ErrRejected) {
		t.Fatal(err)
	}
	for i := range 5 {
		must(commit(sets[1].Sets()[0].Delete([]byte(crowd(100 + i)))))
	}
	for _, m := range ms { // what was declined is offered again: b has room for five of a's now
		m.clock = m.clock.Add(refusals.DeclinedLife)
	}
	wantErr(t, circle(), nil, "once they are deleted")
	for i, ns := range sets {
		if fmt.Sprint(records(ns)) != fmt.Sprint(records(sets[0])) {
			t.Errorf("node %d holds others than node 0", i)
		}
	}
	if r, _, err := ms[2].sync(sets[2], ms[0], syncing.Ask{}); err != nil || r.DeclinedCollectable > 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// A record that has found its index full holds back the watermark of the node that has
// declined it, which would otherwise take it for collected later on.
func TestFullIndexHoldsCollectionBack(t *testing.T) {
	ms, sets := newCrowded(2)
	for i := range dbadapter.MaxBucket {
		must(put(sets[0], crowd(i), "v"))
	}
	must(put(sets[1], crowd(64), "v"))
	for range 2 { // one here and one there, also where only heads travel
		mine, theirs, err := ms[1].sync(sets[1], ms[0], syncing.Ask{})
		if !errors.Is(err, syncing.ErrRejected) || theirs.DeclinedCollectable != 2 || mine.DeclinedCollectable != 2 {
			t.Errorf("%v; %d and %d of what was declined hold a collection back", err, mine.DeclinedCollectable, theirs.DeclinedCollectable)
		}
	}
}

// stating has one index for all statements of the list of members.
type stating struct{ dbadapter.Hasher }

func (h stating) Index(key []byte) dbadapter.Index {
	if len(key) == 33 && key[0] == membership.KindStatement {
		return 12345
	}
	return h.Hasher.Index(key)
}

// A statement that finds its index full counts nowhere on this node, and its author is
// told; the list goes on as it was, and so does a sync with a node whose list differs.
func TestFullIndexOfStatements(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	a.Weaken = func(h dbadapter.Hasher) dbadapter.Hasher { return stating{h} }
	b.Weaken = a.Weaken
	sa := a.create("notes", Policy{})
	sb := must(b.join(a, invite(sa, RoleAdmin)))
	fill := func(ns *Namespace, from int) (err error) {
		for i := from; err == nil; i++ {
			before := list(ns)
			if err = setRole(ns, idOf(i), RoleRead); err != nil && list(ns) != before {
				t.Error("a statement that was not stored counts")
			}
			if i > from+dbadapter.MaxBucket {
				t.Fatal("no statement finds its index full")
			}
		}
		return err
	}
	if err := errors.Join(fill(sa, 100), fill(sb, 200)); !errors.Is(err, refusals.ErrFull) {
		t.Fatal(err)
	}
	must(put(sb, "k", "v"))
	_, theirs, err := b.sync(sb, a, syncing.Ask{})
	if _, there := get(sa, "k"); there != nil {
		t.Errorf("a record beside them: %v; %v, %s", there, err, theirs.DeclinedHere)
	}
}
