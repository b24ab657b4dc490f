package roster

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// exchange gives each of the stories all that the others have seen.
func exchange(stories ...*story) {
	for range 2 {
		for _, from := range stories {
			for _, to := range stories {
				to.Load(values(from.Set))
			}
		}
	}
}

// agree wants the same list of all, and returns it.
func agree(t *testing.T, stories ...*story) *List {
	t.Helper()
	exchange(stories...)
	for _, s := range stories[1:] {
		if s.List().text() != stories[0].List().text() {
			t.Errorf("two lists:\n%s\n%s", stories[0].List().text(), s.List().text())
		}
	}
	return stories[0].List()
}

// refused wants a draft to be refused, by Make and, if it is signed nevertheless,
// by Add.
func (s *story) refused(author int, d Draft) {
	s.t.Helper()
	if _, err := Make(s.Set, d, idOf(author), s.at, signer(author)); !errors.Is(err, ErrRefused) {
		s.t.Errorf("%s of node %d: %v", d.Kind, author, err)
	}
	st := &Statement{
		Kind: d.Kind, Author: idOf(author), At: s.at, Heads: s.Heads(), Subject: d.Subject,
		Role: d.Role, Expires: d.Expires, Since: d.Since,
	}
	value, err := st.Sign(testNamespace, signer(author))
	if err != nil {
		return // its form forbids it
	}
	if _, err := s.Add(value); !errors.Is(err, ErrRefused) {
		s.t.Errorf("%s of node %d, signed: %v", d.Kind, author, err)
	}
}

// forge is a statement on heads of the author's choice.
func (s *story) forge(author int, d Draft, at dbadapter.Timestamp, heads ...[]byte) []byte {
	s.t.Helper()
	st := &Statement{
		Kind: d.Kind, Author: idOf(author), At: at, Subject: d.Subject,
		Role: d.Role, Expires: d.Expires, Since: d.Since, Policy: d.Policy,
	}
	for _, h := range heads {
		st.Heads = append(st.Heads, HashOf(h))
	}
	slices.SortFunc(st.Heads, Hash.compare)
	return must(st.Sign(testNamespace, signer(author)))
}

// What a member may do that is no admin: leave, and return from a lapse.
func TestWhatNeedsAnAdmin(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleWrite)
	s.grant(0, 2, RoleRead)
	for _, author := range []int{1, 2, 3} {
		s.refused(author, Draft{Kind: Found, Policy: &testPolicy})
		s.refused(author, Draft{Kind: Grant, Subject: idOf(3), Role: RoleRead})
		s.refused(author, Draft{Kind: Grant, Subject: idOf(author), Role: RoleAdmin})
		s.refused(author, Draft{Kind: Remove, Subject: idOf(0)})
		s.refused(author, Draft{Kind: Lapse, Subject: idOf(0)})
		s.refused(author, Draft{Kind: Return, Subject: idOf(author)})
	}
	s.refused(3, Draft{Kind: Remove, Subject: idOf(3)})
	s.remove(1, 1)
	s.roles(RoleAdmin, 0, RoleRead, 0)
}

// Equals remove one another: three admins of one grantor, in a circle and apart.
// They are refused; the list is one, and has all three.
func TestCircleOfEquals(t *testing.T) {
	s := founded(t)
	for n := 1; n <= 3; n++ {
		s.grant(0, n, RoleAdmin)
	}
	for n := 1; n <= 3; n++ {
		s.refused(n, Draft{Kind: Remove, Subject: idOf(n%3 + 1)})
		s.refused(n, Draft{Kind: Grant, Subject: idOf(n%3 + 1), Role: RoleRead})
	}
	s.roles(RoleAdmin, RoleAdmin, RoleAdmin, RoleAdmin)
}

// Three admins that each have been above the next: 1 made 2, 2 made 3, 3 made 1
// anew after the founder had removed it. By names, each is above the next, and
// three removals apart would void one another in a circle. By seats 1 is not above
// 2 any more: one outcome, everywhere.
func TestCircleByGrants(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.grant(1, 2, RoleAdmin)
	s.grant(2, 3, RoleAdmin)
	s.remove(0, 1)
	s.grant(3, 1, RoleAdmin)
	s.roles(RoleAdmin, RoleAdmin, RoleAdmin, RoleAdmin)

	s.refused(1, Draft{Kind: Remove, Subject: idOf(2)})
	a, b := s.fork(), s.fork()
	a.remove(2, 3)
	b.remove(3, 1)
	agree(t, s, a, b)
	// 2 is above 3, so that the removal of 1 by 3 is void.
	s.roles(RoleAdmin, RoleAdmin, RoleAdmin, 0)
	if v := s.List().Voided(); len(v) != 1 || v[0].Subject != idOf(1) {
		t.Errorf("void: %+v", v)
	}
}

