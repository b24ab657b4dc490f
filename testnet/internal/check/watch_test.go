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
	tell := func(seq uint64, r dbadapter.Record, coalesced bool) func(h *History) {
		return func(h *History) {
			h.Watched(0, "w", &Event{Cursor: cursor(seq), Kind: "put", Key: string(r.Key), Record: &r, Coalesced: coalesced, Read: 6})
		}
	}
	listAt := func(seq uint64, r dbadapter.Record) func(h *History) {
		return func(h *History) {
			h.Watched(0, "w", &Event{Cursor: cursor(seq, string(r.Key)), Kind: "put", Key: string(r.Key), Record: &r, Read: 3})
		}
	}
	list := func(r dbadapter.Record) func(h *History) { return listAt(3, r) }
	all := func(cursor string, read uint64) func(h *History) {
		return func(h *History) { h.WatchedAll(0, "w", cursor, read) }
	}
	viewed := func(records ...dbadapter.Record) func(h *History) {
		return func(h *History) { h.viewed(records) }
	}
	event := func(e Event) func(h *History) { return func(h *History) { h.Watched(0, "w", &e) } }
	expired := func(log dbadapter.LogID, first uint64) func(h *History) {
		return func(h *History) {
			h.CursorExpired(0, "w", log, func(after uint64) bool { return after >= first })
		}
	}
	for name, c := range map[string]struct {
		from  string
		steps []func(h *History)
		wrong string
	}{
		// s and t have one index, so that their changes cannot be told apart: s6 is marked.
		"all of it":                      {cursor(0), steps(tell(2, b2, false), tell(3, a3, true), tell(4, s6, true), tell(5, s5, false), all(cursor(6), 6)), ""},
		"each as it came":                {cursor(0), steps(tell(1, a1, false), all(cursor(1), 1), tell(2, b2, false), tell(3, a3, false), all(cursor(3), 3)), ""},
		"one is missing":                 {cursor(0), steps(tell(3, a3, true), all(cursor(3), 3)), "does not tell"},
		"no mark":                        {cursor(0), steps(tell(2, b2, false), tell(3, a3, false)), "does not mark it"},
		"a mark for nothing":             {cursor(0), steps(tell(1, a1, true)), "as if"},
		"twice":                          {cursor(0), steps(tell(2, b2, false), tell(2, b2, false)), "again"},
		"twice, since it was told early": {cursor(3), steps(tell(4, s6, true), tell(6, s6, false)), "again"},
		"out of order":                   {cursor(0), steps(tell(3, a3, true), tell(2, b2, false)), "after change"},
		"before the cursor":              {cursor(2), steps(tell(2, b2, false)), "after change"},
		"what it does not hold":          {cursor(0), steps(tell(1, a3, true)), "it held"},
		"of another key":                 {cursor(0), steps(tell(2, a1, false)), "not of this key"},
		"another kind":                   {cursor(0), steps(event(Event{Cursor: cursor(1), Kind: "gone", Key: "a", Record: &a1, Read: 1})), `"gone" of`},
		"beyond what it has told":        {cursor(2), steps(event(Event{Cursor: cursor(3), At: true})), "has told all up to 2"},
		"a listing":                      {fromStart, steps(list(a3), list(b2), all(cursor(3), 3), tell(4, s6, true), tell(5, s5, false), all(cursor(6), 6), viewed(a3, b2, s6, s5)), ""},
		"a listing with a gap":           {fromStart, steps(list(b2), all(cursor(3), 3)), "does not list it"},
		"a listing that goes on":         {cursor(3, "a"), steps(all(cursor(3), 3)), "does not list it"},
		"an old listing":                 {fromStart, steps(list(a1)), "did not hold"},
		// The listing began before change 1, and was read as of change 3.
		"what was listed":      {fromStart, steps(listAt(0, a3), listAt(0, b2), all(cursor(0), 3), tell(3, a3, false)), "has listed"},
		"in the end":           {cursor(5), steps(viewed(a3)), "has told nothing of"},
		"another one, in it":   {cursor(5), steps(tell(6, s6, false), viewed(s4)), "has told last"},
		"expired, though":      {cursor(5), steps(expired(watchedLog, 5)), "the log goes back"},
		"expired, as trimmed":  {cursor(5), steps(expired(watchedLog, 6)), ""},
		"expired, another log": {cursor(5), steps(expired(watchedLog+1, 0)), ""},
		"of another log":       {cursor(5), steps(all("0000000000000abd.6", 6)), "has come to"},
	} {
		h := New()
		h.change(1, 1, a1)
		h.change(2, 2, b2)
		h.change(3, 1, a3)
		h.change(4, 9, s4)
		h.change(5, 9, s5)
		h.change(6, 9, s6)
		h.Watching(&Watching{Program: "w", Cursor: c.from, Log: watchedLog, End: 6})
		for _, step := range c.steps {
			step(h)
		}
		expect(t, name, h, Watch, c.wrong)
	}
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
