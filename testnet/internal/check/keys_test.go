package check

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// keyCases are those of the rule keys: node 0 holds red and other, node 1 blue.
func keyCases() []ruleCase {
	head := func(r dbadapter.Record) reconcile.Head {
		return reconcile.Head{Version: r.Version, Deleted: r.Deleted, Expires: r.Expires}
	}
	newer := reconcile.KeyDifference{Key: red.Key, Kind: reconcile.NewerThere, Here: head(red), There: head(blue)}
	missing := reconcile.KeyDifference{Key: other.Key, Kind: reconcile.MissingThere, Here: head(other), HereWins: true}
	judged := func(name, rule string, method wire.Method, verified bool, listed ...reconcile.KeyDifference) ruleCase {
		return ruleCase{name, rule, func(h *History) []Final {
			before := [2][]dbadapter.Record{dump(red, other), dump(blue)}
			if method == wire.MethodAll {
				before[1] = []dbadapter.Record{}
			}
			h.Synced(&Sync{
				Peer: 1, Gets: true, Gives: true, DryRun: true, Lists: true, Listed: listed, Before: before, After: before,
				Report: reconcile.Report{Method: method, Verified: verified, Mismatched: 1, MissingThere: 1},
			})
			return nil
		}}
	}
	otherKind, otherVersion := newer, missing
	otherKind.Kind, otherVersion.Here = reconcile.Conflict, head(red)
	only := missing
	only.Key, only.Here = red.Key, head(red)
	return []ruleCase{
		judged("a list of what differs", "", wire.MethodSketch, true, missing, newer),
		judged("keys: one is left out", "keys", wire.MethodSketch, true, missing),
		judged("keys: one is listed twice", "keys", wire.MethodSketch, true, missing, newer, missing),
		judged("keys: another kind", "keys", wire.MethodSketch, true, missing, otherKind),
		judged("keys: another version", "keys", wire.MethodSketch, true, otherVersion, newer),
		judged("a list without a proof", "", wire.MethodSketch, false, missing),
		judged("a list of all, of two sides that hold records", "keys", wire.MethodAll, false, missing),
		judged("a list of all", "", wire.MethodAll, false, missing, only),
	}
}
