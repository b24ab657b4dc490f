package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/peer/status"
)

// aside are the keys of what a node lists as set aside, of deletions with a minus.
func (c *crew) aside(i int) (keys []string) {
	for k := range c.ns[i].Sets()[0].Store.Kept(context.Background()) {
		key := string(k.Record.Key)
		if k.Record.Deleted {
			key = "-" + key
		}
		if k.Why == dbadapter.KeptSetAside {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// A node that hears that it had lost the right to write sets aside at once what it has written and no sync
// has proved another member to hold, however it hears that, and whether or not it has the right again. What
// another member has written meanwhile stands, and nothing that was acknowledged is gone without a trace.
func TestLostRightSetsAside(t *testing.T) {
	const loser = 2
	control := func(c *crew) {
		_, _, _ = c.machines[loser].converse(c.ns[loser], c.machines[0], syncing.Ask{Control: true})
	}
	remove := func(c *crew) error { return c.ns[0].Remove(t.Context(), c.machines[loser].ID, false) }
	role := func(role Role) func(c *crew) error {
		return func(c *crew) error { return setRole(c.ns[0], c.machines[loser].ID, role) }
	}
	none := func(*crew) error { return nil }
	for name, test := range map[string]struct {
		take, give func(c *crew) error // what the admin states before it hears
		hear       func(c *crew)
		back       bool // it may write again
	}{
		"removed, and shown so": {take: remove, give: none, hear: func(c *crew) {
			_ = c.turn(loser, 0)
			_, _, _ = c.machines[loser].sync(c.ns[loser], c.machines[0], syncing.Ask{})
		}},
		"removed, and joins again":              {take: remove, give: none, hear: func(c *crew) { must(c.machines[loser].join(c.machines[0], invite(c.ns[0], RoleWrite))) }, back: true},
		"removed, and a member again meanwhile": {take: remove, give: role(RoleWrite), hear: control, back: true},
		"removed, and a reader meanwhile":       {take: remove, give: role(RoleRead), hear: control},
		"made a reader":                         {take: role(RoleRead), give: none, hear: control},
		"made a reader, and the state is not saved": {take: role(RoleRead), give: none, hear: func(c *crew) {
			c.machines[loser].save = func(*State) error { return errDisk }
			control(c)
			c.machines[loser].save = nil
			must(0, c.ns[loser].renounce(t.Context())) // as the next sync does first
		}},
		"made a reader, and a writer again": {take: role(RoleRead), give: role(RoleAdmin), hear: control, back: true},
		"its term is over": {take: func(c *crew) error {
			return c.ns[0].SetRole(t.Context(), c.machines[loser].ID, RoleWrite, c.machines[0].clock.Add(time.Second), false)
		}, give: func(c *crew) error { c.pass(2 * time.Second); return c.ns[0].Expire(t.Context()) }, hear: func(c *crew) { _, _, _ = c.machines[loser].sync(c.ns[loser], c.machines[0], syncing.Ask{}) }},
		"steps down": {take: func(c *crew) error {
			err := setRole(c.ns[0], c.machines[loser].ID, RoleAdmin)
			control(c)
			return errors.Join(err, c.ns[loser].SetRole(t.Context(), c.machines[loser].ID, RoleRead, time.Time{}, true))
		}, give: none, hear: control},
		"leaves": {take: func(c *crew) error { return c.ns[loser].Remove(t.Context(), c.machines[loser].ID, true) }, give: none, hear: func(*crew) {}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, 3)
			c.put(loser, "proved", "1")
			c.put(loser, "over", "proved")
			c.put(1, "gone", "1")
			c.round()
			c.put(loser, "alone", "of the loser")
			c.put(loser, "met", "of the loser")
			c.put(loser, "over", "of the loser")
			c.del(loser, "gone")
			if r := must(importDated(c.ns[loser], Item{Key: []byte("dated"), Value: []byte("1"), Time: c.machines[0].clock.Add(-time.Second)})); r.Written != 1 || r.Refused != 0 {
				t.Fatalf("the import: %+v", r)
			}
			c.pass(time.Second)
			succeeds(t, test.take(c))
			c.pass(time.Second)
			c.put(0, "met", "later")
			succeeds(t, test.give(c))
			c.pass(time.Second)
			test.hear(c)
			c.want(loser, "proved")
			want := []string{"-gone", "alone", "dated", "met", "over"}
			if got := c.aside(loser); !slices.Equal(got, want) {
				t.Errorf("it lists %q, want %q", got, want)
			}
			if _, err := put(c.ns[loser], "new", "1"); test.back != (err == nil) {
				t.Errorf("it writes: %v", err)
			}
			all := []int{0, 1}
			if test.back {
				all = append(all, loser)
			}
			for range 3 {
				c.round(all...)
			}
			for _, i := range all {
				for key, want := range map[string]string{"met": "later", "over": "proved", "gone": "1", "proved": "1"} {
					if r := must(get(c.ns[i], key)); string(r.Value) != want || r.Deleted {
						t.Errorf("%d holds %q under %s", i, r.Value, key)
					}
				}
				if _, err := get(c.ns[i], "alone"); !errors.Is(err, dbadapter.ErrNotFound) {
					t.Errorf("%d: what was set aside is there: %v", i, err)
				}
			}
			if got := c.aside(loser); !slices.Equal(got, want) {
				t.Errorf("later it lists %q, want %q", got, want)
			}
		})
	}
}

// What a member without pledges takes, or says of itself, changes nothing of what is proved: it may drop all
// that it has. A record of the node's own that comes late, such as an adoption, is not proved.
func TestUnpledgedProvesNothing(t *testing.T) {
	c := newCrew(t, 2)
	set := c.ns[0].Sets()[0]
	cl := joinAsClient(t, 8, c.machines[0], invite(c.ns[0], RoleWrite))
	cl.tellsNoPledges(c.machines[0])
	c.round()
	cl.list = c.ns[0].Members().Digest()
	for _, step := range []struct {
		name string
		act  func()
		want int // of this node's records are not proved
	}{
		{"a sync with it", func() {
			c.put(0, "a", "1")
			cl.sync(&cl.notes, c.machines[0])
			cl.sync(&cl.notes, c.machines[0])
		}, 1},
		{"a sync with a member that pledges", func() { must(0, c.turn(0, 1)) }, 0},
		{"it says that it pledges, and that it does not", func() {
			cl.write(&cl.control, c.machines[0].clock, "a"+string(cl.id()), must(cbor.Marshal(map[int]any{1: []any{}})))
			cl.sync(&cl.control, c.machines[0])
			cl.tellsNoPledges(c.machines[0])
		}, 0},
		{"it gives its own records", func() {
			cl.write(&cl.notes, c.machines[0].clock.Add(-time.Second), "c", []byte("1"))
			if refused := cl.sync(&cl.notes, c.machines[0]); len(refused) > 0 {
				t.Errorf("%v were refused", refused)
			}
		}, 0},
		{"a record of this node's own that comes late", func() {
			r := signedBy(1, c.ns[0], dbadapter.Record{Key: []byte("b"), Version: dbadapter.Version{Clock: set.gc.State().Proved, Writer: writerOf(1), Incarnation: 1}})
			must(set.Admit(t.Context(), cl.id(), 0, noTerm, []dbadapter.Hashed{must(dbadapter.Hash(set.Keys.Hasher, r))})())
		}, 1},
	} {
		if step.act(); must(set.unproved(t.Context())) != step.want {
			t.Errorf("%s: %d records are not proved, want %d", step.name, must(set.unproved(t.Context())), step.want)
		}
	}
}

// What could not be set aside yet is not dropped.
func TestUnrenouncedIsNotDropped(t *testing.T) {
	c := newCrew(t, 3)
	c.round()
	c.put(2, "alone", "1")
	c.pass(time.Second)
	full := errors.New("no room")
	c.machines[2].apply = func(dbadapter.Namespace, []dbadapter.Write) ([]dbadapter.Outcome, error) { return nil, full }
	_ = c.ns[2].Remove(t.Context(), c.machines[2].ID, true)
	if err := c.ns[2].MayDrop(t.Context()); !errors.Is(err, ErrHeldHere) || !errors.Is(err, full) {
		t.Errorf("it may be dropped: %v", err)
	}
	c.machines[2].apply = nil
	if err := c.ns[2].MayDrop(t.Context()); !errors.Is(err, ErrHeldHere) || !slices.Equal(c.aside(2), []string{"alone"}) {
		t.Errorf("with room: %v; it lists %q", err, c.aside(2))
	}
}

// A member that syncs and never pledges, an old or a hostile one, holds collection
// back: it is named, nothing is collected, and the others pledge no more than what
// waits gives them reason to.
func TestMemberThatNeverPledges(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "deleted", "1")
	c.round()
	rounds := func(n int) {
		for range n {
			for i := range c.ns {
				for j := range c.ns {
					if i == j {
						continue
					}
					c.pass(3 * time.Second)
					succeeds(t, c.turn(i, j))
				}
				if i != 2 {
					succeeds(t, c.machines[i].Tend(t.Context()))
				}
			}
		}
	}
	serials := func() (sum uint64) {
		for _, ns := range c.ns[:2] {
			sum += ns.Sets()[0].gc.State().Serial
		}
		return sum
	}
	// Deletions that go on make the others pledge in turn with them.
	for i := range 5 {
		c.del(0, "deleted")
		rounds(3)
		if i < 4 {
			c.put(0, "deleted", "1")
		}
	}
	before := serials()
	rounds(20)
	if more := serials() - before; more > 0 {
		t.Errorf("%d pledges of others while nothing has changed, after %d", more, before)
	}
	for i, ns := range c.ns[:2] {
		held := ns.Sets()[0].Collection()
		if held.Waiting == 0 || !held.Floor.IsZero() || len(held.Holding) != 1 || held.Holding[0].Member != status.ID(c.machines[2].ID) ||
			!strings.Contains(held.Holding[0].Reason, "has not said what it holds") || held.Holding[0].Synced.IsZero() {
			t.Errorf("%d: %+v", i, held)
		}
	}
	list, _ := c.ns[2].Sets()[0].waitedFor(c.ns[2].Members())
	// A pledge under another list, or beyond its own time, does not count.
	for what, p := range map[string]watermark.Pledge{
		"another list":  {List: [16]byte{1}, Vector: make([]dbadapter.Timestamp, 3), Serial: 1},
		"a short list":  {List: list, Vector: make([]dbadapter.Timestamp, 1), Serial: 2},
		"of the future": {List: list, Vector: make([]dbadapter.Timestamp, 3), Promised: ^dbadapter.Timestamp(0), Serial: 3},
	} {
		value := must(p.Encode())
		succeeds(t, say(c.ns[2], c.ns[2].Sets()[0].pledgeKey(), value))
		rounds(2)
		if held := c.ns[0].Sets()[0].Collection(); len(held.Holding) != 1 || held.Holding[0].Member != status.ID(c.machines[2].ID) || !held.Floor.IsZero() {
			t.Errorf("%s: %+v", what, held)
		}
	}
}
