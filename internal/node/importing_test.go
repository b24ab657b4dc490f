package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/internal/watermark"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// importAll imports items as a driver does: the writes of a batch are made before the
// batch in front of it is committed, unless it follows that.
func importAll(ns *Namespace, items []Item) (*Import, error) {
	im := ns.Sets()[0].Import()
	defer im.Hold()()
	var last *ImportBatch
	var made []dbadapter.Write
	commit := func() (err error) {
		if last == nil {
			return nil
		}
		var outcomes []dbadapter.Outcome
		if len(made) > 0 {
			outcomes, err = ns.Sets()[0].Store.Apply(context.Background(), made)
		}
		if err == nil {
			last.Judge(outcomes)
		}
		last = nil
		return err
	}
	flush := func() error {
		b := im.Cut()
		if last != nil && b.Follows(last) {
			if err := commit(); err != nil {
				return err
			}
		}
		writes, err := b.Writes()
		if err != nil {
			return err
		}
		err = commit()
		last, made = b, writes
		return err
	}
	for i := range items {
		if err := im.Check(&items[i]); err != nil {
			return im, err
		}
		for !im.Add(&items[i]) {
			if err := flush(); err != nil {
				return im, err
			}
		}
	}
	if err := flush(); err != nil {
		return im, err
	}
	return im, commit()
}

// twin is an import into a map, one item after the other.
type twin struct {
	held   map[string]dbadapter.Record
	clock  dbadapter.Timestamp
	result ImportResult
}

func (tw *twin) add(now time.Time, item Item) {
	r := dbadapter.Record{Key: item.Key, Value: item.Value, Deleted: item.Deleted}
	held, ok := tw.held[string(item.Key)]
	tw.result.Items++
	if !item.Expires.IsZero() {
		if !item.Expires.Truncate(time.Millisecond).After(now) {
			tw.result.Expired++
			return
		}
		r.Expires = dbadapter.TimestampAt(item.Expires)
	}
	if item.Time.IsZero() {
		if ok && held.SameContent(&r) || !ok && item.Deleted {
			tw.result.Unchanged++
			return
		}
		tw.clock = max(tw.clock+1, dbadapter.TimestampAt(now))
		r.Version = dbadapter.Version{Clock: tw.clock, Writer: writerOf(1), Incarnation: 1}
	} else {
		r.Version.Clock = dbadapter.TimestampAt(item.Time)
		tw.clock = max(tw.clock, r.Version.Clock)
	}
	switch {
	case !ok || r.Compare(&held) > 0:
		tw.result.Written++
		tw.held[string(item.Key)] = r
	case held.SameContent(&r):
		tw.result.Unchanged++
	default:
		tw.result.Stale++
	}
}

// Whatever is imported, dated or not, new or known, deleted or not: the counts
// and the records are those of the map.
func TestImportAgainstTwin(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m, ns := newNotes(Policy{Unsigned: seed%2 == 0})
		m.clock = m.clock.Add(time.Second) // later than the list of members
		tw := &twin{held: map[string]dbadapter.Record{}}
		var total ImportResult
		for range 3 {
			var items []Item
			for range rng.IntN(40) {
				item := Item{Key: fmt.Append(nil, rng.IntN(8)), Value: fmt.Append(nil, rng.IntN(3))}
				switch rng.IntN(4) {
				case 0:
					item.Deleted, item.Value = true, nil
				case 1:
					item.Expires = m.clock.Add(time.Duration(rng.IntN(3)-1)*time.Second + time.Duration(rng.IntN(2)))
				}
				if rng.IntN(2) == 0 { // some seconds around now, with sub-milliseconds to be cut
					item.Time = m.clock.Add(time.Duration(rng.IntN(7)-3)*time.Second + time.Duration(rng.IntN(2)))
				}
				items = append(items, item)
				tw.add(m.clock, item)
			}
			im := must(importAll(ns, items))
			total.Items += im.Result.Items
			total.Written += im.Result.Written
			total.Unchanged += im.Result.Unchanged
			total.Stale += im.Result.Stale
			total.Expired += im.Result.Expired
			m.clock = m.clock.Add(time.Duration(rng.IntN(3)) * time.Second)
		}
		if total != tw.result || total.Written+total.Unchanged+total.Stale+total.Expired != total.Items {
			t.Fatalf("seed %d: counted %+v, the twin %+v", seed, total, tw.result)
		}
		got := records(ns)
		if len(got) != len(tw.held) {
			t.Fatalf("seed %d: %d records, the twin has %d", seed, len(got), len(tw.held))
		}
		for _, r := range got {
			want := tw.held[string(r.Key)]
			if r.Version.Clock != want.Version.Clock || r.Version.Writer != want.Version.Writer || !r.SameContent(&want) {
				t.Fatalf("seed %d: held %+v, the twin has %+v", seed, r, want)
			}
		}
	}
}

// Two sites that import the same dated items hold the same set, whichever of them signed
// it, and a sync of the two finds nothing.
func TestImportAtTwoSites(t *testing.T) {
	a, b, sa, sb := newPair(RoleWrite)
	items := []Item{{Key: []byte("k"), Value: []byte("v"), Time: noon.Add(-time.Hour)}, {Key: []byte("l"), Deleted: true, Time: noon}}
	must(importAll(sa, items))
	must(importAll(sb, items))
	if ra, rb := must(get(sa, "k")), must(get(sb, "k")); ra.Version != rb.Version || ra.Signer == rb.Signer {
		t.Errorf("held %+v and %+v", ra, rb)
	}
	if report, _, err := b.sync(sb, a, syncing.Ask{}); err != nil || report.Method != wire.MethodSame {
		t.Errorf("%+v, %v", report, err)
	}
}

