package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/hlc"
	"github.com/syncd-io/syncd/internal/syncing"
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
