package roster

import (
	"crypto/ed25519"
	"fmt"
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

// apart is a set in which n grants of one member have not seen one another; the
// later half of them rests on a line of grants and removals of it.
func apart(tb testing.TB, n int, removals bool) *Set {
	tb.Helper()
	s := New(Config{Namespace: testNamespace, Creator: ids[0], Verify: func(ed25519.PublicKey, []byte, []byte) bool { return true }})
	put := func(st *Statement) []Hash {
		st.Author, st.At = ids[0], dbadapter.Timestamp(s.Len()+1)
		value := must(st.Sign(testNamespace, func([]byte) ([]byte, error) { return make([]byte, 64), nil }))
		if status, err := s.Add(value); err != nil || status != Added {
			tb.Fatal(status, err)
		}
		return []Hash{HashOf(value)}
	}
	heads := put(&Statement{Kind: Found, Policy: testPolicy})
	for removals && s.Len() < n/2 {
		heads = put(&Statement{Kind: Grant, Subject: ids[1], Role: RoleWrite, Heads: heads})
		heads = put(&Statement{Kind: Remove, Subject: ids[1], Heads: heads})
	}
	for s.Len() < n {
		put(&Statement{Kind: Grant, Subject: ids[1], Role: RoleWrite, Heads: heads})
	}
	return s
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

// What it costs to find which of n grants apart have ended, and when: by sets about
// n log n, by pairs n².
func BenchmarkGrantsApart(b *testing.B) {
	for _, removals := range []bool{false, true} {
		for _, n := range []int{1000, 2000, 4000, 8000} {
			s := apart(b, n, removals)
			b.Run(fmt.Sprintf("removals=%v/n=%d/sets", removals, n), func(b *testing.B) {
				for b.Loop() {
					v := s.all()
					v.plain(ids[1])
					v.spans(ids[1])
				}
			})
			b.Run(fmt.Sprintf("removals=%v/n=%d/pairs", removals, n), func(b *testing.B) {
				for b.Loop() {
					v := s.all()
					v.plainByPairs(ids[1])
					v.lastInstantsByPairs(s.subjects[ids[1]])
				}
			})
		}
	}
}
