package roster

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// What a removed admin and the members that it had made say on old heads changes
// neither list nor digest, though it knows all statements before its removal.
func TestRemovedAdminForges(t *testing.T) {
	var forged, tried int
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.may = func(s *Statement) bool { return s.Author != ids[0] || s.Subject != ids[0] } // the founder stays
		r.grow(5 + r.IntN(30))
		liar := 1 + r.IntN(r.nodes-1)
		if r.all.List().Role(ids[liar]) == 0 {
			return
		}
		before := len(r.all.entries)
		value, err := Make(r.all, Statement{Kind: Remove, Subject: ids[liar]}, ids[0], 70, quickSign(0))
		if err != nil {
			t.Fatal(err)
		}
		must(r.all.Add(value))
		want := r.all.List().text()
		tried++
		r.may = func(s *Statement) bool { // on what was before the removal, or on its own
			for _, h := range s.Heads {
				if i := r.all.byHash[h]; i == before || i < before && s.Kind == Found {
					return false
				}
			}
			return s.Author == ids[liar] && s.Kind != Found
		}
		for range 15 {
			r.step(liar)
		}
		if got := r.all.List().text(); got != want {
			t.Errorf("a removed admin changed the list:\n%s\n%s", want, got)
		}
		forged += len(r.all.entries) - before - 1
	})
	t.Logf("%d removals, %d forged statements were taken", tried, forged)
	if forged == 0 {
		t.Error("nothing was forged")
	}
}

// An admin that was made by the founder alone stays an admin, whatever all others
// say on whichever heads, as long as neither of the two takes it back.
func TestAdminsBelowTakeNothing(t *testing.T) {
	var attacks int
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		if !r.put(0, &Statement{Kind: Grant, Author: ids[0], At: 2, Heads: r.all.Heads(), Subject: ids[1], Role: RoleAdmin}) {
			t.Fatal("the grant is refused")
		}
		r.may = func(s *Statement) bool {
			if s.Subject == ids[0] || s.Subject == ids[1] {
				attacks++
				return s.Author != ids[0] && s.Author != ids[1]
			}
			return true
		}
		r.grow(40)
		r.all.List()
		if l := r.all.List(); l.Role(ids[0]) != RoleAdmin || l.Role(ids[1]) != RoleAdmin || !l.Above(ids[0], ids[1]) {
			t.Errorf("admins above were removed:\n%s", l.text())
		}
	})
	if attacks < *histories {
		t.Errorf("%d attacks only", attacks)
	}
}

// Each role comes from an admin, by a chain of grants that stand and end at the
// founder.
func TestGrantsHaveAChain(t *testing.T) {
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.grow(40)
		void := map[Hash]bool{}
		for _, v := range r.all.List().Voided() {
			void[v.Hash] = true
		}
		for _, m := range r.all.List().Members() {
			e := r.all.entries[r.all.byHash[m.Grant]]
			for e.Kind != Found {
				if e.Kind != Grant || void[e.hash] || len(e.seats) == 0 {
					t.Fatalf("%s rests on a %s that does not count", m.ID, e.Kind)
				}
				// Up by a seat whose own grant stands; the past grows smaller.
				up := e
				for _, s := range e.seats {
					if s == root {
						up = r.all.entries[r.all.found()]
						break
					}
					if g := r.all.entries[s.entry()]; !void[g.hash] {
						up = g
					}
				}
				if up == e || up.Kind == Grant && (up.Role != RoleAdmin || up.Subject != e.Author || !reaches(e, r.all.byHash[up.hash])) {
					t.Fatalf("%s rests on a grant by %s, that no grant made an admin", m.ID, e.Author)
				}
				e = up
			}
			if e.Author != ids[0] {
				t.Fatalf("%s rests on another founder", m.ID)
			}
		}
	})
}

