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
func (s *story) refused(author int, d Statement) {
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
func (s *story) forge(author int, d Statement, at dbadapter.Timestamp, heads ...[]byte) []byte {
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
		s.refused(author, Statement{Kind: Found, Policy: &testPolicy})
		s.refused(author, Statement{Kind: Grant, Subject: idOf(3), Role: RoleRead})
		s.refused(author, Statement{Kind: Grant, Subject: idOf(author), Role: RoleAdmin})
		s.refused(author, Statement{Kind: Remove, Subject: idOf(0)})
		s.refused(author, Statement{Kind: Lapse, Subject: idOf(0)})
		s.refused(author, Statement{Kind: Return, Subject: idOf(author)})
	}
	s.refused(3, Statement{Kind: Remove, Subject: idOf(3)})
	s.remove(1, 1)
	s.roles(RoleAdmin, 0, RoleRead, 0)
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
				s.refused(author, Statement{Kind: Remove, Subject: idOf(subject)})
				s.refused(author, Statement{Kind: Grant, Subject: idOf(subject), Role: RoleWrite})
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

// Of two founding statements the lower hash fixes the policy; both have the same
// first admin, and what rests on either stands.
func TestTwoFoundings(t *testing.T) {
	a := founded(t)
	b := &story{t, newSet(), 99}
	b.say(0, Statement{Kind: Found, Policy: &Policy{Unsigned: true, MaxSkew: 1}})
	a.grant(0, 1, RoleAdmin)
	b.grant(0, 2, RoleWrite)
	l := agree(t, a, b)
	a.roles(RoleAdmin, RoleAdmin, RoleWrite)
	low := slices.MinFunc(a.founds, func(i, j int) int { return byHash(a.entries[i], a.entries[j]) })
	if l.Policy() != *a.entries[low].Policy || len(l.Voided()) != 1 {
		t.Errorf("policy %+v, void %d", l.Policy(), len(l.Voided()))
	}
}
