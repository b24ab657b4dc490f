package node

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/watermark"
)

// A dated import waits for the members; one that would come too late for its date is
// refused, and nothing of it is written.
func TestDatedImportIsHeld(t *testing.T) {
	c := newCrew(t, 2)
	old := noon.Add(-time.Hour)
	first := must(importDated(c.ns[0], Item{Key: []byte("a"), Time: old, Deleted: true}))
	if first.Refused != 0 || !first.Earliest.Equal(old) {
		t.Fatalf("%+v", first)
	}
	if p := promise(c.ns[0].Sets()[0], dbadapter.TimestampAt(noon.Add(time.Hour))); p >= dbadapter.TimestampAt(old) {
		t.Errorf("the promise is %s, the tombstone of %s is here alone", p.Time(), old)
	}
	c.quiet()
	second := must(importDated(c.ns[0], Item{Key: []byte("b"), Value: []byte("1"), Time: old}))
	if second.Refused != 1 || second.Written != 0 || second.Items != 1 {
		t.Fatalf("%+v", second)
	}
	again := must(importDated(c.ns[0], Item{Key: []byte("b"), Value: []byte("1"), Time: second.From.Add(-time.Millisecond)}, Item{Key: []byte("c"), Value: []byte("1"), Time: second.From}))
	if again.Refused != 1 || again.Written != 1 || !again.Earliest.Equal(second.From) {
		t.Errorf("a millisecond before %s, and then: %+v", second.From, again)
	}
	c.round()
	c.want(1, "c")
}

// What becomes of an item whose date is not taken, by what its key holds.
func TestImportOfDatesThatAreNotTaken(t *testing.T) {
	old := noon.Add(-time.Hour)
	for name, tc := range map[string]struct {
		held *Item // with a date, unless the time is zero
		item Item
		// want is what is counted, and asNew what is by Import.AsNew.
		want, asNew ImportResult
	}{
		"nothing":                      {nil, Item{}, ImportResult{Refused: 1}, ImportResult{Written: 1, AsNew: 1}},
		"what is earlier":              {&Item{Value: []byte("2"), Time: old.Add(-time.Hour)}, Item{}, ImportResult{Refused: 1}, ImportResult{Written: 1, AsNew: 1}},
		"what is later":                {&Item{Value: []byte("2"), Time: old.Add(time.Hour)}, Item{}, ImportResult{Stale: 1}, ImportResult{Stale: 1}},
		"a put":                        {&Item{Value: []byte("2")}, Item{}, ImportResult{Stale: 1}, ImportResult{Stale: 1}},
		"a later deletion":             {&Item{Deleted: true, Time: old.Add(time.Hour)}, Item{}, ImportResult{Stale: 1}, ImportResult{Stale: 1}},
		"the very record":              {&Item{Value: []byte("1"), Time: old}, Item{}, ImportResult{Unchanged: 1}, ImportResult{Unchanged: 1}},
		"the same value, earlier":      {&Item{Value: []byte("1"), Time: old.Add(-time.Hour)}, Item{}, ImportResult{Unchanged: 1}, ImportResult{Unchanged: 1}},
		"the same value, put":          {&Item{Value: []byte("1")}, Item{}, ImportResult{Unchanged: 1}, ImportResult{Unchanged: 1}},
		"nothing, deleted":             {nil, Item{Deleted: true}, ImportResult{Unchanged: 1}, ImportResult{Unchanged: 1}},
		"what is earlier, deleted":     {&Item{Value: []byte("2"), Time: old.Add(-time.Hour)}, Item{Deleted: true}, ImportResult{Refused: 1}, ImportResult{Written: 1, AsNew: 1}},
		"nothing, and it has expired":  {nil, Item{Expires: noon}, ImportResult{Expired: 1}, ImportResult{Expired: 1}},
		"nothing, and it will expire":  {nil, Item{Expires: noon.Add(24 * time.Hour)}, ImportResult{Refused: 1}, ImportResult{Written: 1, AsNew: 1}},
		"a put, of a date that counts": {&Item{Value: []byte("2")}, Item{Time: noon.Add(time.Hour)}, ImportResult{Written: 1}, ImportResult{Written: 1}},
	} {
		for _, asNew := range []bool{false, true} {
			m, ns := newNotes(Policy{})
			if tc.held != nil {
				held := *tc.held
				held.Key = []byte("k")
				if got := must(importDated(ns, held)); got.Written != 1 && !held.Deleted {
					t.Fatalf("%s: the first: %+v", name, got)
				}
			}
			before := records(ns)
			err := ns.Sets()[0].gc.Update(func(w *watermark.Watermark) bool {
				return w.TakeOver(dbadapter.TimestampAt(noon.Add(time.Minute)))
			})
			if err != nil {
				t.Fatal(err)
			}
			m.clock = m.clock.Add(2 * time.Hour)
			item := tc.item
			item.Key = []byte("k")
			if item.Time.IsZero() {
				item.Time = old
			}
			if !item.Deleted {
				item.Value = []byte("1")
			}
			var refused []Item
			got := must(importWith(ns, func(im *Import) {
				im.AsNew = asNew
				im.Refused = func(at int64, item *Item) {
					if at != int64(len(refused)) {
						t.Errorf("%s: item %d is refused", name, at)
					}
					refused = append(refused, *item)
				}
			}, item))
			want := tc.want
			if asNew {
				want = tc.asNew
			}
			want.Items, want.Earliest = 1, got.Earliest
			if want.Refused > 0 {
				want.From = noon.Add(time.Minute + time.Millisecond)
			}
			if got != want || len(refused) != int(want.Refused) {
				t.Errorf("over %s, as new %v: %+v and %d told, want %+v", name, asNew, got, len(refused), want)
			}
			after := records(ns)
			switch {
			case want.Written == 0:
				if !reflect.DeepEqual(before, after) {
					t.Errorf("over %s, as new %v: it held %+v, and now %+v", name, asNew, before, after)
				}
			case len(after) != 1 || string(after[0].Value) != string(item.Value) || after[0].Deleted != item.Deleted || (after[0].Version.Writer != 0) != (want.AsNew > 0):
				t.Errorf("over %s, as new %v: it holds %+v", name, asNew, after)
			}
		}
	}
}

