package check

import (
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// logging is a node with a kept log.
func logging(f Final, why dbadapter.Why, kept ...dbadapter.Record) Final {
	f.Log = []dbadapter.Kept{}
	for _, r := range kept {
		f.Log = append(f.Log, dbadapter.Kept{Why: why, Record: r})
	}
	return f
}

// crowd is a number of entries of a kept log.
func crowd(n, size int) (kept []dbadapter.Record) {
	value := make([]byte, size)
	for range n {
		kept = append(kept, dbadapter.Record{Key: []byte("crowd"), Value: value})
	}
	return kept
}

// listedCases are those of the rule lost.
func listedCases() []ruleCase {
	elsewhere := put("k", "elsewhere", dbadapter.Version{Clock: 9, Writer: 8, Incarnation: 1})
	aware := elsewhere
	aware.Replaces = []dbadapter.Replaced{{Writer: red.Version.Writer, Clock: red.Version.Clock}}
	aside := func(h *History) {
		h.Excuse()
		h.written(0, red)
		h.Observe(0, &red)
		h.SetAside(0, &red, time.Time{})
	}
	// overwritten is a history of red that loses its place, at a node whose kept log is given.
	overwritten := func(by dbadapter.Record, kept ...dbadapter.Record) func(h *History) []Final {
		return func(h *History) []Final {
			h.written(0, red)
			h.Observe(0, &red)
			h.written(1, by)
			h.Observe(0, &by)
			return []Final{logging(final(0, 0, by), dbadapter.KeptConflict, kept...)}
		}
	}
	asideListed := func(why dbadapter.Why, kept ...dbadapter.Record) func(h *History) []Final {
		return func(h *History) []Final {
			aside(h)
			return []Final{logging(final(0, 0), why, kept...)}
		}
	}
	return []ruleCase{
		{"lost: set aside, and not listed", "lost", asideListed(dbadapter.KeptSetAside)},
		{"lost: set aside, and listed as something else", "lost", asideListed(dbadapter.KeptConflict, red)},
		{"lost: set aside, and another version listed", "lost", asideListed(dbadapter.KeptSetAside, blue)},
		{"set aside, and listed", "", asideListed(dbadapter.KeptSetAside, red)},
		{"a log that is not known", "", func(h *History) []Final {
			aside(h)
			return []Final{final(0, 0)}
		}},
		{"a deletion set aside", "", func(h *History) []Final {
			h.Excuse()
			h.written(0, erased)
			h.Observe(0, &erased)
			h.SetAside(0, &erased, time.Time{})
			return []Final{logging(final(0, 0), dbadapter.KeptSetAside)}
		}},
		{"lost: announced, and gone after a crash", "lost", func(h *History) []Final {
			h.written(0, red)
			h.Observe(0, &red)
			h.Removing(0, &red, true)
			h.Started(0, nil)
			return []Final{logging(final(0, 0), dbadapter.KeptSetAside)}
		}},
		{"announced, and there after a crash", "", func(h *History) []Final {
			h.written(0, red)
			h.Observe(0, &red)
			h.Removing(0, &red, true)
			h.Started(0, dump(red))
			return []Final{logging(final(0, 0, red), dbadapter.KeptSetAside)}
		}},
		{"lost: listed before the copy was made", "lost", func(h *History) []Final {
			aside(h)
			h.Copied(0)
			h.Restored(0)
			return []Final{logging(final(0, 0), dbadapter.KeptSetAside)}
		}},
		{"listed after the copy was made", "", func(h *History) []Final {
			h.Copied(0)
			aside(h)
			h.Restored(0)
			return []Final{logging(final(0, 0), dbadapter.KeptSetAside)}
		}},
		{"lost: collected alive", "lost", func(h *History) []Final {
			h.written(0, red)
			h.Observe(0, &red)
			h.Collected(0, &red, []int{0})
			return []Final{final(0, 0)}
		}},

		{"lost: to a writer that had not seen it", "lost", overwritten(elsewhere)},
		{"to a writer that had not seen it, and listed", "", overwritten(elsewhere, red)},
		{"to a writer that had seen it", "", overwritten(aware)},
		{"to a later one of the same life", "", overwritten(blue)},
		{"a deletion that all members may be past", "", func(h *History) []Final {
			h.written(0, erased)
			h.Observe(0, &erased)
			over := put("k", "put again", dbadapter.Version{Clock: 99, Writer: 8, Incarnation: 1})
			h.written(1, over)
			h.Observe(0, &over)
			return []Final{logging(final(0, 0, over), dbadapter.KeptConflict)}
		}},
		{"to an import", "", overwritten(put("k", "dated", dbadapter.Version{Clock: 9}))},
		{"to one of the same content", "", overwritten(put("k", "red", elsewhere.Version))},
		{"a log without room for it", "", overwritten(elsewhere, crowd(dbadapter.MaxConflicts, 0)...)},
		{"a log without bytes for it", "", overwritten(elsewhere, crowd(dbadapter.MaxConflictBytes/dbadapter.MaxValue, dbadapter.MaxValue)...)},
		{"lost: a log with room", "lost", overwritten(elsewhere, crowd(dbadapter.MaxConflicts-1, 0)...)},
	}
}
