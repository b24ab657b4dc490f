package node

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/watermark"
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
		"a newer format":    {func(s *State) { s.Format = StateFormat + 1 }, dbadapter.ErrFormat},
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
	if twice[0]++; b[0] != 0xa8 || b[1] != 1 || b[2] != StateFormat {
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

var errDisk = errors.New("the disk has failed")

// No record leaves the store by a floor that is not durable yet: a crash in between would let the
// deletion come back.
func TestFloorIsDurableBeforeRemoval(t *testing.T) {
	c := newCrew(t, 3)
	floors := make([]dbadapter.Timestamp, 3)
	var failed, collected int
	full := false // machine 0 can raise no floor
	for i, m := range c.machines {
		m.save = func(s *State) error {
			if full && i == 0 && s.Watermark.Floor > floors[i] {
				failed++
				return errDisk
			}
			floors[i] = s.Watermark.Floor
			return nil
		}
		m.apply = func(ns dbadapter.Namespace, writes []dbadapter.Write) ([]dbadapter.Outcome, error) {
			for _, w := range writes {
				if at, ok := w.Record.Due(); ok && w.Action == dbadapter.Collect {
					if collected++; floors[i] < at {
						t.Errorf("%d collects %q of %v, and its durable floor is %v", i, w.Record.Key, at, floors[i])
					}
				}
			}
			return ns.Apply(t.Context(), writes)
		}
	}
	deleted := func(key string) {
		c.put(0, key, "1")
		c.round()
		c.del(1, key)
		c.round()
	}
	deleted("first")
	c.quiet()
	if collected < 3 {
		t.Errorf("%d tombstones were collected", collected)
	}

	full = true
	deleted("second")
	for range 6 {
		c.pass(time.Minute)
		for i := range c.ns {
			_ = c.turn(i, (i+1)%3)
			_ = c.machines[i].Tend(t.Context())
		}
	}
	if c.want(0, "-second"); failed == 0 {
		t.Error("no floor was to be raised")
	}
	full = false
	c.quiet()

	deleted("third")
	set := c.ns[0].Sets()[0]
	held := must(set.Held([]byte("third")))
	if held == nil {
		c.round()
		return
	}
	tombstone := must(dbadapter.Hash(set.Keys.Hasher, *held))
	_, err := set.gc.Remove(t.Context(), []dbadapter.Write{{Record: tombstone, Action: dbadapter.Collect}}, held.Version.Clock, watermark.Basis{})
	if !errors.Is(err, gc.ErrAnew) || !slices.Contains(c.keys(0), "-third") {
		t.Errorf("the list has changed since the mark was made: %v, and %v are held", err, c.keys(0))
	}
}

// Where what must be durable first cannot be made so, the second step is not done.
func TestFirstStepIsDurable(t *testing.T) {
	ctx := t.Context()
	client := idOf(8)
	for name, step := range map[string]struct {
		control bool // the commit to the control namespace fails, and not the state
		act     func(c *crew) error
		done    func(c *crew) any // another value once the second step is done
	}{
		"a pledge": {
			false,
			func(c *crew) error { return c.ns[0].Sets()[0].gc.Pledge(ctx) },
			func(c *crew) any {
				r, _ := c.ns[0].Control.Get(c.ns[0].Sets()[0].pledgeKey()) // the first one, else
				return r.Version
			},
		},
		"what is imported with a date": {
			false,
			func(c *crew) error {
				_, err := importDated(c.ns[0], Item{Key: []byte("a"), Time: c.machines[0].clock.Add(-time.Millisecond)})
				return err
			},
			func(c *crew) any { return len(c.keys(0)) },
		},
		"what a member without pledges gives": {
			false,
			func(c *crew) error {
				r := signedBy(8, c.ns[0], dbadapter.Record{Key: []byte("a"), Version: dbadapter.Version{
					Clock: dbadapter.TimestampAt(c.machines[0].clock), Writer: writerOf(8), Incarnation: 1,
				}})
				_, err := c.ns[0].Sets()[0].Admit(ctx, client, 0, noTerm, []dbadapter.Hashed{must(dbadapter.Hash(c.ns[0].Sets()[0].Keys.Hasher, r))})()
				return err
			},
			func(c *crew) any { return len(c.keys(0)) },
		},
		"the use of a ticket": {
			false,
			func(c *crew) error {
				token := must(membership.ParseTicket(c.ticket)).Token
				return c.ns[0].Redeem(ctx, idOf(9), token[:])
			},
			func(c *crew) any { return c.ns[0].Admits(idOf(9)) },
		},
		"a statement": {
			true,
			func(c *crew) error { return setRole(c.ns[0], idOf(9), RoleRead) },
			func(c *crew) any { return c.ns[0].Members().Digest() },
		},
		"what a member says of itself": {
			true,
			func(c *crew) error { return c.ns[0].Announce(ctx, [][]byte{{9}}) },
			func(c *crew) any { return c.ns[0].pledges(c.machines[0].ID) },
		},
		"the recovery before a client's word is overwritten": {
			false,
			func(c *crew) error { return c.ns[0].Announce(ctx, [][]byte{{9}}) },
			func(c *crew) any {
				_, err := c.ns[0].Control.Get(membership.Key(membership.KindAddresses, c.machines[0].ID))
				return err == nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, 2)
			cl := joinAsClient(t, 8, c.machines[0], invite(c.ns[0], RoleWrite))
			cl.tellsNoPledges(c.machines[0])
			c.ticket = invite(c.ns[0], RoleWrite)
			c.put(0, "k", "1")
			c.round()
			c.round()
			c.del(0, "k")
			if name == "what a member says of itself" || strings.HasPrefix(name, "the recovery") {
				none := map[ID]bool{c.machines[0].ID: true}
				c.ns[0].unpledged.Store(&none)
			}
			editMark(c.ns[0].Sets()[0], func(s *watermark.State) { s.Holds = nil }) // of what the client may have given before
			before, m := step.done(c), c.machines[0]
			if step.control {
				m.applyControl = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) { return nil, errDisk }
			} else {
				m.save = func(*State) error { return errDisk }
			}
			if err := step.act(c); !errors.Is(err, errDisk) || step.done(c) != before {
				t.Errorf("without the first step: %v, and %v is %v", err, before, step.done(c))
			}
			m.applyControl, m.save = nil, nil
			if err := step.act(c); err != nil || step.done(c) == before {
				t.Errorf("with it: %v, and it is still %v", err, before)
			}
		})
	}
}

