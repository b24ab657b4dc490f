package check

import (
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// Each promise of placement writer that is broken is found, and what keeps it is not.
func TestWritten(t *testing.T) {
	v := func(clock int) dbadapter.Version {
		return dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: dbadapter.WriterID(clock), Incarnation: 1}
	}
	rec := func(clock int, value string) *dbadapter.Record {
		return &dbadapter.Record{Key: []byte("k"), Value: []byte(value), Version: v(clock)}
	}
	put := func(w *Written, clock int, value string, asked time.Duration) {
		w.Acknowledged(w.Asked("k", false, []byte(value), asked), v(clock), []int{0}, asked+time.Second)
	}
	// restores has a deletion follow a write that it has seen, and then a host write that anew.
	restores := func(w *Written, acknowledged bool, anew int) {
		put(w, 1, "a", 0)
		del := w.Asked("k", true, nil, 2*time.Second)
		w.Made(del, v(3))
		w.Observed(0, &dbadapter.Record{Key: []byte("k"), Deleted: true, Version: v(3), Replaces: []dbadapter.Replaced{{Writer: v(1).Writer, Clock: v(1).Clock}}})
		if acknowledged {
			w.Acknowledged(del, v(3), []int{0}, 3*time.Second)
		}
		w.Observed(0, rec(anew, "a"))
	}
	const read = time.Minute
	at := WrittenRead{Key: "k", Asked: read}
	for name, c := range map[string]struct {
		do   func(w *Written)
		want string // the rule; empty: nothing is found
	}{
		"nothing, surely, of what was acknowledged": {func(w *Written) { put(w, 1, "a", 0); w.Read(at, nil, true, nil, 0) }, "answer"},
		"the same, unsurely":                        {func(w *Written) { put(w, 1, "a", 0); w.Read(at, nil, false, nil, 0) }, ""},
		"of what was just acknowledged":             {func(w *Written) { put(w, 1, "a", read-4*time.Second); w.Read(at, nil, true, nil, 0) }, ""},
		"it may be deleted": {func(w *Written) {
			put(w, 1, "a", 0)
			w.Asked("k", true, nil, time.Second)
			w.Read(at, nil, true, nil, 0)
		}, ""},
		"an older record":  {func(w *Written) { put(w, 1, "a", 0); put(w, 2, "b", 0); w.Read(at, rec(1, "a"), true, nil, 1) }, "answer"},
		"what was made up": {func(w *Written) { w.Read(at, rec(1, "a"), false, nil, 1) }, "intended"},
		"what was lost":    {func(w *Written) { put(w, 1, "a", 0); w.Last(&WrittenFinal{Key: "k", Named: -1}) }, "durable"},
		"an entry that leads nowhere": {func(w *Written) {
			put(w, 1, "a", 0)
			w.Acknowledged(w.Asked("k", true, nil, time.Second), v(1), []int{0}, 2*time.Second)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(1, "")})
		}, "placed"},
		"an entry that a deletion has left which was not acknowledged": {func(w *Written) {
			put(w, 1, "a", 0)
			w.Made(w.Asked("k", true, nil, time.Second), v(2))
			w.Observed(0, &dbadapter.Record{Key: []byte("k"), Deleted: true, Version: v(2), Replaces: []dbadapter.Replaced{{Writer: v(1).Writer, Clock: v(1).Clock}}})
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(1, "")})
		}, ""},
		"an entry that a deletion has left whose tombstone is lost with a node": {func(w *Written) {
			put(w, 1, "a", 0)
			del := w.Asked("k", true, nil, time.Second)
			w.Made(del, v(2))
			w.Observed(0, &dbadapter.Record{Key: []byte("k"), Deleted: true, Version: v(2), Replaces: []dbadapter.Replaced{{Writer: v(1).Writer, Clock: v(1).Clock}}})
			w.Acknowledged(del, v(2), []int{0}, 2*time.Second)
			w.Removed(5)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(1, "")})
		}, ""},
		"a record that a deletion had not seen, behind the entry of a write that has ended": {func(w *Written) {
			put(w, 1, "a", 0)
			w.Acknowledged(w.Asked("k", true, nil, time.Second), v(2), []int{0}, 2*time.Second)
			w.Made(w.Asked("k", false, []byte("b"), time.Second), v(3))
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(3, ""), Records: map[int]*dbadapter.Record{1: rec(1, "a")}})
		}, ""},
		"the same, without such a write": {func(w *Written) {
			put(w, 1, "a", 0)
			w.Acknowledged(w.Asked("k", true, nil, time.Second), v(2), []int{0}, 2*time.Second)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(1, ""), Records: map[int]*dbadapter.Record{1: rec(1, "a")}})
		}, "durable"},
		"a record elsewhere": {func(w *Written) {
			put(w, 1, "a", 0)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(1, ""), Records: map[int]*dbadapter.Record{1: rec(1, "a"), 2: rec(1, "a")}})
		}, "placed"},
		"a first write that lost and is not listed": {func(w *Written) {
			put(w, 1, "a", 0)
			put(w, 2, "b", 0)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(2, ""), Records: map[int]*dbadapter.Record{1: rec(2, "b")}})
		}, "lost"},
		"one that is listed": {func(w *Written) {
			put(w, 1, "a", 0)
			put(w, 2, "b", 0)
			w.Listed(&dbadapter.Kept{Why: dbadapter.KeptConflict, Record: *rec(1, "a")})
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(2, ""), Records: map[int]*dbadapter.Record{1: rec(2, "b")}})
		}, ""},
		"one of two that a node has written at the same time": {func(w *Written) {
			one, two := w.Asked("k", false, []byte("a"), 0), w.Asked("k", false, []byte("b"), 0)
			later := dbadapter.Version{Clock: 2, Writer: v(1).Writer, Incarnation: v(1).Incarnation}
			w.Acknowledged(one, v(1), []int{0}, time.Second)
			w.Acknowledged(two, later, []int{0}, time.Second)
			stands := &dbadapter.Record{Key: []byte("k"), Value: []byte("b"), Version: later}
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: stands, Records: map[int]*dbadapter.Record{1: stands}})
		}, ""},
		"one that another had seen before its acknowledgement came": {func(w *Written) {
			one := w.Asked("k", false, []byte("a"), 0)
			w.Made(one, v(1))
			stands := rec(2, "b")
			stands.Replaces = []dbadapter.Replaced{{Writer: v(1).Writer, Clock: v(1).Clock}}
			w.Observed(0, stands)
			put(w, 2, "b", 0)
			w.Acknowledged(one, v(1), []int{0}, 2*time.Second)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: stands, Records: map[int]*dbadapter.Record{1: stands}})
		}, ""},
		"a first write that lost to a tombstone that no program asked for": {func(w *Written) {
			put(w, 1, "a", 0)
			put(w, 2, "b", 0)
			receded := &dbadapter.Record{Key: []byte("k"), Deleted: true, Version: v(3), Replaces: []dbadapter.Replaced{{Writer: v(1).Writer, Clock: v(1).Clock}}}
			w.Observed(0, receded)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(2, ""), Records: map[int]*dbadapter.Record{1: rec(2, "b")}})
		}, "lost"},
		"the same, earlier than the deletion":                        {func(w *Written) { restores(w, true, 2) }, ""},
		"what a host has written anew though a deletion had seen it": {func(w *Written) { restores(w, true, 4) }, "resurrect"},
		"the same, and the deletion was not acknowledged":            {func(w *Written) { restores(w, false, 4) }, ""},
		"what a host has written anew, and nothing had seen":         {func(w *Written) { put(w, 1, "a", 0); w.Observed(0, rec(3, "a")) }, ""},
		"a last read that is not sure":                               {func(w *Written) { w.Final(0, "k", nil, false, nil, nil) }, "answer"},
	} {
		w := NewWritten()
		c.do(w)
		var found []string
		for _, one := range w.Verdict() {
			found = append(found, string(one.Rule))
		}
		if c.want == "" && len(found) > 0 || c.want != "" && !strings.Contains(strings.Join(found, " "), c.want) {
			t.Errorf("%s: found %v, want %q: %v", name, found, c.want, w.Verdict())
		}
	}
}