// While an import runs, and it has taken a date, its node promises nothing that reaches that date.
func TestImportHoldsThePromise(t *testing.T) {
	c := newCrew(t, 2)
	promise := func() dbadapter.Timestamp {
		return promise(c.ns[0].Sets()[0], dbadapter.TimestampAt(noon.Add(24*time.Hour)))
	}
	first := noon.Add(-time.Hour)
	im := c.ns[0].Sets()[0].Import()
	step := func(item Item) {
		t.Helper()
		im.Add(&item)
		succeeds(t, importBatch(c.ns[0], im))
	}
	before := promise()
	step(Item{Key: []byte("undated"), Value: []byte("1")})
	if promise() != before {
		t.Error("an import without a date holds the promise")
	}
	step(Item{Key: []byte("a"), Value: []byte("1"), Time: first})
	c.put(1, "gone", "1")
	c.round()
	c.del(1, "gone")
	for range 6 { // all members hold it
		c.round()
	}
	if p := promise(); p != dbadapter.TimestampAt(first)-1 {
		t.Errorf("the promise is %s, the import has taken %s", p.Time(), first)
	}
	step(Item{Key: []byte("b"), Value: []byte("1"), Time: first.Add(time.Minute)})
	step(Item{Key: []byte("c"), Value: []byte("1"), Time: first})
	if im.Result.Refused != 0 || im.Result.Written != 4 || !im.Result.Earliest.Equal(first) {
		t.Errorf("%+v", im.Result)
	}
	im.End()
	c.quiet() // the tombstone is collected
	if got := must(importDated(c.ns[0], Item{Key: []byte("d"), Value: []byte("1"), Time: first})); got.Refused != 1 {
		t.Errorf("the import has ended: %+v", got)
	}
}

