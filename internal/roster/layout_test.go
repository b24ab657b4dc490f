package roster

import (
	"errors"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
)

// sharded is the story in which node 0 has made a namespace of shards, at 100.
func sharded(t *testing.T) *story {
	cfg := newSet().cfg
	cfg.Placement = testPlacement
	s := &story{t, New(cfg), 99}
	s.say(0, Statement{Kind: Found, Policy: &testPolicy, Placement: testPlacement})
	return s
}

func (s *story) layout(author int, table byte) []byte {
	s.t.Helper()
	return s.say(author, Statement{Kind: Layout, Table: Table{table}})
}

// counts wants this to be the layout that counts.
func (s *story) counts(epoch uint64, table byte) {
	s.t.Helper()
	if l, ok := s.List().Layout(); !ok || l.Epoch != epoch || l.Table != (Table{table}) {
		s.t.Errorf("epoch %d, table %x; want %d, %x", l.Epoch, l.Table[0], epoch, table)
	}
}

// Layouts follow one another; two that are made apart have one epoch, of which one
// counts everywhere, and the next one is later than both.
func TestLayouts(t *testing.T) {
	s := sharded(t)
	if _, ok := s.List().Layout(); ok || s.List().Placement() != testPlacement {
		t.Errorf("a layout, before one is stated; placement %q", s.List().Placement())
	}
	s.layout(0, 1)
	s.grant(0, 1, RoleAdmin)
	s.counts(1, 1)
	f := s.fork()
	mine, theirs := s.layout(0, 2), f.layout(1, 3)
	s.counts(2, 2)
	f.counts(2, 3)
	s.add(theirs)
	f.add(mine)
	a, _ := s.List().Layout()
	if b, _ := f.List().Layout(); a != b || a.Epoch != 2 || a.Statement != slices.MaxFunc([]Hash{HashOf(mine), HashOf(theirs)}, Hash.compare) {
		t.Errorf("one counts %+v, the other %+v", a, b)
	}
	s.layout(1, 4)
	s.counts(3, 4)
}

// What an admin has stated before its removal goes on to count; what it states apart
// from it does not, however great the epoch, and the next one is stated over it, and later
// than it.
func TestLayoutsOfARemovedAdmin(t *testing.T) {
	s := sharded(t)
	s.grant(0, 1, RoleAdmin)
	s.layout(1, 1)
	f := s.fork()
	s.remove(0, 1)
	s.counts(1, 1)
	for table := range byte(5) {
		s.add(f.layout(1, 2+table))
	}
	f.counts(6, 6)
	s.counts(1, 1)
	if !s.List().Overtaken() {
		t.Error("it is not overtaken by a void one")
	}
	s.layout(0, 9)
	s.counts(7, 9)
	f.Load(values(s.Set))
	f.counts(7, 9)
	if s.List().Overtaken() {
		t.Error("it is overtaken")
	}
	if f.Digest() != s.Digest() {
		t.Error("two lists")
	}
}

func TestRefusedLayouts(t *testing.T) {
	s := sharded(t)
	s.grant(0, 1, RoleWrite)
	heads := s.Heads()
	for name, st := range map[string]*Statement{
		"of a writer":         {Author: ids[1], Epoch: 1},
		"of a stranger":       {Author: ids[2], Epoch: 1},
		"of an epoch too far": {Author: ids[0], Epoch: 1 + maxStep},
		"of the last epoch":   {Author: ids[0], Epoch: 1<<64 - 1},
	} {
		st.Kind, st.At, st.Table = Layout, 200, Table{1}
		if st.Heads == nil {
			st.Heads = heads
		}
		n := 0
		for ids[n] != st.Author {
			n++
		}
		if _, err := s.Add(must(st.Sign(testNamespace, signer(n)))); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A namespace of one shard has no layouts, and no founding gives it shards.
	one := founded(t)
	if _, err := Make(one.Set, Statement{Kind: Layout, Table: Table{1}}, idOf(0), 200, signer(0)); !errors.Is(err, ErrRefused) {
		t.Errorf("a layout of one shard: %v", err)
	}
	for _, set := range []*Set{one.Set, s.Set} {
		for _, placement := range []string{"", "64 by hash", testPlacement} {
			_, err := Make(set, Statement{Kind: Found, Policy: &testPolicy, Placement: cbor.ByteString(placement)}, set.cfg.Creator, 1, signer(0))
			if want := placement != set.cfg.Placement; errors.Is(err, ErrRefused) != want {
				t.Errorf("placement %q for one of %q: %v", placement, set.cfg.Placement, err)
			}
		}
	}
}

// An admin's layouts count to its bound, as all that it states.
func TestLayoutsAreBounded(t *testing.T) {
	s := sharded(t)
	s.grant(0, 1, RoleAdmin)
	s.bounds.perAuthor = 5
	for table := range byte(5) {
		s.layout(1, 1+table)
	}
	value := must(Make(s.Set, Statement{Kind: Layout, Table: Table{9}}, ids[1], s.at, signer(1)))
	if _, err := s.Add(value); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("the sixth: %v", err)
	}
	s.counts(5, 5)
}