// A meeting of first writes lacks nothing if one of them stands, and the others are listed conflicts.
func TestMet(t *testing.T) {
	rec := func(clock int, value string, over ...*dbadapter.Record) *dbadapter.Record {
		r := &dbadapter.Record{Key: []byte("k"), Value: []byte(value), Version: dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: dbadapter.WriterID(clock), Incarnation: 1}}
		for _, o := range over {
			r.Replaces = append(r.Replaces, dbadapter.Replaced{Writer: o.Version.Writer, Clock: o.Version.Clock})
		}
		return r
	}
	one, two := rec(1, "a"), rec(2, "b")
	stands := func(r *dbadapter.Record) *WrittenFinal {
		return &WrittenFinal{Key: "k", Named: 1, Entry: r, Records: map[int]*dbadapter.Record{1: r}}
	}
	for name, c := range map[string]struct {
		writes []*dbadapter.Record
		listed *dbadapter.Kept
		final  *WrittenFinal
		want   string
	}{
		"one stands, and the other is listed": {[]*dbadapter.Record{one, two}, &dbadapter.Kept{Why: dbadapter.KeptConflict, Record: *one}, stands(two), ""},
		"the other is listed nowhere":         {[]*dbadapter.Record{one, two}, nil, stands(two), "no host lists it as a conflict"},
		"the other is set aside":              {[]*dbadapter.Record{one, two}, &dbadapter.Kept{Why: dbadapter.KeptSetAside, Record: *one}, stands(two), "no host lists it as a conflict"},
		"the later one had seen the other":    {[]*dbadapter.Record{one, rec(2, "b", one)}, nil, stands(two), "has met no other write"},
		"there was one":                       {[]*dbadapter.Record{two}, nil, stands(two), "has met no other write"},
		"no program wrote what stands":        {[]*dbadapter.Record{one}, &dbadapter.Kept{Why: dbadapter.KeptConflict, Record: *one}, stands(two), "of no acknowledged write"},
		"both are left": {
			[]*dbadapter.Record{one, two},
			nil,
			&WrittenFinal{Key: "k", Named: 1, Entry: two, Records: map[int]*dbadapter.Record{1: two, 2: one}}, "2 records",
		},
		"neither is left": {[]*dbadapter.Record{one, two}, nil, &WrittenFinal{Key: "k", Named: -1}, "0 records"},
	} {
		w := NewWritten()
		for _, r := range c.writes {
			w.Acknowledged(w.Asked("k", false, r.Value, 0), r.Version, []int{0}, time.Second)
			w.Observed(0, r)
		}
		if c.listed != nil {
			w.Listed(c.listed)
		}
		if got := w.Met(c.final); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
