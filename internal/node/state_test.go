package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/membership"
)

// A node that founds a namespace is its creator and its one admin.
func TestFound(t *testing.T) {
	m, ns := newAlone()
	if l := ns.Members(); l.Policy() != (Policy{MaxSkew: DefaultMaxSkew}) || l.Name() != "notes" || len(l.Members()) != 1 ||
		l.Members()[0].ID != m.ID || l.Role(m.ID) != RoleAdmin || ns.Sets()[0].Keys.ID != dbadapter.NamespaceIDOf(ns.Sets()[0].Keys.Secret, []byte(m.ID)) {
		t.Errorf("%+v", l.Members())
	}
	longest := strings.Repeat("x", membership.MaxName)
	for name, ok := range map[string]bool{
		"a": true, "7": true, "A.b_c-9": true, longest: true,
		"": false, longest + "x": false, ".a": false, "-a": false, "_a": false, "a b": false, "a/b": false, "ä": false, "a\n": false,
	} {
		if _, err := m.Found(dbadapter.Secret{}, name, Policy{}); ok != (err == nil) || !ok && !errors.Is(err, ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	wantErr(t, second(m.Found(dbadapter.Secret{}, "notes", Policy{MaxSkew: -1})), ErrInvalid, "a negative skew")
}

// A state is read as it was written; bytes that are no valid state are damaged,
// another format is named.
func TestStateIsReadAsWritten(t *testing.T) {
	m := newMachine(1)
	ns := m.create("notes", Policy{Unsigned: true, MaxSkew: 90 * time.Second})
	must(newMachine(2).join(m, invite(ns, RoleAdmin)))
	invite(ns, RoleRead)
	s := ns.state.Load()
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
	wantErr(t, second(DecodeState(append(bytes.Clone(b), 0))), dbadapter.ErrCorrupt, "a byte too many")
	for name, c := range map[string]struct {
		edit func(*State)
		want error
	}{
		"a newer format":    {func(s *State) { s.Format = ShardedFormat + 1 }, dbadapter.ErrFormat},
		"no format":         {func(s *State) { s.Format = 0 }, dbadapter.ErrFormat},
		"a bad name":        {func(s *State) { s.Name = "../x" }, dbadapter.ErrCorrupt},
		"no creator":        {func(s *State) { s.Creator = nil }, dbadapter.ErrCorrupt},
		"another key type":  {func(s *State) { s.Creator[3] = 2 }, dbadapter.ErrCorrupt},
		"a ticket's hash":   {func(s *State) { s.Invites[0].Hash = s.Invites[0].Hash[1:] }, dbadapter.ErrCorrupt},
		"a ticket's role":   {func(s *State) { s.Invites[0].Role = 9 }, dbadapter.ErrCorrupt},
		"too many tickets":  {func(s *State) { s.Invites = make([]membership.Invite, membership.MaxInvites+1) }, dbadapter.ErrCorrupt},
		"a ticket for 0":    {func(s *State) { s.Invites[0].Uses = 0 }, dbadapter.ErrCorrupt},
		"used too often":    {func(s *State) { s.Invites[1].UsedBy = make([][]byte, 2) }, dbadapter.ErrCorrupt},
		"a ticket's head":   {func(s *State) { s.Invites[0].Heads = [][]byte{{1}} }, dbadapter.ErrCorrupt},
		"the greatest year": {func(s *State) { s.Invites[0].Issued = 1<<64 - 1; s.Invites[0].Expires = -1 << 63 }, nil},
	} {
		edited := must(DecodeState(b))
		c.edit(edited)
		if _, err := DecodeState(must(edited.Encode())); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b = b[stateSum:]
	twice := append(bytes.Clone(b), 1, StateFormat)
	if twice[0]++; b[0] != 0xa9 || b[1] != 1 || b[2] != StateFormat {
		t.Fatalf("the state begins with % x", b[:3])
	}
	flipped := summed(b)
	flipped[len(flipped)-1] ^= 1
	wantErr(t, second(DecodeState(flipped)), dbadapter.ErrCorrupt, "a flipped bit")
	succeeds(t, second(DecodeState(summed(b))))
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

// A change of the state is saved before it counts, and a change that is refused
// leaves all as it was.
func TestUpdateIsDurableFirst(t *testing.T) {
	m, ns := newAlone()
	saved := 0
	m.save = func(s *State) error {
		saved++
		if len(ns.Invitations()) != 0 || len(s.Invites) != 1 {
			t.Error("it counts before it is saved, or another state was saved")
		}
		if len(s.Seeds) > 0 {
			t.Error("the statements that the namespace was opened with are saved again")
		}
		return nil
	}
	old := ns.state.Load()
	if invite(ns, RoleRead); saved != 1 || len(ns.Invitations()) != 1 {
		t.Errorf("saved %d times, %d tickets", saved, len(ns.Invitations()))
	}
	if len(old.Invites) != 0 {
		t.Error("a state that was handed out has changed")
	}
	m.save = func(*State) error { return errors.New("the disk is full") }
	if _, err := ns.Invite(membership.InviteOptions{}, [][]byte{{1}}); err == nil || len(ns.Invitations()) != 1 {
		t.Errorf("a ticket that is not durable: %v", err)
	}
	if err := ns.Revoke(ns.Invitations()[0].ID); err == nil || len(ns.Invitations()) != 1 {
		t.Errorf("a revocation that is not durable: %v", err)
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
