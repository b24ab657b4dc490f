package check

import (
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// listsKeys judges a dry run that lists the keys that differ. If its differences are
// proved, or one side held nothing, so that all keys are listed, it must list just those
// in which the two differed. Each stands as its kind and with the versions held.
func (h *History) listsKeys(s *Sync) {
	r := &s.Report
	proved := r.Verified || r.Method == wire.MethodAll && (len(s.Before[0]) == 0 || len(s.Before[1]) == 0)
	if !s.Lists || s.Failed || !proved || s.Before[0] == nil || s.Before[1] == nil {
		return
	}
	want := map[string]string{}
	for key, pair := range pairsOf(s.Before) {
		if text := difference(pair); text != "" {
			want[key] = text
		}
	}
	for n := range s.Listed {
		d := &s.Listed[n]
		key := string(d.Key)
		text := fmt.Sprint(d.Kind, headText(d.Here), headText(d.There), d.HereWins)
		switch has, ok := want[key]; {
		case !ok:
			h.found.say(Keys, s.Node, key, "a dry run with node %d lists it as %s, twice or though both hold the same", s.Peer, text)
		case has != text:
			h.found.say(Keys, s.Node, key, "a dry run with node %d lists it as %s; it is %s", s.Peer, text, has)
		}
		delete(want, key)
	}
	for key, text := range want {
		h.found.say(Keys, s.Node, key, "a dry run with node %d does not list it; it is %s", s.Peer, text)
	}
}

// pairsOf are the records of both sides by key; nil for a side that lacks one.
func pairsOf(dumps [2][]dbadapter.Record) map[string][2]*dbadapter.Record {
	pairs := map[string][2]*dbadapter.Record{}
	for side, dump := range dumps {
		for n := range dump {
			pair := pairs[string(dump[n].Key)]
			pair[side] = &dump[n]
			pairs[string(dump[n].Key)] = pair
		}
	}
	return pairs
}

// difference says how two records of a key differ; nothing if they do not.
func difference(pair [2]*dbadapter.Record) string {
	here, there := pair[0], pair[1]
	switch {
	case there == nil:
		return fmt.Sprint(reconcile.MissingThere, recordText(here), headText(reconcile.Head{}), true)
	case here == nil:
		return fmt.Sprint(reconcile.MissingHere, headText(reconcile.Head{}), recordText(there), false)
	case stampOf(here) == stampOf(there):
		return ""
	}
	kinds, older := [2]reconcile.KeyKind{reconcile.NewerHere, reconcile.NewerThere}, 0
	if stampOf(here).beats(stampOf(there)) {
		older = 1
	}
	kind := kinds[1-older]
	if !knew(pair[1-older], pair[older].Version) {
		kind = reconcile.Conflict
	}
	return fmt.Sprint(kind, recordText(here), recordText(there), older == 1)
}

// knew reports whether the writer of a record knew a version, by what the record names.
func knew(r *dbadapter.Record, v dbadapter.Version) bool {
	if v.Writer == r.Version.Writer && v.Incarnation == r.Version.Incarnation {
		return v.Clock < r.Version.Clock
	}
	return slices.ContainsFunc(r.Replaces, func(p dbadapter.Replaced) bool { return p.Writer == v.Writer && p.Clock >= v.Clock })
}

func recordText(r *dbadapter.Record) string {
	return headText(reconcile.Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires})
}

func headText(h reconcile.Head) string {
	return fmt.Sprintf(" [%s deleted %t expires %d] ", h.Version, h.Deleted, h.Expires)
}
