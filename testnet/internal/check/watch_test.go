package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// The log of a watched node: its changes, and what keys hold since.
const watchedLog dbadapter.LogID = 0xabc

func (h *History) change(seq uint64, index dbadapter.Index, held ...dbadapter.Record) {
	c := Change{Seq: seq, Index: index}
	for i := range held {
		c.Keys = append(c.Keys, held[i].Key)
		c.Held = append(c.Held, &held[i])
	}
	h.Changed(0, watchedLog, &c)
}

func (h *History) viewed(records []dbadapter.Record) {
	if why := h.Behind(0, "w", records, nil); why != "" {
		h.found.say(Watch, 0, "", "%s", why)
	}
}

func cursor(seq uint64, key ...string) string {
	s := fmt.Sprintf("%s.%d", watchedLog, seq)
	if len(key) > 0 {
		s += "." + map[string]string{"a": "YQ", "b": "Yg", "s": "cw"}[key[0]]
	}
	return s
}

// A watch that leaves something out, tells it twice, out of order, or otherwise than it is,
// is found; one that does not is not.
func TestWatches(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	a1, a3, b2 := put("a", "1", version(at(1))), put("a", "3", version(at(3))), put("b", "2", version(at(2)))
	s4, s5, s6 := put("s", "4", version(at(4))), put("t", "5", version(at(5))), put("s", "6", version(at(6)))
	tell := func(h *History, seq uint64, r dbadapter.Record, coalesced bool) {
		h.Watched(0, "w", &Event{Cursor: cursor(seq), Kind: "put", Key: string(r.Key), Record: &r, Coalesced: coalesced, Read: 6})
	}
	list := func(h *History, r dbadapter.Record) {
		h.Watched(0, "w", &Event{Cursor: cursor(3, string(r.Key)), Kind: "put", Key: string(r.Key), Record: &r, Read: 3})
	}
	for name, c := range map[string]struct {
		from  string
		run   func(h *History)
		wrong string
	}{
		"all of it": {cursor(0), func(h *History) {
			tell(h, 2, b2, false)
			tell(h, 3, a3, true)
			tell(h, 4, s6, true) // s and t cannot be told apart
			tell(h, 5, s5, false)
			h.WatchedAll(0, "w", cursor(6), 6)
		}, ""},
		"each as it came": {cursor(0), func(h *History) {
			tell(h, 1, a1, false)
			h.WatchedAll(0, "w", cursor(1), 1)
			tell(h, 2, b2, false)
			tell(h, 3, a3, false)
			h.WatchedAll(0, "w", cursor(3), 3)
		}, ""},
		"one is missing": {cursor(0), func(h *History) {
			tell(h, 3, a3, true)
			h.WatchedAll(0, "w", cursor(3), 3)
		}, "does not tell"},
		"no mark": {cursor(0), func(h *History) {
			tell(h, 2, b2, false)
			tell(h, 3, a3, false)
		}, "does not mark it"},
		"a mark for nothing": {cursor(0), func(h *History) { tell(h, 1, a1, true) }, "as if"},
		"twice": {cursor(0), func(h *History) {
			tell(h, 2, b2, false)
			tell(h, 2, b2, false)
		}, "again"},
		"twice, since it was told early": {cursor(3), func(h *History) {
			tell(h, 4, s6, true)
			tell(h, 6, s6, false)
		}, "again"},
		"out of order": {cursor(0), func(h *History) {
			tell(h, 3, a3, true)
			tell(h, 2, b2, false)
		}, "after change"},
		"before the cursor":     {cursor(2), func(h *History) { tell(h, 2, b2, false) }, "after change"},
		"what it does not hold": {cursor(0), func(h *History) { tell(h, 1, a3, true) }, "it held"},
		"of another key":        {cursor(0), func(h *History) { tell(h, 2, a1, false) }, "not of this key"},
		"another kind": {cursor(0), func(h *History) {
			h.Watched(0, "w", &Event{Cursor: cursor(1), Kind: "gone", Key: "a", Record: &a1, Read: 1})
		}, `"gone" of`},
		"beyond what it has told": {cursor(2), func(h *History) { h.Watched(0, "w", &Event{Cursor: cursor(3), At: true}) }, "has told all up to 2"},
		"a listing": {fromStart, func(h *History) {
			list(h, a3)
			list(h, b2)
			h.WatchedAll(0, "w", cursor(3), 3)
			tell(h, 4, s6, true)
			tell(h, 5, s5, false)
			h.WatchedAll(0, "w", cursor(6), 6)
			h.viewed(dump(a3, b2, s6, s5))
		}, ""},
		"a listing with a gap": {fromStart, func(h *History) {
			list(h, b2)
			h.WatchedAll(0, "w", cursor(3), 3)
		}, "does not list it"},
		"a listing that goes on": {cursor(3, "a"), func(h *History) { h.WatchedAll(0, "w", cursor(3), 3) }, "does not list it"},
		"an old listing":         {fromStart, func(h *History) { list(h, a1) }, "did not hold"},
		"what was listed": {fromStart, func(h *History) {
			for _, r := range []dbadapter.Record{a3, b2} { // began before change 1, and read as of change 3
				h.Watched(0, "w", &Event{Cursor: cursor(0, string(r.Key)), Kind: "put", Key: string(r.Key), Record: &r, Read: 3})
			}
			h.WatchedAll(0, "w", cursor(0), 3)
			tell(h, 3, a3, false)
		}, "has listed"},
		"in the end":           {cursor(5), func(h *History) { h.viewed(dump(a3)) }, "has told nothing of"},
		"another one, in it":   {cursor(5), func(h *History) { tell(h, 6, s6, false); h.viewed(dump(s4)) }, "has told last"},
		"expired, though":      {cursor(5), func(h *History) { h.expired(watchedLog, 5) }, "the log goes back"},
		"expired, as trimmed":  {cursor(5), func(h *History) { h.expired(watchedLog, 6) }, ""},
		"expired, another log": {cursor(5), func(h *History) { h.expired(watchedLog+1, 0) }, ""},
		"of another log":       {cursor(5), func(h *History) { h.WatchedAll(0, "w", "0000000000000abd.6", 6) }, "has come to"},
	} {
		h := New()
		h.change(1, 1, a1)
		h.change(2, 2, b2)
		h.change(3, 1, a3)
		h.change(4, 9, s4)
		h.change(5, 9, s5)
		h.change(6, 9, s6)
		h.Watching(&Watching{Program: "w", Cursor: c.from, Log: watchedLog, End: 6})
		c.run(h)
		expect(t, name, h, Watch, c.wrong)
	}
}

