package node

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// A push goes directly to all that have lines, and over the mesh, too, where that is not
// all that there are: one without a line counts as away only where the mesh does not reach
// it, and no other has told of a line to it.
func TestDirectReachesAllThatThereAre(t *testing.T) {
	ps := newPushers(4, Policy{})
	id := func(i int) ID { return ps.machines[i].ID }
	records, digest := new(Push), &Push{message: wire.PushMessage{Kind: wire.PushDigest}}
	broken := Lines{Taking: map[ID][]ID{id(1): nil, id(2): nil}, Broken: []ID{id(3)}}
	for _, c := range []struct {
		name  string
		lines Lines
		to    int
		whole bool
	}{
		{"all take", Lines{Taking: map[ID][]ID{id(1): {id(0), id(2)}, id(2): nil, id(3): nil}}, 3, true},
		{"one is away", Lines{Taking: map[ID][]ID{id(1): {id(0), id(2)}, id(2): {id(0)}}}, 2, true},
		{"one has a line to another only", Lines{Taking: map[ID][]ID{id(1): {id(0), id(3)}, id(2): nil}}, 2, false},
		{"one has not said what it takes", Lines{Taking: map[ID][]ID{id(1): nil, id(2): nil}, Coming: []ID{id(3)}}, 2, false},
		{"one that was a member has lines", Lines{Taking: map[ID][]ID{id(1): {"former"}, id(2): nil, id(3): nil, "former": nil}, Coming: []ID{"other"}}, 3, true},
		{"no lines", Lines{}, 0, false},
		{"the streams of one break", broken, 2, true},
		{"the streams of one break, to which another has a line", Lines{Taking: map[ID][]ID{id(1): {id(3)}, id(2): nil}, Broken: []ID{id(3)}}, 2, true},
	} {
		audience, _ := ps.spaces[0].Audience()
		if to, whole := ps.spaces[0].Sets()[0].Direct(records, audience, &c.lines); len(to) != c.to || whole != c.whole {
			t.Errorf("%s: to %d, whole %v; want %d, %v", c.name, len(to), whole, c.to, c.whole)
		}
	}
	audience, _ := ps.spaces[0].Audience()
	if _, whole := ps.spaces[0].Sets()[0].Direct(digest, audience, &broken); whole {
		t.Error("a member whose streams break hears no digest")
	}
}

// In a namespace of more members than MaxDirect, pushes go over the mesh.
func TestLargeNamespacesPushOverTheMesh(t *testing.T) {
	for n, want := range map[int]bool{wire.MaxDirect: true, wire.MaxDirect + 1: false} {
		ps := newPushers(n, Policy{})
		l := &Lines{Taking: map[ID][]ID{}}
		for _, m := range ps.machines[1:] {
			l.Taking[m.ID] = nil
		}
		audience, _ := ps.spaces[0].Audience()
		if to, whole := ps.spaces[0].Sets()[0].Direct(new(Push), audience, l); whole != want || want && len(to) != n-1 {
			t.Errorf("%d members: directly to %d, %v", n, len(to), whole)
		}
	}
}

// A direct push is its sender's, and counts as one that came over the mesh: of pushes that
// go both ways the numbers are the same.
func TestDirectPushes(t *testing.T) {
	ps := newPushers(2, Policy{})
	push := func() *Push {
		must(put(ps.spaces[1], "k", "v"))
		ps.wait(ps.machines[1].Push.Batch)
		p, _ := ps.spaces[1].Sets()[0].NextPush()
		return p
	}
	hear := func(by int, data []byte) (PushVerdict, error) {
		a, verdict, err := ps.spaces[0].Sets()[0].ArrivedDirectly(ps.machines[by].ID, data)
		if verdict == PushTaken {
			err = ps.spaces[0].Sets()[0].CommitArrivals(t.Context(), []*Arrival{a})
		}
		return verdict, err
	}
	if verdict, err := hear(1, push().Direct()); verdict != PushTaken || err != nil {
		t.Fatalf("%d, %v", verdict, err)
	}
	ps.must(t, 0, 1, push().Bytes())
	if with := ps.syncs(0); with != -1 {
		t.Errorf("a sync with %d though nothing is missing", with)
	}
	if verdict, err := hear(1, push().More().Direct()); verdict != PushTaken || err != nil {
		t.Fatalf("%d, %v", verdict, err)
	}
	ps.wait(ps.machines[0].Push.Pause)
	if with := ps.syncs(0); with != 1 {
		t.Errorf("after a push that says that there is more: a sync with %d", with)
	}
	if verdict, err := hear(1, push().Bytes()); verdict != PushRefused || !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a direct push that names an origin: %d, %v", verdict, err)
	}
	if _, verdict, err := ps.spaces[0].Sets()[0].Arrived(ps.machines[1].ID, push().Direct()); verdict != PushRefused || !errors.Is(err, wire.ErrFrame) {
		t.Errorf("a push of no origin over the mesh: %d, %v", verdict, err)
	}
	if _, verdict, err := ps.spaces[0].Sets()[0].ArrivedDirectly("stranger", push().Direct()); verdict != PushRefused || !errors.Is(err, ErrDenied) {
		t.Errorf("a stranger's: %d, %v", verdict, err)
	}
	if r := must(get(ps.spaces[0], "k")); r.Version == (dbadapter.Version{}) {
		t.Error("nothing is held")
	}
}

// Under a bound of what is sent, all copies of what is pushed stay within it.
func TestPushesUnderABoundOfWhatIsSent(t *testing.T) {
	for members, copies := range map[int]int{2: 1, 10: 9, wire.MaxDirect + 1: MeshCopies} {
		ps := newPushers(members, Policy{})
		ps.machines[0].Push.Send = 100_000
		if rate := ps.spaces[0].Sets()[0].rate(); rate != 100_000/copies {
			t.Errorf("%d members: %d bytes a second, of which %d copies are sent", members, rate, copies)
		}
		ps.machines[0].Push.Send = 0
		if rate := ps.spaces[0].Sets()[0].rate(); rate != PushRate {
			t.Errorf("without a bound: %d", rate)
		}
	}
}