// A node that was removed, and got a role again, imports a record whose date lies
// between: the members would decline that date, so it is refused. A date
// before the removal keeps, since the first role covers it.
func TestDatedImportBeforeTheRole(t *testing.T) {
	c := newCrew(t, 2)
	c.pass(time.Minute)
	succeeds(t, c.ns[0].Remove(context.Background(), c.machines[1].ID, false))
	c.pass(time.Minute)
	between := c.machines[1].clock
	c.pass(time.Minute)
	succeeds(t, c.ns[0].SetRole(context.Background(), c.machines[1].ID, RoleWrite, time.Time{}, false))
	c.round()
	got := must(importDated(c.ns[1],
		Item{Key: []byte("before"), Value: []byte("1"), Time: noon},
		Item{Key: []byte("between"), Value: []byte("2"), Time: between}))
	if got.Written != 1 || got.Refused != 1 || !got.From.After(between) {
		t.Fatalf("%+v", got)
	}
	c.round()
	for i := range 2 {
		c.want(i, "before")
	}
}

func importDated(ns *Namespace, items ...Item) (ImportResult, error) {
	return importWith(ns, func(*Import) {}, items...)
}

// importWith imports items in one batch.
func importWith(ns *Namespace, with func(*Import), items ...Item) (ImportResult, error) {
	im := ns.Sets()[0].Import()
	defer im.End()
	with(im)
	for i := range items {
		im.Add(&items[i])
	}
	err := importBatch(ns, im)
	return im.Result, err
}

// importBatch commits what was added to an import.
func importBatch(ns *Namespace, im *Import) error {
	defer im.Hold()()
	b := im.Cut()
	writes, err := b.Writes()
	if err != nil {
		return err
	}
	outcomes, err := ns.Sets()[0].Store.Apply(context.Background(), writes)
	if err == nil {
		b.Judge(outcomes)
	}
	return err
}

// An import that goes on with another one holds the promise below the earliest date of both, also durably,
// as far as it has not reached that.
func TestImportGoesOn(t *testing.T) {
	ns := newMachine(1).create("notes", Policy{})
	set := ns.Sets()[0]
	for _, c := range []struct{ pledged, earliest, date, want time.Duration }{
		{-3 * time.Hour, -2 * time.Hour, -time.Hour, -2 * time.Hour},
		{-3 * time.Hour, -2 * time.Hour, -2*time.Hour - time.Minute, -2*time.Hour - time.Minute},
		{-2 * time.Hour, -3 * time.Hour, -time.Hour, -time.Hour},
	} {
		editMark(set, func(s *watermark.State) { s.Holds, s.Pledged = nil, dbadapter.TimestampAt(noon.Add(c.pledged)) })
		im := set.Import()
		im.Result.Earliest = noon.Add(c.earliest)
		im.Add(&Item{Key: []byte("k"), Value: fmt.Append(nil, c), Time: noon.Add(c.date)})
		succeeds(t, importBatch(ns, im))
		want := dbadapter.TimestampAt(noon.Add(c.want))
		promise := func() dbadapter.Timestamp { return promise(set, dbadapter.TimestampAt(noon)) }
		holds := set.gc.State().Holds
		editMark(set, func(s *watermark.State) { s.Holds = nil })
		if promise() != want-1 || len(holds) != 1 || holds[0].Clock != want || !im.Result.Earliest.Equal(noon.Add(c.want)) {
			t.Errorf("%+v: the promise is %s and held below %v, and the result is %+v", c, promise().Time(), holds, im.Result)
		}
		if im.End(); promise() < dbadapter.TimestampAt(noon) {
			t.Error("an import that has ended holds the promise")
		}
	}
}