func (h *History) expired(log dbadapter.LogID, first uint64) {
	h.CursorExpired(0, "w", log, func(after uint64) bool { return after >= first })
}

// A watch from now on begins with what is held now, and one with a prefix is told of that
// alone.
func TestWatchFromNow(t *testing.T) {
	a, b := put("a", "1", version(noon)), put("b", "2", version(noon))
	h := New()
	h.change(1, 1, a)
	h.change(2, 2, b)
	h.Watching(&Watching{Program: "w", Prefix: "a", Cursor: cursor(2), Now: true, Log: watchedLog, End: 2})
	h.viewed(dump(a, b))
	expect(t, "as it is", h, Watch, "")
	h.Watched(0, "w", &Event{Cursor: cursor(2), Kind: "put", Key: "b", Record: &b, Read: 2})
	expect(t, "another prefix", h, Watch, "without its prefix")
	h = New()
	h.Watching(&Watching{Program: "w", Cursor: cursor(3), Now: true, Log: watchedLog, End: 2})
	expect(t, "of the future", h, Watch, "begins now")
}

// Over shards a program may be told again what it knows, also something older where another host tells; in the
// end it knows what stands.
func TestWatchesOfShards(t *testing.T) {
	old, late := put("a", "1", version(noon)), put("a", "2", version(noon.Add(time.Second)))
	tell := func(h *History, cursor string, r dbadapter.Record) {
		h.Watched(0, "w", &Event{Cursor: cursor, Kind: "put", Key: "a", Record: &r})
	}
	expired := func(h *History, reaches bool) { h.CursorExpired(0, "w", 0, func(uint64) bool { return reaches }) }
	for name, c := range map[string]struct {
		run   func(h *History)
		wrong string
	}{
		"all of it":               {func(h *History) { tell(h, "s1,x.1", old); tell(h, "s1,x.2", late); h.viewed(dump(late)) }, ""},
		"older, of another host":  {func(h *History) { tell(h, "s1,x.2", late); tell(h, "s1,y.1", old); tell(h, "s1,y.2", late) }, ""},
		"older, of one host":      {func(h *History) { tell(h, "s1,x.2", late); tell(h, "s1,x.3", old) }, "by the log of one host"},
		"not the last":            {func(h *History) { tell(h, "s1,x.2", old); h.viewed(dump(late)) }, "has told last"},
		"nothing":                 {func(h *History) { h.viewed(dump(late)) }, "has told nothing of"},
		"what is deleted stays":   {func(h *History) { tell(h, "s1,x.2", old); h.viewed(nil) }, "has told last"},
		"expired, though":         {func(h *History) { expired(h, true) }, "whole hosts have the logs"},
		"expired, as it has gone": {func(h *History) { expired(h, false) }, ""},
	} {
		h := New()
		h.Sharded(func(string) int { return 0 }, func() time.Time { return noon })
		h.Watching(&Watching{Program: "w", Cursor: fromStart})
		c.run(h)
		expect(t, name, h, Watch, c.wrong)
	}
}