// The same circle, with seats that each was given before: the removals that a
// forger dates back reach only what its seat of then was above.
func TestForgedCircle(t *testing.T) {
	s := founded(t)
	g1 := s.grant(0, 1, RoleAdmin)
	g2 := s.grant(1, 2, RoleAdmin)
	g3 := s.grant(2, 3, RoleAdmin)
	s.remove(0, 1)
	g1again := s.grant(3, 1, RoleAdmin)
	s.add(
		s.forge(1, Draft{Kind: Remove, Subject: idOf(2)}, 103, g1, g2), // by its old seat, apart from its removal
		s.forge(2, Draft{Kind: Remove, Subject: idOf(3)}, 104, g2, g3),
		s.forge(3, Draft{Kind: Remove, Subject: idOf(1)}, 107, g1again),
	)
	// The removal of 3 is apart from its new grant of 1 too.
	s.roles(RoleAdmin, 0, RoleAdmin, 0)
}

// An admin is removed by admins above it, at whatever distance, and by itself.
func TestAbove(t *testing.T) {
	chain := func() *story {
		s := founded(t)
		for n := 1; n <= 4; n++ {
			s.grant(n-1, n, RoleAdmin)
		}
		return s
	}
	for author := range 5 {
		for subject := range 5 {
			s := chain()
			if got := s.List().Above(idOf(author), idOf(subject)); got != (author <= subject) {
				t.Errorf("%d above %d: %v", author, subject, got)
			}
			if author > subject {
				s.refused(author, Draft{Kind: Remove, Subject: idOf(subject)})
				s.refused(author, Draft{Kind: Grant, Subject: idOf(subject), Role: RoleWrite})
				// Not with old heads either: that the subject was no admin then.
				continue
			}
			s.remove(author, subject)
			if s.List().Role(idOf(subject)) != 0 {
				t.Errorf("%d did not remove %d", author, subject)
			}
		}
	}
}

// An admin that another one made as well stays when only one of the two is above
// the remover.
func TestTwoSeats(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.grant(0, 2, RoleAdmin)
	a, b := s.fork(), s.fork()
	a.grant(1, 3, RoleAdmin)
	b.grant(2, 3, RoleAdmin)
	agree(t, s, a, b)
	s.at += 10
	s.remove(1, 3)
	s.roles(RoleAdmin, RoleAdmin, RoleAdmin, RoleAdmin)
	s.remove(0, 3)
	s.roles(RoleAdmin, RoleAdmin, RoleAdmin, 0)
}

// A removed admin makes sock puppets on old heads, and these make more: all of it
// is void. What the removal had seen stays.
func TestSockPuppets(t *testing.T) {
	s := founded(t)
	old := s.grant(0, 1, RoleAdmin)
	g2 := s.grant(1, 2, RoleWrite)
	s.remove(0, 1)
	want, digest := s.List().text(), s.Digest()
	p := s.forge(1, Draft{Kind: Grant, Subject: idOf(3), Role: RoleAdmin}, 101, old)
	q := s.forge(3, Draft{Kind: Grant, Subject: idOf(4), Role: RoleAdmin}, 102, p)
	s.add(p, q, s.forge(4, Draft{Kind: Grant, Subject: idOf(5), Role: RoleWrite}, 103, q),
		s.forge(4, Draft{Kind: Remove, Subject: idOf(2)}, 103, q, g2), s.forge(1, Draft{Kind: Grant, Subject: idOf(1), Role: RoleRead}, 103, old))
	s.roles(RoleAdmin, 0, RoleWrite, 0, 0, 0)
	if s.Digest() != digest || len(s.List().Voided()) != 5 {
		t.Errorf("void: %d; was\n%s\nis\n%s", len(s.List().Voided()), want, s.List().text())
	}
	if f, ok := s.List().Former(idOf(3)); !ok || f.RemovedBy != idOf(0) || !f.Void {
		t.Errorf("former: %v %+v", ok, f)
	}
	// The founder leaves them out of what it names next.
	s.grant(0, 6, RoleRead)
	if heads := s.entries[len(s.entries)-1].Heads; len(heads) != 1 {
		t.Errorf("%d heads", len(heads))
	}
}