// Statements that neither stand nor are reached by one that does can be left out:
// a node without them says the same.
func TestVoidCanBeLeftOut(t *testing.T) {
	seeds(t, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.grow(40)
		v := r.all.all()
		var reached bits
		var kept [][]byte
		for i := len(r.all.entries) - 1; i >= 0; i-- {
			e := r.all.entries[i]
			if reached.has(i) || v.stands(i) && (e.Kind != Found || i == r.all.found()) {
				reached = reached.union(e.past)
				kept = append(kept, e.value)
			}
		}
		inOrder := quickSet()
		for _, value := range r.all.Core() {
			if status, err := inOrder.Add(value); err != nil || status != Added {
				t.Errorf("of the core: %d, %v", status, err)
			}
		}
		if inOrder.Len() != len(kept) || inOrder.Digest() != r.all.Digest() {
			t.Errorf("the core has %d statements, not %d", inOrder.Len(), len(kept))
		}
		less := quickSet()
		if left := less.Load(slices.Values(kept)); left > 0 {
			t.Errorf("%d were not taken", left)
		}
		for _, m := range r.all.List().Members() {
			if less.List().Role(m.ID) != m.Role {
				t.Errorf("%s: %s, was %s", m.ID, less.List().Role(m.ID), m.Role)
			}
		}
		if less.Digest() != r.all.Digest() || less.Len() != len(kept) || !slices.Equal(less.Heads(), r.all.Heads()) {
			t.Errorf("%d of %d statements say something else", len(kept), r.all.Len())
		}
	})
}

// Unknown authors fill the buffer, and no more; a member's statement that waited
// through the flood is taken.
func TestFloodOfUnknownAuthors(t *testing.T) {
	s := newSet()
	f := founded(t)
	first := f.Value(f.Heads()[0])
	key := func(n int) ID { // an id without a private key: the signature is not asked
		k := make([]byte, 32)
		k[0], k[1], k[2] = byte(n), byte(n>>8), 1
		return IDOf(k)
	}
	s.cfg.Verify = func(ed25519.PublicKey, []byte, []byte) bool { return true }
	say := func(author ID, n int) error {
		st := &Statement{
			Kind: Grant, Author: author, Subject: idOf(1), Role: RoleRead, At: dbadapter.Timestamp(n + 1),
			Heads: []Hash{{byte(n), byte(n >> 8), byte(n >> 16)}},
		}
		status, err := s.Add(must(st.Sign(testNamespace, func([]byte) ([]byte, error) { return make([]byte, 64), nil })))
		if err == nil && status != Waiting {
			t.Fatalf("status %d", status)
		}
		return err
	}
	for n := range MaxWaitingPerAuthor + 10 {
		_ = say(key(1), n)
	}
	if s.Held() != MaxWaitingPerAuthor {
		t.Errorf("%d of one author wait", s.Held())
	}
	for n := range MaxWaiting + 100 {
		_ = say(key(n), n)
	}
	if s.Held() > MaxWaiting || len(s.waiting.byHead) > MaxWaiting || len(s.waiting.byAuthor) > MaxWaiting || s.Len() != 0 {
		t.Errorf("%d wait, for %d heads, of %d authors", s.Held(), len(s.waiting.byHead), len(s.waiting.byAuthor))
	}
	grant := f.grant(0, 1, RoleWrite)
	if status, err := s.Add(grant); err != nil || status != Waiting {
		t.Fatal(status, err)
	}
	if status, err := s.Add(first); err != nil || status != Added {
		t.Fatal(status, err)
	}
	if released := s.Released(); len(released) != 1 || HashOf(released[0]) != HashOf(grant) || s.List().Role(idOf(1)) != RoleWrite {
		t.Errorf("%d were released", len(released))
	}
	// The same authors with real heads are refused, and leave nothing behind.
	held := s.Held()
	st := &Statement{Kind: Grant, Author: key(1), Subject: idOf(2), Role: RoleRead, At: 1, Heads: s.Heads()}
	if _, err := s.Add(must(st.Sign(testNamespace, signer(1)))); !errors.Is(err, ErrRefused) || s.Held() != held || s.Len() != 2 {
		t.Errorf("%v", err)
	}
}

