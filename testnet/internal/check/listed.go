package check

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// The rule lost: what leaves a set alive stands in the kept log of the node where that
// happened. So does what loses against a record whose writer had not seen it.

// listing is what the kept logs must list, each node's since its disk was last
// replaced.
type listing struct {
	at map[int]listed
	// copies are those of the last copy of each node's disk.
	copies map[int]listed
}

// listed is what one node must list: records that it has set aside, and those that
// lost.
type listed struct{ aside, lost map[sighting]bool }

func (l listed) clone() listed { return listed{maps.Clone(l.aside), maps.Clone(l.lost)} }

func (l *listing) copied(node int) {
	if l.copies == nil {
		l.copies = map[int]listed{}
	}
	l.copies[node] = l.at[node].clone()
}

func (l *listing) restored(node int) { delete(l.at, node); l.put(node, l.copies[node].clone()) }

func (l *listing) put(node int, what listed) {
	if l.at == nil {
		l.at = map[int]listed{}
	}
	l.at[node] = what
}

// setAside notes a record that a node must list. A deletion that nothing is left to
// tell of is not missed by a person.
func (l *listing) setAside(node int, s sighting) {
	if s.deleted || reserved(s.key) { // what is kept of a body is listed as a value of its key
		return
	}
	must := l.at[node]
	if must.aside == nil {
		must.aside = map[sighting]bool{}
	}
	must.aside[s] = true
	l.put(node, must)
}

// replaced notes that one record took the place of another at a node. What was
// deleted, or expires, all members may be past: then nothing is lost.
func (l *listing) replaced(node int, key string, by, old stamp) {
	if reserved(key) || old.deleted || old.expires() || by.knew(old) || !by.beats(old) || by.content == old.content && by.deleted == old.deleted {
		return
	}
	must := l.at[node]
	if must.lost == nil {
		must.lost = map[sighting]bool{}
	}
	must.lost[sighting{key, old}] = true
	l.put(node, must)
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
	conflicts, bytes := 0, 0
	for i := range f.Log {
		r := &f.Log[i].Record
		there[f.Log[i].Why] = append(there[f.Log[i].Why], sighting{string(r.Key), stampOf(r)})
		if f.Log[i].Why == dbadapter.KeptConflict {
			conflicts++
			bytes += len(r.Key) + len(r.Value)
		}
	}
	lists := func(why dbadapter.Why, s sighting) bool {
		return slices.ContainsFunc(there[why], func(t sighting) bool { return t.key == s.key && t.alike(s.stamp) })
	}
	// The log may have dropped one of any size.
	full := conflicts == dbadapter.MaxConflicts || bytes > dbadapter.MaxConflictBytes-dbadapter.MaxKey-dbadapter.MaxValue
	must := h.lists.at[f.Node]
	for s := range must.aside {
		if !lists(dbadapter.KeptSetAside, s) {
			h.found.say(Lost, f.Node, s.key, "it has set %s aside, and does not list it", s.stamp)
		}
	}
	for s := range must.lost {
		if !full && !lists(dbadapter.KeptConflict, s) {
			h.found.say(Lost, f.Node, s.key, "%s lost its place there to a record whose writer had not seen it, and is not listed", s.stamp)
		}
	}
}