// A member that a void grant names is shown what made it void, also where it has
// seen a removal of itself before, and where the grant's author was made an admin by
// a void grant.
func TestFormerIsShownWhatVoids(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.grant(0, 2, RoleWrite)
	removal := s.remove(0, 2)
	apart := s.fork()
	apart.grant(1, 2, RoleWrite)
	apart.grant(1, 3, RoleAdmin)
	apart.grant(3, 4, RoleWrite)
	void := s.remove(0, 1)
	agree(t, s, apart)
	for subject, want := range map[int][]byte{2: removal, 3: void, 4: void} {
		f, ok := s.List().Former(idOf(subject))
		if !ok || !bytes.Equal(f.Statement, want) || f.Void != (subject != 2) {
			t.Errorf("node %d: %v, void %v, by %s", subject, ok, f.Void, f.RemovedBy)
		}
		if shown := s.Explain(idOf(subject), 2); !slices.ContainsFunc(shown, func(s []byte) bool { return bytes.Equal(s, void) }) {
			t.Errorf("node %d is shown %d statements without what voids", subject, len(shown))
		}
	}
}

// A removal that is void gives back what it took.
func TestVoidRemovalGivesBack(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.grant(1, 2, RoleAdmin)
	s.grant(2, 3, RoleWrite)
	a, b, c := s.fork(), s.fork(), s.fork()
	a.remove(0, 1)
	b.remove(1, 2)
	c.remove(2, 3)
	if agree(t, b, c); b.List().Role(idOf(2)) != 0 || b.List().Role(idOf(3)) != RoleWrite {
		t.Error("the removal of 3 is not void")
	}
	agree(t, a, b, c)
	a.roles(RoleAdmin, 0, RoleAdmin, 0)
}

// A removal wins over a grant apart from it, a lower role over a higher one; what
// follows with knowledge of it wins over it.
func TestConcurrentGrants(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.grant(0, 2, RoleWrite)
	s.grant(0, 3, RoleRead)
	a, b := s.fork(), s.fork()
	a.remove(0, 2)
	b.grant(1, 2, RoleAdmin)
	a.grant(0, 3, RoleWrite)
	b.grant(1, 3, RoleAdmin)
	agree(t, a, b)
	a.roles(RoleAdmin, RoleAdmin, 0, RoleWrite)
	a.at += 10
	a.grant(1, 2, RoleAdmin)
	a.roles(RoleAdmin, RoleAdmin, RoleAdmin)
}

// An admin above demotes; its subject's statements apart from that are void.
func TestDemotion(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	a, b := s.fork(), s.fork()
	a.grant(0, 1, RoleWrite)
	b.grant(1, 2, RoleRead)
	agree(t, a, b)
	a.roles(RoleAdmin, RoleWrite, 0)
	a.at += 10
	a.grant(0, 1, RoleAdmin)
	a.roles(RoleAdmin, RoleAdmin)
}

// An admin steps down, on two machines at once: the lower role counts.
func TestStepDown(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	a, b := s.fork(), s.fork()
	a.grant(1, 1, RoleWrite)
	b.grant(1, 1, RoleRead)
	agree(t, a, b)
	a.roles(RoleAdmin, RoleRead)
	// The founder may, too; then the namespace has the admins that it has.
	a.grant(0, 0, RoleRead)
	a.roles(RoleRead, RoleRead)
}

// Of two founding statements the lower hash fixes the policy; both have the same
// first admin, and what rests on either stands.
func TestTwoFoundings(t *testing.T) {
	a := founded(t)
	b := &story{t, newSet(), 99}
	b.say(0, Draft{Kind: Found, Policy: &Policy{Unsigned: true, MaxSkew: 1}})
	a.grant(0, 1, RoleAdmin)
	b.grant(0, 2, RoleWrite)
	l := agree(t, a, b)
	a.roles(RoleAdmin, RoleAdmin, RoleWrite)
	low := slices.MinFunc(a.founds, func(i, j int) int { return byHash(a.entries[i], a.entries[j]) })
	if l.Policy() != *a.entries[low].Policy || len(l.Voided()) != 1 {
		t.Errorf("policy %+v, void %d", l.Policy(), len(l.Voided()))
	}
}
