package roster

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"
)

// Statements that stood when they came can be void later, more than MaxVoid of them:
// an admin signs forks, one node sees them, another one removes it without. The
// node's own start, and a node that it invites, take the whole set again.
func TestLoadOfManyVoidStatements(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	removal := must(Make(s.Set, Statement{Kind: Remove, Subject: idOf(1)}, idOf(0), s.at+1, signer(0)))
	for n := range 4 * MaxVoid {
		d := Statement{Kind: Grant, Subject: idOf(2), Role: RoleRead}
		fork := &Statement{Kind: d.Kind, Author: idOf(1), Subject: d.Subject, Role: d.Role, At: dbTime(uint64(1000 + n)), Heads: s.founding()}
		s.add(must(fork.Sign(testNamespace, signer(1))))
	}
	s.add(removal)
	s.roles(RoleAdmin, 0, 0)

	loaded := newSet()
	if left := loaded.Load(values(s.Set)); left > 0 || loaded.Len() != s.Len() || loaded.Digest() != s.Digest() {
		t.Errorf("%d of %d statements are left out", left, s.Len())
	}
}

// founding are the heads of the story's first two statements.
func (s *story) founding() []Hash { return []Hash{s.entries[1].hash} }

// What waits of admins is bounded in bytes, and takes no place of what others say.
func TestWaitingOfAdminsIsBounded(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleAdmin)
	s.cfg.Verify = func(ed25519.PublicKey, []byte, []byte) bool { return true }
	say := func(author, n int) {
		st := &Statement{Kind: Grant, Author: idOf(author), Subject: idOf(2), Role: RoleRead, At: dbTime(uint64(n + 1))}
		for i := range MaxHeads {
			st.Heads = append(st.Heads, Hash{byte(n), byte(n >> 8), byte(i)})
		}
		slices.SortFunc(st.Heads, Hash.compare)
		value := must(st.Sign(testNamespace, func([]byte) ([]byte, error) { return make([]byte, 64), nil }))
		if status, err := s.Add(value); err != nil || status != Waiting {
			t.Fatal(status, err)
		}
	}
	say(3, 0)
	for n := range 2 * MaxWaitingBytes / 2_300 {
		say(1, n)
	}
	if s.waiting.bytes > MaxWaitingBytes || s.waiting.bytes < MaxWaitingBytes*9/10 || s.waiting.others.Len() != 1 {
		t.Errorf("%d bytes wait of admins, and %d statements of others", s.waiting.bytes, s.waiting.others.Len())
	}
	if s.Held() != s.waiting.admins.Len()+1 || len(s.waiting.byHead) > s.Held() {
		t.Errorf("%d wait, %d of admins, for %d heads", s.Held(), s.waiting.admins.Len(), len(s.waiting.byHead))
	}
}

// A former reader signs as many removals of itself as the set takes, apart from one
// another and the highest hash first, so that each one counts when it comes. They are
// kept by hash: a look at the lowest tells which of them count. (Without order each
// later statement of anyone took 11 s.)
func TestManyStatementsOfItself(t *testing.T) {
	s := founded(t)
	s.grant(0, 1, RoleRead)
	heads := s.Heads()
	s.cfg.Verify = func(ed25519.PublicKey, []byte, []byte) bool { return true }
	flood := make([][]byte, MaxPerAuthor)
	for n := range flood {
		st := &Statement{Kind: Remove, Author: idOf(1), Subject: idOf(1), At: dbTime(uint64(1000 + n)), Heads: heads}
		flood[n] = must(st.Sign(testNamespace, func([]byte) ([]byte, error) { return make([]byte, 64), nil }))
	}
	slices.SortFunc(flood, func(a, b []byte) int {
		x, y := HashOf(a), HashOf(b)
		return bytes.Compare(y[:], x[:])
	})
	s.add(flood...)
	own := s.own[idOf(1)]
	if len(own) != len(flood) || !slices.IsSortedFunc(own, func(i, j int) int { return byHash(s.entries[i], s.entries[j]) }) {
		t.Error("they are not in the order of their hashes")
	}
	v := s.all()
	for n, i := range own {
		if v.stands(i) != (n < maxOwn) {
			t.Fatalf("the one with the hash in place %d counts: %v", n, v.stands(i))
		}
	}
	s.grant(0, 2, RoleRead)
	s.roles(RoleAdmin, 0, RoleRead)
}
