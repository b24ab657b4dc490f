package roster

import (
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Which grants end, asked of each pair: what ends.go computes by sets.

func (v *view) plainByPairs(id ID) (grants []int) {
	h := v.set.subjects[id]
	if h == nil {
		return nil
	}
	for _, g := range h.plain {
		ends := func(i int) bool { return v.endsByPair(i, g) }
		if v.has(g) && v.stands(g) && !slices.ContainsFunc(h.enders, ends) && !slices.ContainsFunc(h.admin, ends) {
			grants = append(grants, g)
		}
	}
	return grants
}

func (v *view) lastInstantsByPairs(h *history) map[int]dbadapter.Timestamp {
	last := map[int]dbadapter.Timestamp{}
	for _, g := range h.plain {
		e := v.set.entries[g]
		if e.Role != RoleWrite || !v.stands(g) {
			continue
		}
		last[g] = e.lastInstant()
		for _, i := range slices.Concat(h.enders, h.admin) {
			if v.endsByPair(i, g) {
				last[g] = min(last[g], v.set.entries[i].At)
			}
		}
	}
	return last
}

// By sets and by pairs the same grants end, at the same times, in parts of random
// histories and in whole ones.
func TestEndsByPairs(t *testing.T) {
	var ended, kept, bounded int
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.grow(40)
		views := []*view{r.all.all()}
		for range 4 {
			views = append(views, r.all.view(r.all.entries[r.IntN(len(r.all.entries))].past))
		}
		for n, v := range views {
			for id, h := range r.all.subjects {
				got, want := v.plain(id), v.plainByPairs(id)
				if !slices.Equal(got, want) {
					t.Errorf("grants in force: %v, by pairs %v", got, want)
				}
				kept += len(got)
				ended += len(h.plain) - len(got)
				if n > 0 {
					continue
				}
				last, pairs := v.lastInstants(h), v.lastInstantsByPairs(h)
				for g, to := range pairs {
					if last[g] != to || len(last) != len(pairs) {
						t.Errorf("grant %d ends at %d, by pairs at %d", g, last[g], to)
					}
					bounded++
				}
			}
		}
	})
	if ended == 0 || kept == 0 || bounded == 0 {
		t.Errorf("%d grants ended, %d did not, %d times", ended, kept, bounded)
	}
}
