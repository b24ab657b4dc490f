package check

import (
	"encoding/binary"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// The rule lost: what leaves a set alive stands in the kept log of the node where that
// happened. So does what loses against a record whose writer had not seen it.

// entry is what a kept log must list: a record that was set aside, or that lost.
type entry struct {
	why dbadapter.Why
	sighting
}

// lists notes what a node's kept log must list from now on.
func (h *History) lists(node int, what entry) {
	if h.listing[node] == nil {
		h.listing[node] = map[entry]bool{}
	}
	h.listing[node][what] = true
}

// setAside notes a record that a node must list. A deletion that nothing is left to
// tell of is not missed by a person.
func (h *History) setAside(node int, s sighting) {
	if !s.deleted && !reserved(s.key) { // what is kept of a body is listed as a value of its key
		h.lists(node, entry{dbadapter.KeptSetAside, s})
	}
}

// replaced notes that one record took the place of another at a node. What was
// deleted, or expires, all members may be past: then nothing is lost.
func (h *History) replaced(node int, key string, by, old stamp) {
	if !reserved(key) && !old.deleted && !old.expires() && !by.knew(old) && by.beats(old) && (by.content != old.content || by.deleted != old.deleted) {
		h.lists(node, entry{dbadapter.KeptConflict, sighting{key, old}})
	}
}

// knew reports whether the writer of a record had seen another of its key. It had if it
// wrote both in one life, or names it, or a later one of the same writer. A dated
// import names nothing and is named by no record.
func (a stamp) knew(b stamp) bool {
	v, w := a.version, b.version
	if v.Writer == 0 || w.Writer == 0 || a.rest == untold || v.Writer == w.Writer && v.Incarnation == w.Incarnation {
		return true
	}
	for names := []byte(a.rest[8:]); len(names) > 0; names = names[16:] {
		if binary.BigEndian.Uint64(names) == uint64(w.Writer) && binary.BigEndian.Uint64(names[8:]) >= uint64(w.Clock) {
			return true
		}
	}
	return false
}

// listed compares a node's kept log with what it must list. The log is bounded for
// conflicts: one may be missing where there is no room for it.
func (h *History) listed(f *Final) {
	if f.Log == nil {
		return
	}
	there := map[dbadapter.Why][]sighting{}
	bytes := 0
	for i := range f.Log {
		r := &f.Log[i].Record
		there[f.Log[i].Why] = append(there[f.Log[i].Why], sighting{string(r.Key), stampOf(r)})
		if f.Log[i].Why == dbadapter.KeptConflict {
			bytes += len(r.Key) + len(r.Value)
		}
	}
	// The log may have dropped one of any size.
	full := len(there[dbadapter.KeptConflict]) == dbadapter.MaxConflicts || bytes > dbadapter.MaxConflictBytes-dbadapter.MaxKey-dbadapter.MaxValue
	for must := range h.listing[f.Node] {
		switch {
		case slices.ContainsFunc(there[must.why], func(t sighting) bool { return t.key == must.key && t.alike(must.stamp) }):
		case must.why == dbadapter.KeptSetAside:
			h.found.say(Lost, f.Node, must.key, "it has set %s aside, and does not list it", must.stamp)
		case !full:
			h.found.say(Lost, f.Node, must.key, "%s lost its place there to a record whose writer had not seen it, and is not listed", must.stamp)
		}
	}
}
