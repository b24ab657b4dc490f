package roster

import (
	"math"
	"testing"
)

// A node that believes itself a member by what it has seen, and is shown why it is
// not, or only for a time, computes that too, whatever the history. Each statement that it is shown
// follows those that it names.
func TestExplain(t *testing.T) {
	shown, told := 0, 0
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.grow(30)
		l := r.all.List()
		for n := range r.nodes {
			now, member := l.Member(ids[n])
			if _, former := l.Former(ids[n]); !former && now.Expires == 0 {
				continue
			}
			proof := r.all.Explain(ids[n], math.MaxInt)
			for range 6 {
				s := quickSet()
				for _, value := range r.values[:r.IntN(len(r.values)+1)] {
					_, _ = s.Add(value)
				}
				if had, is := s.List().Member(ids[n]); !is || had.Expires != 0 {
					continue
				}
				told++
				for i, value := range proof {
					if status, err := s.Add(value); err != nil || status == Waiting {
						t.Errorf("node %d, statement %d of %d: %v, %v", n, i, len(proof), status, err)
					}
				}
				shown += len(proof)
				if m, is := s.List().Member(ids[n]); is && (!member || m.Expires == 0) {
					t.Errorf("node %d: shown %d statements of %d, it takes itself for a member: %+v", n, len(proof), len(r.values), m)
				}
				if few := r.all.Explain(ids[n], 2); len(few) == 0 || len(few) > 2 {
					t.Errorf("%d statements, at most 2 were asked for", len(few))
				}
			}
		}
	})
	if told < *histories/4 {
		t.Errorf("%d nodes of %d histories were told", told, *histories)
	}
	t.Logf("%d nodes were told, by %d statements", told, shown)
}
