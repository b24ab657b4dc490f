package node

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/push"
)

// A member that only the writer reaches, and whose streams break, hears the digest of what
// the writer pushes, though another member has told the writer the same digest first.
func TestDigestsOfAMemberThatOneNodeReaches(t *testing.T) {
	ps := newPushers(3, Policy{})
	id := func(i int) ID { return ps.machines[i].ID }
	lines := []*push.Lines{
		{Taking: map[ID][]ID{id(1): {id(0)}}, Broken: []ID{id(2)}},
		{Taking: map[ID][]ID{id(0): {id(1)}}},
	}
	audience, _ := ps.spaces[0].Audience()
	for round := range 20 { // which of the two tells the digest first is random
		must(put(ps.spaces[0], "k", ps.elapsed.String()))
		told := false
		for range 4000 {
			ps.wait(5 * time.Millisecond)
			for i, l := range lines {
				set := ps.spaces[i].Sets()[0]
				for m, _ := set.Pushes().Next(); m != nil; m, _ = set.Pushes().Next() {
					to, whole := set.Pushes().Direct(m, audience, l)
					told = told || i == 0 && !whole && kinds([][]byte{m.Bytes()}) == "digest"
					for _, other := range to {
						there := ps.spaces[ps.number(other)].Sets()[0]
						a, verdict, err := there.Arrived(id(i), m.Direct(), true)
						if verdict != push.Taken || err != nil {
							t.Fatal(verdict, err)
						}
						succeeds(t, there.CommitArrivals(t.Context(), []*Arrival{a}))
					}
				}
			}
		}
		if !told {
			t.Fatalf("write %d: no digest went over the mesh in 20 s", round)
		}
	}
}
