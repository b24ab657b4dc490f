package roster

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// A set that an admin has filled, in number or in bytes, has room for the founder,
// for what the founder's statements wait for, and for all once that admin is removed.
func TestFilledByAnAdmin(t *testing.T) {
	for name, low := range map[string]bounds{
		"number": {statements: 40, bytes: MaxBytes, reserve: 10, perAuthor: 400, void: 5},
		"bytes":  {statements: 400, bytes: 32 << 10, reserve: 10, perAuthor: 400, void: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{t, quickSet(), 99}
			s.bounds = low
			put := func(author int, st *Statement) ([]byte, Status, error) {
				s.at++
				st.Author, st.At = ids[author], s.at
				value := must(st.Sign(testNamespace, quickSign(author)))
				status, err := s.Add(value)
				return value, status, err
			}
			found, _, _ := put(0, &Statement{Kind: Found, Policy: &testPolicy, Placement: testPlacement})
			admin, _, _ := put(0, &Statement{Kind: Grant, Subject: ids[1], Role: RoleAdmin, Heads: []Hash{HashOf(found)}})
			other, _, _ := put(0, &Statement{Kind: Grant, Subject: ids[2], Role: RoleAdmin, Heads: []Hash{HashOf(admin)}})
			say := func(author int) ([]byte, error) {
				value, _, err := put(author, &Statement{Kind: Grant, Subject: ids[3], Role: RoleRead, Heads: []Hash{HashOf(other)}})
				return value, err
			}
			for n := 0; ; n++ {
				if _, err := say(1); errors.Is(err, dbadapter.ErrLimit) && n > 20 {
					break
				} else if err != nil || n > 300 {
					t.Fatal(n, err)
				}
			}
			one, err := say(2)
			if !errors.Is(err, dbadapter.ErrLimit) {
				t.Fatalf("a full set takes a statement of another admin: %v", err)
			}
			if _, status, err := put(0, &Statement{Kind: Grant, Subject: ids[4], Role: RoleWrite, Heads: []Hash{HashOf(one)}}); status != Waiting {
				t.Fatal(status, err)
			}
			if status, err := s.Add(one); status != Added || s.List().Role(ids[4]) != RoleWrite {
				t.Errorf("what the founder's statement waits for: %d, %v", status, err)
			}
			if _, status, err := put(0, &Statement{Kind: Remove, Subject: ids[1], Heads: []Hash{HashOf(other)}}); status != Added {
				t.Fatal(status, err)
			}
			for range 10 {
				if _, err := say(2); err != nil {
					t.Errorf("there is no room after the removal: %v", err)
				}
			}
			if s.Shed(); s.Len() > 25 {
				t.Errorf("%d statements are kept", s.Len())
			}
		})
	}
}