// A time of any year is understood: one before the epoch has passed.
func TestImportOfAncientExpiries(t *testing.T) {
	_, ns := newNotes(Policy{})
	var items []Item
	for _, year := range []int{-5000, 0, 1, 1677, 1960, 1970, 2019} {
		items = append(items, Item{Key: fmt.Append(nil, year), Expires: time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC)})
	}
	im := must(importAll(ns, items))
	if im.Result.Expired != int64(len(items)) || len(records(ns)) != 0 {
		t.Errorf("%+v; held %+v", im.Result, records(ns))
	}
}

func TestImportBatches(t *testing.T) {
	_, ns := newNotes(Policy{Unsigned: true})
	im := ns.Sets()[0].Import()
	item := func(i, size int) *Item { return &Item{Key: fmt.Append(nil, i), Value: make([]byte, size)} }
	fill := func() (n int) {
		for im.Add(item(n, 0)) {
			n++
		}
		return n
	}
	if n := fill(); n != importMost || n != im.Cut().Items() {
		t.Errorf("a batch has %d items", n)
	}
	must(put(ns, "a single write", ""))
	if n := fill(); n != importMost || n != im.Cut().Items() {
		t.Errorf("a batch that was begun before a single write has %d items", n)
	}
	if n := fill(); n != importLeast || n != im.Cut().Items() {
		t.Errorf("the next one has %d", n)
	}
	im = ns.Sets()[0].Import()
	im.Add(item(0, 1<<19))
	if im.Add(item(1, 1<<19-3)) || !im.Add(item(1, 1<<19-4)) || im.Add(item(2, 0)) {
		t.Error("a batch of 1 MiB, keys counted twice, is full, a smaller one is not")
	}
	im = ns.Sets()[0].Import()
	for range 3 {
		if !im.Add(item(0, 0)) || !im.Add(item(1, 0)) {
			t.Error("a batch takes no key again")
		}
	}
	if writes := must(im.Cut().Writes()); len(writes) != 2 {
		t.Errorf("a batch of two keys has %d writes", len(writes))
	}
	im.Cut()
	// It keeps a copy.
	reused := &Item{Key: []byte("reused"), Value: []byte("1"), Time: noon, Deleted: false}
	im.Add(reused)
	reused.Key[0], reused.Value[0] = 'X', '2'
	b := im.Cut()
	writes := must(b.Writes())
	if r := writes[0].Record; string(r.Key) != "reused" || string(r.Value) != "1" || r.Version != dated(0) {
		t.Errorf("the batch has %+v", r)
	}
	b.Judge(must(ns.Sets()[0].Store.Apply(t.Context(), writes)))
	if !im.Add(item(0, 1<<20)) {
		t.Error("the next batch begins with what the last one had")
	}
}

func TestImportChecksItems(t *testing.T) {
	_, ns := newNotes(Policy{MaxSkew: time.Minute})
	im := ns.Sets()[0].Import()
	for name, c := range map[string]struct {
		item Item
		want error
	}{
		"good":            {Item{Key: []byte("k")}, nil},
		"dated":           {Item{Key: []byte("k"), Time: noon.Add(time.Minute)}, nil},
		"no key":          {Item{}, dbadapter.ErrLimit},
		"no key, dated":   {Item{Time: noon}, dbadapter.ErrLimit},
		"a large value":   {Item{Key: []byte("k"), Value: make([]byte, dbadapter.MaxValue+1)}, dbadapter.ErrLimit},
		"a grave's value": {Item{Key: []byte("k"), Value: []byte("v"), Deleted: true}, dbadapter.ErrLimit},
		"a long key":      {Item{Key: []byte(strings.Repeat("k", 2000)), Time: noon}, dbadapter.ErrLimit},
		"in the future":   {Item{Key: []byte("k"), Time: noon.Add(time.Minute + time.Millisecond)}, ErrFutureVersion},
		"expires":         {Item{Key: []byte("k"), Expires: noon.Add(MaxTTL)}, nil},
		"expires late":    {Item{Key: []byte("k"), Expires: noon.Add(MaxTTL + time.Millisecond)}, dbadapter.ErrLimit},
		"expires in 9999": {Item{Key: []byte("k"), Expires: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, dbadapter.ErrLimit},
		"expired in 1":    {Item{Key: []byte("k"), Expires: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, nil},
		"a grave expires": {Item{Key: []byte("k"), Deleted: true, Expires: noon.Add(time.Hour)}, dbadapter.ErrLimit},
		"before 2020":     {Item{Key: []byte("k"), Time: hlc.Epoch.Add(-1)}, ErrFutureVersion},
	} {
		if err := im.Check(&c.item); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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
		arrival.way, arrival.Earliest = byRoute, tc.earliest
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
		arrival.way, arrival.Newer = byRoute, []bool{tc.newer}
		if err := set.keepPromise(arrival); err != nil || arrival.refused[0] != nil != tc.refused || len(set.gc.State().Holds) > 0 != tc.holds {
			t.Errorf("%s: %v, refused %v, the promise is held below %v", name, err, arrival.refused[0], set.gc.State().Holds)
		}
	}
}