// A host that is asked to hold a record of an import promises nothing that reaches the import's earliest date,
// as far as it has not yet.
func TestRoutedImportHoldsThePromise(t *testing.T) {
	a, b := newMachine(1), newMachine(2)
	ns := a.create("notes", Policy{Unsigned: true})
	must(b.join(a, invite(ns, RoleWrite)))
	set := ns.Sets()[0]
	editMark(set, func(s *watermark.State) { s.Pledged = dbadapter.TimestampAt(noon.Add(-time.Hour)) })
	at := func(d time.Duration) dbadapter.Timestamp { return dbadapter.TimestampAt(noon.Add(d)) }
	for i, tc := range []struct {
		version  dbadapter.Version
		earliest dbadapter.Timestamp
		want     dbadapter.Timestamp
	}{
		{dbadapter.Version{Clock: at(-time.Minute)}, 0, at(-time.Minute)},
		{dbadapter.Version{Clock: at(-time.Minute)}, at(-10 * time.Minute), at(-10 * time.Minute)},
		{dbadapter.Version{Clock: at(-time.Minute)}, at(-2 * time.Hour), at(-time.Hour) + 1},
		{dbadapter.Version{Clock: at(-time.Minute), Writer: writerOf(2), Incarnation: 1}, at(-10 * time.Minute), at(-time.Minute)},
	} {
		editMark(set, func(s *watermark.State) { s.Holds = nil })
		r := must(dbadapter.Hash(set.Keys.Hasher, dbadapter.Record{Key: fmt.Append(nil, i), Version: tc.version}))
		arrival := set.arrived(ns.Members(), b.ID, 0, noon, []dbadapter.Hashed{r})
		arrival.way, arrival.earliest = byRoute, tc.earliest
		if err := set.keepPromise(arrival); err != nil || arrival.refused[0] != nil {
			t.Fatalf("%d: %v, %+v", i, err, arrival.refused[0])
		}
		if holds := set.gc.State().Holds; len(holds) != 1 || holds[0].Clock != tc.want {
			t.Errorf("%d: the promise is held below %+v, want %s", i, holds, tc.want.Time())
		}
	}
}

// What a look before the commit has found to be later than what is held may be held since; and what it has
// not may be gone: what is held is not refused, and what changes something holds the promise.
func TestRoutedRecordsAreLookedUpAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		held, newer, late bool // late: the promise has reached the record
		refused, holds    bool
	}{
		"as it was":               {false, true, false, false, true},
		"as it was, too late":     {false, true, true, true, false},
		"held since, too late":    {true, true, true, false, false},
		"gone since":              {false, false, false, false, true},
		"gone since, too late":    {false, false, true, true, false},
		"as it was, held":         {true, false, false, false, false},
		"as it was, held and old": {true, false, true, false, false},
	} {
		a, b := newMachine(1), newMachine(2)
		ns := a.create("notes", Policy{Unsigned: true})
		must(b.join(a, invite(ns, RoleWrite)))
		set := ns.Sets()[0]
		if tc.held {
			must(importDated(ns, Item{Key: []byte("k"), Value: []byte("1"), Time: noon.Add(-time.Minute)}))
		}
		editMark(set, func(s *watermark.State) {
			if s.Holds, s.Pledged = nil, dbadapter.TimestampAt(noon.Add(-time.Hour)); tc.late {
				s.Pledged = dbadapter.TimestampAt(noon)
			}
		})
		r := must(dbadapter.Hash(set.Keys.Hasher, dbadapter.Record{Key: []byte("k"), Value: []byte("1"), Version: dbadapter.Version{Clock: dbadapter.TimestampAt(noon.Add(-time.Minute))}}))
		arrival := set.arrived(ns.Members(), b.ID, 0, noon, []dbadapter.Hashed{r})
		arrival.way, arrival.newer = byRoute, []bool{tc.newer}
		if err := set.keepPromise(arrival); err != nil || arrival.refused[0] != nil != tc.refused || len(set.gc.State().Holds) > 0 != tc.holds {
			t.Errorf("%s: %v, refused %v, the promise is held below %v", name, err, arrival.refused[0], set.gc.State().Holds)
		}
	}
}
