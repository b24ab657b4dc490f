package roster

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// half is one part of a cluster: what its members hold.
type half struct {
	*Set
	r *rand.Rand
}

// hear takes what another part offers, in some order.
func (h *half) hear(values [][]byte) {
	for _, i := range h.r.Perm(len(values)) {
		_, _ = h.Add(values[i]) // what is refused comes again with the next sync
	}
	h.Shed()
	h.Shed() // finds nothing more to do
}

func (h *half) offers() (values [][]byte) {
	for _, value := range h.Values() {
		values = append(values, value)
	}
	return values
}

// flood are n statements by an admin, on heads that it chooses, and mostly forks.
func (r *random) flood(liar, n int) (values [][]byte) {
	before := len(r.all.entries)
	for tried := 0; len(values) < n && tried < 20*n; tried++ {
		s := &Statement{
			Kind: Grant, Author: ids[liar], Subject: ids[r.IntN(r.nodes)], Role: RoleRead,
			At: dbadapter.Timestamp(1000 + tried), Heads: []Hash{r.all.entries[r.IntN(before)].hash},
		}
		if made := len(r.all.entries) - before; made > 0 && r.IntN(2) == 0 {
			s.Heads = []Hash{r.all.entries[before+r.IntN(made)].hash}
		}
		if r.put(liar, s) {
			values = append(values, r.values[len(r.values)-1])
		}
	}
	return values
}

// An admin signs more than a set takes of it, and gives each of two parts other ones.
// Admins in both parts go on, on top of what they have. Once it is removed in one of
// the parts, both have one list, however much of the flood each of them holds.
func TestFloodOfTwoHalves(t *testing.T) {
	var floods, apart, dropped int
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.grow(15)
		liar := 1 + r.IntN(r.nodes-1)
		base := slices.Clone(r.values)
		if r.all.List().Role(ids[liar]) != RoleAdmin || r.all.List().Role(ids[0]) != RoleAdmin || !r.all.List().Above(ids[0], ids[liar]) {
			return
		}
		flood := r.flood(liar, 120)
		if len(flood) < 120 {
			return
		}
		floods++
		low := bounds{statements: 400, bytes: MaxBytes, reserve: 40, perAuthor: 40, void: 5}
		var halves [2]*half
		for n := range halves {
			halves[n] = &half{quickSet(), r.Rand}
			halves[n].bounds = low
			halves[n].hear(base)
			halves[n].hear(base)
		}
		// One gets a part that rests on the rest; the other one a part of another choice.
		for range 4 {
			halves[0].hear(flood[:80])
			halves[1].hear(flood)
		}
		if halves[0].Digest() != halves[1].Digest() {
			apart++
		}
		for n, h := range halves {
			for range 4 + r.IntN(4) { // honest admins, each in one part, on all that they hold
				author, subject := r.IntN(r.nodes), r.IntN(r.nodes)
				if author == liar || subject == liar || author%2 != n || author == 0 && subject == 0 {
					continue
				}
				kind := []Kind{Grant, Grant, Remove}[r.IntN(3)]
				role := map[Kind]Role{Grant: RoleWrite}[kind]
				at := dbadapter.Timestamp(3000 + 10*n + r.IntN(10))
				if value, err := Make(h.Set, Statement{Kind: kind, Subject: ids[subject], Role: role}, ids[author], at, quickSign(author)); err == nil {
					must(h.Add(value))
				}
			}
		}
		removal, err := Make(halves[0].Set, Statement{Kind: Remove, Subject: ids[liar]}, ids[0], 4000, quickSign(0))
		if err != nil {
			return // one of the two has lost its role meanwhile
		}
		must(halves[0].Add(removal))
		rounds := 0
		for ; rounds < 40 && halves[0].Digest() != halves[1].Digest(); rounds++ {
			for n, h := range halves {
				h.hear(halves[1-n].offers())
			}
		}
		for n, h := range halves {
			h.hear(h.offers())
			if h.List().Role(ids[liar]) != 0 {
				t.Errorf("half %d has not heard of the removal: it waits among %d", n, h.Held())
			}
			if len(h.entries) > low.most() {
				t.Errorf("half %d has %d statements", n, len(h.entries))
			}
			dropped += len(h.Dropped())
			again := quickSet()
			again.bounds = low
			if left := again.Load(slices.Values(h.offers())); left > 0 || again.List().text() != h.List().text() {
				t.Errorf("half %d: read again it says something else; %d are left out", n, left)
			}
		}
		// And what is void, as far as it is kept, is the same: the two have nothing to tell. (What waits
		// keeps more.)
		for range 2 * 120 / low.void {
			for n, h := range halves {
				h.hear(halves[1-n].offers())
			}
		}
		if a, b := halves[0].offers(), halves[1].offers(); halves[0].claimed+halves[1].claimed == 0 && !slices.EqualFunc(a, b, bytes.Equal) {
			t.Errorf("the halves hold %d and %d statements, and not the same", len(a), len(b))
		}
		if a, b := halves[0].List().text(), halves[1].List().text(); a != b {
			t.Errorf("after %d rounds the halves differ:\n%s\n%s", rounds, a, b)
		}
	})
	t.Logf("%d floods, %d of them with lists that differed, %d statements dropped", floods, apart, dropped)
	if floods == 0 || apart == 0 || dropped == 0 {
		t.Error("the histories do not reach what they are for")
	}
}
