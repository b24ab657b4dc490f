package roster

import (
	"crypto/ed25519"
	"runtime"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// Two admins make thousands of seats of one member, and as many removals of it, which
// have not seen one another: each removal takes each seat. What the list takes for that
// does not grow with their product, which is gigabytes where the set is full.
func TestSeatsTimesTakers(t *testing.T) {
	const n = 3000
	s := New(Config{Namespace: testNamespace, Creator: ids[0], Verify: func(ed25519.PublicKey, []byte, []byte) bool { return true }})
	put := func(author int, st *Statement) []Hash {
		st.Author, st.At = ids[author], dbadapter.Timestamp(s.Len()+1)
		value := must(st.Sign(testNamespace, func([]byte) ([]byte, error) { return make([]byte, 64), nil }))
		if status, err := s.Add(value); err != nil || status != Added {
			t.Fatal(status, err)
		}
		return []Hash{HashOf(value)}
	}
	heads := put(0, &Statement{Kind: Found, Policy: &testPolicy})
	heads = put(0, &Statement{Kind: Grant, Subject: ids[1], Role: RoleAdmin, Heads: heads})
	heads = put(1, &Statement{Kind: Grant, Subject: ids[2], Role: RoleAdmin, Heads: heads})
	heads = put(2, &Statement{Kind: Grant, Subject: ids[3], Role: RoleWrite, Heads: heads})
	for range n {
		put(2, &Statement{Kind: Grant, Subject: ids[3], Role: RoleAdmin, Heads: heads})
		put(1, &Statement{Kind: Remove, Subject: ids[3], Heads: heads})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := s.List()
	runtime.ReadMemStats(&after)
	if l.Has(ids[3], RoleRead) || !l.Has(ids[2], RoleAdmin) {
		t.Errorf("%+v", l.Members())
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > n*n*8>>21 {
		t.Errorf("the list took %d MiB", used)
	} else {
		t.Logf("the list took %d MiB", used)
	}
}
