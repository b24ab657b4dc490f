package push

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// list is a list of members.
type list []ID

func (l *list) Has(id ID, _ roster.Role) bool { return slices.Contains(*l, id) }

// newPusher is what the first one of some members pushes.
func newPusher(members *list) *Pusher {
	c := Config{On: true}
	return New(Source{
		Config: &c, Self: (*members)[0], Incarnation: 1, Interval: func() time.Duration { return time.Minute },
		Now:     func() time.Duration { return time.Hour },
		Jitter:  func(d time.Duration) time.Duration { return d },
		Digests: func() wire.Sets { return wire.Sets{} },
		Paused:  func() bool { return false },
		Members: func() Members { return members },
		Others:  func() int { return len(*members) - 1 },
		Admits:  func(id ID) bool { return members.Has(id, roster.RoleRead) },
		With:    func(ID) bool { return true },
		Failed:  func(err error) bool { return err != nil },
		Wake:    func() {},
	})
}

func membersOf(n int) (all *list, audience map[ID]bool) {
	all, audience = new(list), map[ID]bool{}
	for i := range n {
		id := ID(rune('a' + i))
		*all, audience[id] = append(*all, id), true
	}
	return all, audience
}

// A push goes directly to all that have lines, and over the mesh, too, where that is not
// all that there are: one without a line counts as away only where the mesh does not reach
// it, and no other has told of a line to it.
func TestDirectReachesAllThatThereAre(t *testing.T) {
	members, audience := membersOf(4)
	p := newPusher(members)
	id := func(i int) ID { return (*members)[i] }
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
		{"one has not said what it takes", Lines{Taking: map[ID][]ID{id(1): nil, id(2): nil}, Opening: []ID{id(3)}}, 2, false},
		{"one that was a member has lines", Lines{Taking: map[ID][]ID{id(1): {"former"}, id(2): nil, id(3): nil, "former": nil}, Opening: []ID{"other"}}, 3, true},
		{"no lines", Lines{}, 0, false},
		{"the streams of one break", broken, 2, true},
		{"the streams of one break, to which another has a line", Lines{Taking: map[ID][]ID{id(1): {id(3)}, id(2): nil}, Broken: []ID{id(3)}}, 2, true},
	} {
		if to, whole := p.Direct(records, audience, &c.lines); len(to) != c.to || whole != c.whole {
			t.Errorf("%s: to %d, whole %v; want %d, %v", c.name, len(to), whole, c.to, c.whole)
		}
	}
	if _, whole := p.Direct(digest, audience, &broken); whole {
		t.Error("a member whose streams break hears no digest")
	}
}

// In a namespace of more members than MaxDirect, pushes go over the mesh.
func TestLargeNamespacesPushOverTheMesh(t *testing.T) {
	for n, want := range map[int]bool{wire.MaxDirect: true, wire.MaxDirect + 1: false} {
		members, audience := membersOf(n)
		l := &Lines{Taking: map[ID][]ID{}}
		for _, id := range (*members)[1:] {
			l.Taking[id] = nil
		}
		if to, whole := newPusher(members).Direct(new(Push), audience, l); whole != want || want && len(to) != n-1 {
			t.Errorf("%d members: directly to %d, %v", n, len(to), whole)
		}
	}
}

// Under a bound of what is sent, all copies of what is pushed stay within it.
func TestPushesUnderABoundOfWhatIsSent(t *testing.T) {
	for members, copies := range map[int]int{2: 1, 10: 9, wire.MaxDirect + 1: MeshCopies} {
		all, _ := membersOf(members)
		p := newPusher(all)
		p.set.Config.Send = 100_000
		if rate := p.rate(); rate != 100_000/copies {
			t.Errorf("%d members: %d bytes a second, of which %d copies are sent", members, rate, copies)
		}
		p.set.Config.Send = 0
		if rate := p.rate(); rate != Rate {
			t.Errorf("without a bound: %d", rate)
		}
	}
}

// What was heard of a former member is forgotten.
func TestFormerMembersAreForgotten(t *testing.T) {
	members, _ := membersOf(3)
	p := newPusher(members)
	for _, id := range []ID{"b", "c"} {
		p.Heard(id, id, &wire.PushMessage{Kind: wire.PushMore, Incarnation: 1, Number: 1})
	}
	without := list{"a", "b"}
	p.set.Members = func() Members { return &without }
	p.NextSync()
	h := &p.hastening
	if h.origins["c"] != nil || h.wants["c"] != nil || h.origins["b"] == nil || h.wants["b"] == nil {
		t.Errorf("%d members are followed, %d syncs wanted", len(h.origins), len(h.wants))
	}
}

// hear, and a twin that remembers all numbers.
func TestHearEqualsTwin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2_000 {
		var o origin
		came, first, last := map[uint64]bool{}, uint64(0), uint64(0)
		next := 1 + r.Uint64N(100)
		for range 200 {
			m := &wire.PushMessage{Incarnation: 1}
			if next += r.Uint64N(3); r.IntN(20) == 0 {
				next += r.Uint64N(70)
			}
			m.Number = next - min(next-1, r.Uint64N(10)*r.Uint64N(2))
			if r.IntN(6) == 0 {
				m.Kind, m.Number = wire.PushDigest, next
			}
			if first == 0 {
				first, last = m.Number, m.Number
				for n := uint64(0); n <= first; n++ {
					came[n] = true
				}
			}
			last = max(last, m.Number)
			if m.Kind != wire.PushDigest {
				came[m.Number] = true
			}
			want := false
			for n := last; n > last-min(last, 64); n-- {
				want = want || !came[n]
			}
			if got, _ := o.hear(m); got != want {
				t.Fatalf("after %d of at most %d: a gap is %v, want %v; %+v", m.Number, last, got, want, o)
			}
		}
	}
}
