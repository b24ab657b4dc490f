package check

import (
	"fmt"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
)

// one is the index of all keys.
func one([]byte) dbadapter.Index { return 1 }

// filled is a node that holds so many records from a number on.
func filled(node, from, n int) Final {
	f := Final{Node: node}
	for i := range n {
		f.Dump = append(f.Dump, dbadapter.Record{Key: fmt.Appendf(nil, "%03d", from+i), Version: dbadapter.Version{Clock: 5, Writer: 1}})
	}
	return f
}

func (f Final) with(r dbadapter.Record) Final {
	f.Dump = append(f.Dump[:len(f.Dump):len(f.Dump)], r)
	return f
}

// What nodes lack for want of room is told from what has not come.
func TestLacking(t *testing.T) {
	full, other := filled(0, 0, 64), filled(1, 40, 64)
	dead := dbadapter.Record{Key: []byte("dead"), Deleted: true, Version: dbadapter.Version{Clock: 5, Writer: 1}}
	older := full.Dump[63]
	older.Version.Clock = 4
	gone := older
	gone.Deleted = true
	// It has expired by the clock of the check.
	over := dbadapter.Record{Key: []byte("over"), Expires: 1, Version: dbadapter.Version{Clock: 5, Writer: 1}}
	for name, c := range map[string]struct {
		group   []Final
		lacks   int
		settled bool
	}{
		"equal":                        {[]Final{full, full}, 0, true},
		"full of others":               {[]Final{full, other}, 80, true},
		"room is left":                 {[]Final{full, filled(1, 0, 63)}, 0, false},
		"an older record":              {[]Final{full, filled(1, 0, 63).with(older)}, 0, false},
		"an older deletion, and room":  {[]Final{full, filled(1, 0, 63).with(gone)}, 0, false},
		"an older deletion, no room":   {[]Final{full, filled(1, 100, 64).with(gone)}, 64 + 64, true},
		"a deletion that is collected": {[]Final{full.with(dead), full}, 0, true},
		"expired, and no room":         {[]Final{filled(0, 0, 63).with(over), full}, 2, true},
		"expired, and collected":       {[]Final{filled(0, 0, 62).with(over), filled(1, 0, 62)}, 0, true},
		"all keys taken":               {[]Final{filled(0, 0, 256), filled(1, 1, 256)}, 2, true},
	} {
		lacks, settled := Lacking(c.group, one, 2)
		if len(lacks) != c.lacks || settled != c.settled {
			t.Errorf("%s: %d are lacking, settled %t; want %d, %t", name, len(lacks), settled, c.lacks, c.settled)
		}
		for _, l := range lacks {
			if l.Collectable != (l.Key == "over") {
				t.Errorf("%s: node %d lacks %q: collectable %t", name, l.Node, l.Key, l.Collectable)
			}
		}
	}
}

// The rule full.
func TestFull(t *testing.T) {
	full, other := filled(0, 0, 64), filled(1, 40, 64)
	sync := func(r reconcile.Report) *Sync {
		return &Sync{Full: true, Before: [2][]dbadapter.Record{full.Dump, other.Dump}, Report: r}
	}
	declined := func(n int) reconcile.Report {
		r := reconcile.Report{Rejected: n}
		r.DeclinedHere[0], r.DeclinedThere[0] = n/2, n-n/2
		return r
	}
	said, moved := declined(80), declined(80)
	said.Verified, moved.Applied = true, 1
	for name, c := range map[string]struct {
		tell func(h *History)
		want bool
	}{
		"declined":         {func(h *History) { h.Synced(sync(declined(80))) }, false},
		"one too few":      {func(h *History) { h.Synced(sync(declined(79))) }, true},
		"called equal":     {func(h *History) { h.Synced(sync(said)) }, true},
		"one came":         {func(h *History) { h.Synced(sync(moved)) }, true},
		"as many as fit":   {func(h *History) { h.Overfull([]Final{full, other}, one) }, false},
		"the 65th":         {func(h *History) { h.Overfull([]Final{filled(0, 0, 65)}, one) }, true},
		"the 257th key":    {func(h *History) { h.Overfull([]Final{filled(0, 0, 257)}, one) }, true},
		"listed":           {func(h *History) { h.Listed(Lack{Key: "k"}, true) }, false},
		"not listed there": {func(h *History) { h.Listed(Lack{Key: "k"}, false) }, true},
	} {
		h := New()
		c.tell(h)
		if found := h.Check(nil); (len(found) > 0) != c.want || c.want && found[0].Rule != Full {
			t.Errorf("%s: %v", name, found)
		}
	}
}
