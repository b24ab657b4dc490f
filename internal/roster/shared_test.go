package roster

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

var (
	testNamespace = dbadapter.NamespaceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	testPolicy    = Policy{MaxSkew: time.Minute}
)

const testPlacement = "32 by hash"

// keyOf is the key of the node of a number.
func keyOf(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(n), byte(n >> 8)}, ed25519.SeedSize/2))
}

// idOf is the id of the node of a number; node 0 is the founder.
func idOf(n int) ID { return IDOf(keyOf(n).Public().(ed25519.PublicKey)) }

func signer(n int) func([]byte) ([]byte, error) {
	return func(message []byte) ([]byte, error) { return ed25519.Sign(keyOf(n), message), nil }
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newSet() *Set {
	return New(Config{Namespace: testNamespace, Creator: idOf(0), Verify: ed25519.Verify})
}

// story is a set that statements are made on, each at one later than the last.
type story struct {
	t *testing.T
	*Set
	at dbadapter.Timestamp
}

// founded is the story in which node 0 has made the namespace, at 100.
func founded(t *testing.T) *story {
	s := &story{t, newSet(), 99}
	s.say(0, Statement{Kind: Found, Policy: &testPolicy})
	return s
}

// say makes a statement on all that the set has, and adds it.
func (s *story) say(author int, d Statement) []byte {
	s.t.Helper()
	s.at++
	value, err := Make(s.Set, d, idOf(author), s.at, signer(author))
	if err != nil {
		s.t.Fatalf("%s of node %d: %v", d.Kind, author, err)
	}
	s.add(value)
	return value
}

func (s *story) add(values ...[]byte) {
	s.t.Helper()
	for _, value := range values {
		if status, err := s.Add(value); err != nil || status != Added {
			s.t.Fatalf("status %d, %v", status, err)
		}
	}
}

func (s *story) grant(author, subject int, role Role) []byte {
	s.t.Helper()
	return s.say(author, Statement{Kind: Grant, Subject: idOf(subject), Role: role})
}

func (s *story) remove(author, subject int) []byte {
	s.t.Helper()
	return s.say(author, Statement{Kind: Remove, Subject: idOf(subject)})
}

// fork is a story of its own that has seen what this one has.
func (s *story) fork() *story {
	f := &story{s.t, New(s.cfg), s.at}
	f.Load(values(s.Set))
	return f
}

func values(s *Set) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, value := range s.Values() {
			if !yield(value) {
				return
			}
		}
	}
}

// roles wants these roles of the nodes 0, 1, …
func (s *story) roles(want ...Role) {
	s.t.Helper()
	for n, role := range want {
		if got := s.List().Role(idOf(n)); got != role {
			s.t.Errorf("node %d: %s, want %s", n, got, role)
		}
	}
}

func dbTime(n uint64) dbadapter.Timestamp { return dbadapter.Timestamp(n) }
