package node

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/gc"
	"github.com/syncd-io/syncd/internal/membership"
	"github.com/syncd-io/syncd/internal/watermark"
)

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
				r, _ := c.ns[0].Control.get(c.ns[0].Sets()[0].pledgeKey()) // the first one, else
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
				_, err := c.ns[0].Control.get(membership.Key(membership.KindAddresses, c.machines[0].ID))
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
