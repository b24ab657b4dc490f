package check

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// What only members held that were removed may be lost; what another one holds may not.
func TestWrittenGone(t *testing.T) {
	rec := func(clock int, value string) *dbadapter.Record {
		return &dbadapter.Record{Key: []byte("k"), Value: []byte(value), Version: dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: dbadapter.WriterID(clock), Incarnation: 1}}
	}
	put := func(w *Written, hosts ...int) {
		w.Acknowledged(w.Asked("k", false, []byte("a"), 0), rec(1, "a").Version, hosts, time.Second)
	}
	nothing := func(w *Written) { w.Last(&WrittenFinal{Key: "k", Named: -1}) }
	misses := func(w *Written, node int, by ...int) {
		w.Read(WrittenRead{Node: node, Key: "k", Asked: time.Minute}, nil, true, by, 1)
	}
	for name, c := range map[string]struct {
		do   func(w *Written)
		want Rule // empty: nothing is found
	}{
		"its one host is gone": {func(w *Written) { put(w, 1); w.Removed(1); nothing(w) }, ""},
		"it was gone before":   {func(w *Written) { w.Removed(1); put(w, 1); nothing(w) }, ""},
		"another one is gone":  {func(w *Written) { put(w, 1); w.Removed(2); nothing(w) }, Durable},
		"one of two is gone":   {func(w *Written) { put(w, 1, 2); w.Removed(1); nothing(w) }, Durable},
		"both are gone":        {func(w *Written) { put(w, 1, 2); w.Removed(1); w.Removed(2); nothing(w) }, ""},
		"it has handed the shard over": {func(w *Written) {
			put(w, 1)
			w.Left(1, []int{2}, []dbadapter.Record{*rec(1, "a")})
			w.Removed(1)
			nothing(w)
		}, Durable},
		"to one that is gone": {func(w *Written) {
			put(w, 1)
			w.Left(1, []int{2}, []dbadapter.Record{*rec(1, "a")})
			w.Removed(2)
			nothing(w)
		}, ""},
		"it has handed another record over": {func(w *Written) {
			put(w, 1)
			w.Left(1, []int{2}, []dbadapter.Record{*rec(2, "a")})
			w.Removed(2)
			nothing(w)
		}, Durable},

		"a read, of what one held":   {func(w *Written) { put(w, 1); w.Removed(2); misses(w, 0) }, ""},
		"a read, of what two held":   {func(w *Written) { put(w, 1, 2); w.Removed(2); misses(w, 0, 1) }, Answer},
		"a read by one that is gone": {func(w *Written) { put(w, 1, 2); w.Removed(3); misses(w, 0, 3) }, ""},
		"a read at one that is gone": {func(w *Written) { put(w, 1, 2); w.Removed(3); misses(w, 3, 1) }, ""},
		"an entry of what is gone leads nowhere": {func(w *Written) {
			put(w, 1)
			w.Removed(1)
			w.Last(&WrittenFinal{Key: "k", Named: 1, Entry: rec(1, "")})
		}, ""},
	} {
		w := NewWritten()
		c.do(w)
		found := w.Verdict()
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) == 0 || found[0].Rule != c.want) {
			t.Errorf("%s: found %v, want %q", name, found, c.want)
		}
	}
}
