package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

func TestNewState(t *testing.T) {
	s := must(NewState("notes", Policy{}, idOf(1), noon))
	if m := must(newMembers(s)); m.Policy() != (Policy{MaxSkew: DefaultMaxSkew}) || m.Name() != "notes" || len(m.List()) != 1 ||
		m.List()[0] != (Member{ID: idOf(1), Role: RoleAdmin, Writer: writerOf(1), Since: noon}) {
		t.Errorf("%+v", m)
	}
	longest := strings.Repeat("x", MaxName)
	for name, ok := range map[string]bool{
		"a": true, "7": true, "A.b_c-9": true, longest: true,
		"": false, longest + "x": false, ".a": false, "-a": false, "_a": false, "a b": false, "a/b": false, "ä": false, "a\n": false,
	} {
		if _, err := NewState(name, Policy{}, idOf(1), noon); ok != (err == nil) || !ok && !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := NewState("notes", Policy{MaxSkew: -1}, idOf(1), noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative skew: %v", err)
	}
}

// A state is read as it was written; bytes that are no valid state are damaged,
// another format is named.
func TestStateIsReadAsWritten(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{Unsigned: true, MaxSkew: 90 * time.Second})
	must(newMachine(2).join(m, invite(ns, RoleAdmin)))
	invite(ns, RoleRead)
	s := ns.Members().state
	b := must(s.Encode())
	back := must(DecodeState(b))
	if !reflect.DeepEqual(back, s) {
		t.Errorf("read %+v\nwritten %+v", back, s)
	}
	for i := range b {
		if _, err := DecodeState(b[:i]); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", i, len(b), err)
		}
	}
	if _, err := DecodeState(append(bytes.Clone(b), 0)); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a byte too many: %v", err)
	}
	for name, c := range map[string]struct {
		edit func(*State)
		want error
	}{
		"a newer format":    {func(s *State) { s.Format++ }, dbadapter.ErrFormat},
		"no format":         {func(s *State) { s.Format = 0 }, dbadapter.ErrFormat},
		"a bad name":        {func(s *State) { s.Name = "../x" }, dbadapter.ErrCorrupt},
		"no skew":           {func(s *State) { s.Policy.MaxSkew = 0 }, dbadapter.ErrCorrupt},
		"a bad id":          {func(s *State) { s.Members[0].ID = s.Members[0].ID[1:] }, dbadapter.ErrCorrupt},
		"another key type":  {func(s *State) { s.Members[0].ID[3] = 2 }, dbadapter.ErrCorrupt},
		"no role":           {func(s *State) { s.Members[0].Role = 0 }, dbadapter.ErrCorrupt},
		"a role too high":   {func(s *State) { s.Members[0].Role = RoleAdmin + 1 }, dbadapter.ErrCorrupt},
		"a ticket's hash":   {func(s *State) { s.Invites[0].Hash = s.Invites[0].Hash[1:] }, dbadapter.ErrCorrupt},
		"a ticket's role":   {func(s *State) { s.Invites[0].Role = 9 }, dbadapter.ErrCorrupt},
		"too many tickets":  {func(s *State) { s.Invites = make([]storedInvite, MaxInvites+1) }, dbadapter.ErrCorrupt},
		"too many members":  {func(s *State) { s.Members = manyMembers(MaxMembers + 1) }, dbadapter.ErrCorrupt},
		"just enough":       {func(s *State) { s.Members = manyMembers(MaxMembers) }, nil},
		"the greatest year": {func(s *State) { s.Members[0].Since = 1<<63 - 1; s.Invites[0].Expires = -1 << 63 }, nil},
	} {
		edited := must(DecodeState(b))
		c.edit(edited)
		if _, err := DecodeState(must(edited.Encode())); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b = b[stateSum:]
	twice := append(bytes.Clone(b), 1, StateFormat)
	if twice[0]++; b[0] != 0xa6 || b[1] != 1 || b[2] != StateFormat {
		t.Fatalf("the state begins with % x", b[:3])
	}
	flipped := summed(b)
	flipped[len(flipped)-1] ^= 1
	if _, err := DecodeState(flipped); !errors.Is(err, dbadapter.ErrCorrupt) {
		t.Errorf("a flipped bit: %v", err)
	}
	if _, err := DecodeState(summed(b)); err != nil {
		t.Error(err)
	}
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"a key twice":       twice,
		"a tag":             append([]byte{0xd9, 0xd9, 0xf7}, b...),
		"indefinite length": {0xbf, 0xff},
		"a vast list":       {0xa1, 0x04, 0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"deep nesting":      bytes.Repeat([]byte{0x81}, 1000),
	} {
		if _, err := DecodeState(summed(b)); !errors.Is(err, dbadapter.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyMembers(n int) (list []storedMember) {
	for i := range n {
		list = append(list, storedMember{[]byte(idOf(i)), RoleRead, 0})
	}
	return list
}

// A change of the state is saved before it counts, and a change that is refused
// leaves all as it was.
func TestUpdateIsDurableFirst(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{})
	saved := 0
	m.save = func(s *State) error {
		saved++
		if ns.Members().Has(idOf(2), RoleRead) {
			t.Error("it counts before it is saved")
		}
		if s.find(idOf(2)) < 0 {
			t.Error("another state was saved")
		}
		return nil
	}
	old := ns.Members()
	if err := ns.SetMember(idOf(2), RoleRead); err != nil || saved != 1 || !ns.Members().Has(idOf(2), RoleRead) {
		t.Errorf("saved %d times: %v", saved, err)
	}
	if old.Has(idOf(2), RoleRead) || len(old.List()) != 1 || len(old.state.Members) != 1 {
		t.Error("a list that was handed out has changed")
	}
	m.save = func(*State) error { return errors.New("the disk is full") }
	all := func() string { return fmt.Sprint(ns.Members().List(), ns.Members().state) }
	before := all()
	for name, err := range map[string]error{
		"not saved":    ns.SetMember(idOf(3), RoleRead),
		"another role": ns.SetMember(idOf(2), RoleAdmin),
		"no role":      ns.SetMember(idOf(2), 0),
		"no id":        ns.SetMember("x", RoleRead),
		"no ticket":    second(ns.Invite(InviteOptions{}, [][]byte{{1}})),
	} {
		if after := all(); err == nil || after != before {
			t.Errorf("%s: %v; the members are %s, were %s", name, err, after, before)
		}
	}
	if err := ns.SetMember(idOf(2), 9); !errors.Is(err, ErrInvalid) {
		t.Errorf("no such role: %v", err)
	}
}

func TestWriterIDsCollide(t *testing.T) {
	s := &State{}
	if err := s.setMember(idOf(1), RoleWrite, 0); err != nil {
		t.Fatal(err)
	}
	s.Members = append(s.Members, s.Members[0]) // as if another key had the same
	if _, err := newMembers(s); !errors.Is(err, ErrDenied) {
		t.Errorf("two members with one writer id: %v", err)
	}
	for i := range MaxMembers {
		s.Members = append(s.Members, storedMember{ID: fmt.Append(nil, i)})
	}
	if err := s.setMember(idOf(2), RoleRead, 0); !errors.Is(err, dbadapter.ErrLimit) {
		t.Errorf("a member too many: %v", err)
	}
	if err := s.setMember(idOf(1), RoleRead, 0); err != nil || s.Members[0].Role != RoleRead {
		t.Errorf("a member that is there: %v", err)
	}
}

// Each role may do what those before it may, and no other number is a role.
func TestRoles(t *testing.T) {
	s := &State{Policy: storedPolicy{MaxSkew: 1}}
	roles := []Role{0, RoleRead, RoleWrite, RoleAdmin}
	for seed, role := range roles[1:] {
		if err := s.setMember(idOf(seed+1), role, 0); err != nil {
			t.Fatal(err)
		}
	}
	m := must(newMembers(s))
	for has := range roles {
		for needs := 1; needs < len(roles); needs++ {
			if got := m.Has(idOf(has), roles[needs]); got != (has >= needs) || m.Role(idOf(has)) != roles[has] {
				t.Errorf("%s has %s: %t", roles[has], roles[needs], got)
			}
		}
	}
	for r := range 256 {
		role := Role(r)
		back, err := ParseRole(role.String())
		if valid := role >= 1 && role <= 3; role.Valid() != valid || valid != (err == nil && back == role) {
			t.Errorf("role %d: %s, %v", r, back, err)
		}
	}
	if got := fmt.Sprint(roles[1:], Role(9)); got != "[read write admin] role(9)" {
		t.Error(got)
	}
}

// Only the id of an Ed25519 key is a node's.
func TestID(t *testing.T) {
	id := idOf(1)
	if key := must(id.PublicKey()); IDOf(key) != id || !key.Equal(keyOf(1).Public()) {
		t.Error("an id is not that of its key")
	}
	for _, bad := range []ID{"", id[1:], id + "x", "\x00\x24\x08\x02" + id[4:], "\x12" + id[1:], id[:len(id)-1]} {
		if _, err := bad.PublicKey(); err == nil {
			t.Errorf("%x holds a key", bad)
		}
		if _, err := bad.Writer(); err == nil {
			t.Errorf("%x is a writer", bad)
		}
	}
}

// summed is what a driver keeps of a state with that CBOR.
func summed(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(sum[:stateSum:stateSum], b...)
}