// An admin whose term is over, and that the inviter is not above, gets no role by a ticket from
// before its end. The inviter cannot write that end down.
func TestTicketFromBeforeTheTermOfAnEqual(t *testing.T) {
	for _, role := range []Role{RoleRead, RoleWrite, RoleAdmin} {
		for name, late := range map[string]dbadapter.Timestamp{"before it": 0, "at it": 1, "after it": 2} {
			c := newCrew(t, 1)
			c.join(1, RoleAdmin)
			c.join(2, RoleAdmin)
			c.round()
			b, inviter := c.machines[1].ID, c.ns[2]
			succeeds(t, c.ns[0].SetRole(t.Context(), b, RoleAdmin, c.machines[0].clock.Add(time.Minute), false))
			c.round()
			c.round()
			held, _ := inviter.Members().Member(b)
			ticket := must(membership.ParseTicket(invite(inviter, role)))
			if late > 0 {
				inviter = c.machines[2].reopened(inviter, func(s *State) { s.Invites[0].Issued = held.Expires + late - 1 })
			}
			for at, member := range map[time.Duration]bool{0: true, time.Millisecond: false} { // the last instant counts
				for _, m := range c.machines {
					m.clock = held.Expires.Time().Add(at)
				}
				if inviter.Admits(b) != member {
					t.Errorf("a role admits its holder %v after its end", at)
				}
			}
			c.machines[2].clock = held.Expires.Time().Add(time.Minute)
			err := inviter.Redeem(t.Context(), b, ticket.Token[:])
			// No ticket makes less of an admin that the inviter is not above.
			if old := late < 2; errors.Is(err, membership.ErrTicketOld) != old || inviter.Admits(b) != (!old && role == RoleAdmin) {
				t.Errorf("a ticket to %v from %s: %v, and it is a member: %v", role, name, err, inviter.Admits(b))
			}
		}
	}
}

// The last instant at which a ticket is good: its second is rounded up.
func TestTicketAtItsBounds(t *testing.T) {
	m, ns := newAlone()
	begun := m.clock
	for seed, want := range map[int]error{2: membership.ErrTicketExpired, 3: nil} {
		ticket := must(membership.ParseTicket(must(ns.Invite(membership.InviteOptions{Role: RoleRead, Expires: time.Hour}, [][]byte{{1}}))))
		m.clock = begun.Add(time.Hour + time.Second - time.Duration(seed-2)*time.Millisecond)
		if err := ns.Redeem(t.Context(), idOf(seed), ticket.Token[:]); !errors.Is(err, want) || ns.Admits(idOf(seed)) != (want == nil) {
			t.Errorf("%v before its end: %v, want %v", ticket.Expires.Sub(m.clock), err, want)
		}
		m.clock = begun
	}
}
