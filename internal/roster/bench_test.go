package roster

import (
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// large is a history of n statements: some admins, 1,000 members that come, change
// and go, and now and then two statements apart.
func large(tb testing.TB, n int) *Set {
	tb.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	s := New(Config{Namespace: testNamespace, Creator: ids[0], Verify: func(ed25519.PublicKey, []byte, []byte) bool { return true }})
	sign := func([]byte) ([]byte, error) { return make([]byte, 64), nil }
	member := func(n int) ID {
		k := make([]byte, 32)
		k[0], k[1], k[2] = byte(n), byte(n>>8), 1
		return IDOf(k)
	}
	var heads []Hash
	put := func(author ID, st *Statement) {
		st.Author, st.At, st.Heads = author, dbadapter.Timestamp(s.Len()+1), heads
		value := must(st.Sign(testNamespace, sign))
		if status, err := s.Add(value); err == nil && status == Added {
			last := HashOf(value)
			if r.IntN(8) == 0 && len(heads) == 1 { // the next one is apart from this one
				return
			}
			heads = []Hash{last}
		}
	}
	put(ids[0], &Statement{Kind: Found, Policy: testPolicy})
	for i := 1; i < len(ids); i++ {
		put(ids[i/2], &Statement{Kind: Grant, Subject: ids[i], Role: RoleAdmin})
	}
	for tried := 0; s.Len() < n && tried < 10*n; tried++ {
		st := &Statement{Kind: Grant, Subject: member(r.IntN(1000)), Role: RoleWrite}
		switch r.IntN(10) {
		case 0:
			st.Kind, st.Role = Remove, 0
		case 1:
			st.Kind, st.Role = Lapse, 0
		case 2:
			st.Role = RoleRead
		}
		put(ids[r.IntN(len(ids))], st)
	}
	return s
}

// What one more statement costs, and a start with all of them (without signatures).
func BenchmarkSet(b *testing.B) {
	for _, n := range []int{1000, 3000, 20_000} {
		s := large(b, n)
		b.Run(fmt.Sprintf("list/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.resolved = nil
				s.List()
			}
		})
		b.Run(fmt.Sprintf("load/%d", n), func(b *testing.B) {
			for b.Loop() {
				again := New(s.cfg)
				again.Load(values(s))
				if again.Digest() != s.Digest() {
					b.Fatal("another digest")
				}
			}
		})
	}
}