// A removed member can go on making void statements, and ones of itself alone. A
// bound of them is kept, the list stays, and the others' statements have room.
func TestVoidIsBounded(t *testing.T) {
	s := quickSet()
	say := func(author int, st *Statement) ([]byte, Status, error) {
		st.Author = ids[author]
		value := must(st.Sign(testNamespace, quickSign(author)))
		status, err := s.Add(value)
		return value, status, err
	}
	found, _, _ := say(0, &Statement{Kind: Found, At: 1, Policy: &testPolicy, Placement: testPlacement})
	g1, _, _ := say(0, &Statement{Kind: Grant, Subject: ids[1], Role: RoleAdmin, At: 2, Heads: []Hash{HashOf(found)}})
	old := []Hash{HashOf(g1)}
	say(0, &Statement{Kind: Remove, Subject: ids[1], At: 3, Heads: old})
	want := s.List().text()
	for n := range 2*MaxVoid + 200 {
		if _, _, err := say(1, &Statement{Kind: Grant, Subject: ids[2], Role: RoleAdmin, At: dbadapter.Timestamp(n + 10), Heads: old}); err != nil {
			t.Fatal(err)
		}
		if s.Len() > 2*MaxVoid+10 || n%100 == 0 && s.List().text() != want {
			t.Fatalf("%d statements, or the list has changed", s.Len())
		}
	}
	s.Shed()
	dropped := s.Dropped()
	if s.Len() != MaxVoid+3 || len(dropped) != MaxVoid+200 || s.List().text() != want {
		t.Errorf("%d are left, %d were dropped", s.Len(), len(dropped))
	}
	// One that another one names has room: what rests on it must not wait for ever.
	last := dropped[0]
	after := &Statement{Kind: Grant, Author: ids[0], Subject: ids[3], Role: RoleRead, At: 5000, Heads: []Hash{HashOf(last)}}
	value := must(after.Sign(testNamespace, quickSign(0)))
	if status, err := s.Add(value); status != Waiting || err != nil {
		t.Fatal(status, err)
	}
	if status, err := s.Add(last); status != Added || err != nil || s.List().Role(ids[3]) != RoleRead {
		t.Errorf("a void statement that one names: %d, %v", status, err)
	}
	// It leaves as often as it likes: that is void, since it was removed.
	for n := range 2*maxOwn + MaxVoid {
		say(1, &Statement{Kind: Remove, Subject: ids[1], At: dbadapter.Timestamp(n + 10), Heads: old})
	}
	counted := 0
	v := s.all()
	for _, i := range s.own[ids[1]] {
		if v.stands(i) {
			counted++
		}
	}
	if counted != 0 || s.Len() > 2*MaxVoid+10 {
		t.Errorf("%d removals of itself count, of %d statements", counted, s.Len())
	}
	again := quickSet()
	again.Load(values(s))
	if again.Digest() != s.Digest() {
		t.Error("a set that was told all this has another digest")
	}
}

// Of more heads than a statement can name it names those that carry what it is
// about.
func TestManyHeads(t *testing.T) {
	s := quickSet()
	put := func(author int, st *Statement) Hash {
		st.Author = ids[author]
		value := must(st.Sign(testNamespace, quickSign(author)))
		if status, err := s.Add(value); err != nil || status != Added {
			t.Fatal(status, err)
		}
		return HashOf(value)
	}
	found := put(0, &Statement{Kind: Found, At: 1, Policy: &testPolicy, Placement: testPlacement})
	liar := put(0, &Statement{Kind: Grant, Subject: ids[1], Role: RoleAdmin, At: 2, Heads: []Hash{found}})
	for n := range 5 * MaxHeads {
		put(1, &Statement{Kind: Grant, Subject: ids[2+n%4], Role: RoleRead, At: dbadapter.Timestamp(n + 10), Heads: []Hash{liar}})
	}
	admin := put(0, &Statement{Kind: Grant, Subject: ids[6], Role: RoleAdmin, At: 3, Heads: []Hash{found}})
	if n := len(s.Heads()); n != 5*MaxHeads+1 {
		t.Fatalf("%d heads", n)
	}
	for _, author := range []int{0, 6} {
		for _, subject := range []int{1, 2, 6, 7} {
			heads := s.headsFor(ids[author], ids[subject])
			if len(heads) > MaxHeads || author == 6 && !slices.Contains(heads, admin) {
				t.Errorf("%d heads for a statement of %d about %d", len(heads), author, subject)
			}
		}
	}
	must(s.Add(must(Make(s, Statement{Kind: Remove, Subject: ids[1]}, ids[0], 1000, quickSign(0)))))
	if l := s.List(); l.Role(ids[1]) != 0 || l.Role(ids[6]) != RoleAdmin {
		t.Error("the removal has not reached the one that forks")
	}
}

// Held is how many statements wait for others.
func (s *Set) Held() int { return len(s.waiting.byHash) }
