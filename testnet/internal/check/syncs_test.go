package check

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// syncCases are those of the rules idle, honest and count.
func syncCases() []ruleCase {
	just := func(s Sync) func(h *History) []Final {
		return func(h *History) []Final {
			s.Peer = 1
			h.Synced(&s)
			return nil
		}
	}
	synced := func(verified, quiet bool, method wire.Method, applied int, b0, b1, a0, a1 []dbadapter.Record) func(h *History) []Final {
		return just(Sync{
			Gets: true, Gives: true, Quiet: quiet,
			Before: [2][]dbadapter.Record{b0, b1}, After: [2][]dbadapter.Record{a0, a1},
			Report: reconcile.Report{Method: method, Verified: verified, Applied: applied, Mismatched: differences([2]greatest{stamps(b0), stamps(b1)})},
		})
	}
	return []ruleCase{
		{"idle", "idle", just(Sync{Again: true, Report: reconcile.Report{Verified: true, Sent: 1}})},
		{"idle: not verified", "idle", just(Sync{Again: true})},
		{"a second sync that moves nothing", "", just(Sync{Again: true, Report: reconcile.Report{Verified: true, Method: wire.MethodSame}})},

		{"honest: this side lacks a record", "honest", synced(true, false, wire.MethodSketch, 0, dump(red), dump(red, other), dump(red), dump(red, other))},
		{"honest: the peer holds an older one", "honest", synced(true, true, wire.MethodSketch, 0, dump(blue), dump(red), dump(blue), dump(red))},
		{"honest: same, said of differing sets", "honest", synced(true, false, wire.MethodSame, 0, dump(blue), dump(red), dump(blue), dump(blue))},
		{"differing sets, not called verified", "", synced(false, false, wire.MethodSketch, 0, dump(red), dump(red, other), dump(red), dump(red, other))},
		{"a peer that is down meanwhile", "", synced(true, true, wire.MethodSketch, 0, dump(red, other), dump(red), dump(red, other), nil)},
		{"a verified sync, and writes meanwhile", "", synced(true, false, wire.MethodSketch, 1, dump(red), dump(red, other), dump(erased, other), dump(blue, other))},

		{"count: too many", "count", synced(true, false, wire.MethodSketch, 2, dump(red), dump(red, other), dump(red, other), dump(red, other))},
		{"count: too few", "count", synced(true, true, wire.MethodSketch, 1, dump(red), dump(blue, other), dump(blue, other), dump(blue, other))},
		{"fewer, because another sync wrote", "", synced(true, false, wire.MethodSketch, 1, dump(red), dump(blue, other), dump(blue, other), dump(blue, other))},
		{"count: another number than the store took", "count", just(Sync{Gets: true, Took: 1, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 2}})},
		{"count: fewer than the store took", "count", just(Sync{Gets: true, Took: 2, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})},
		{"what the store took is what is counted", "", just(Sync{Gets: true, Took: 1, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})},
		{"fewer than were taken by a sync that failed in the middle", "", just(Sync{Gets: true, Took: 2, Counted: true, Failed: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})},
		{"count: applied in a dry run", "count", just(Sync{Gets: true, DryRun: true, Before: [2][]dbadapter.Record{nil, dump(red)}, Report: reconcile.Report{Applied: 1}})},
		{"count: sent in a dry run", "count", just(Sync{Gives: true, DryRun: true, Before: [2][]dbadapter.Record{dump(red), nil}, Report: reconcile.Report{Sent: 1}})},
		{"a dry run is verified of sets that differ", "", func(h *History) []Final {
			h.Synced(&Sync{
				Gives: true, Gets: true, DryRun: true, Quiet: true, Before: [2][]dbadapter.Record{dump(red), dump(other)}, After: [2][]dbadapter.Record{dump(red), dump(other)},
				Report: reconcile.Report{Verified: true, Method: wire.MethodSketch, MissingHere: 1, MissingThere: 1},
			})
			return nil
		}},
		{"honest: a dry run that finds nothing", "honest", func(h *History) []Final {
			h.Synced(&Sync{
				Gives: true, Gets: true, DryRun: true, Before: [2][]dbadapter.Record{dump(red), dump(other)},
				Report: reconcile.Report{Verified: true, Method: wire.MethodSketch},
			})
			return nil
		}},
		{"honest: a dry run that finds too much", "honest", func(h *History) []Final {
			h.Synced(&Sync{
				Gives: true, Gets: true, DryRun: true, Before: [2][]dbadapter.Record{dump(red), dump(red)},
				Report: reconcile.Report{Verified: true, Method: wire.MethodSketch, Mismatched: 1},
			})
			return nil
		}},
		{"honest: a dry run that says the same of sets that differ", "honest", func(h *History) []Final {
			h.Synced(&Sync{
				Gives: true, Gets: true, DryRun: true, Before: [2][]dbadapter.Record{dump(red), dump(other)},
				Report: reconcile.Report{Verified: true, Method: wire.MethodSame},
			})
			return nil
		}},
		{"count: applied where nothing is asked for", "count", just(Sync{Gives: true, Before: [2][]dbadapter.Record{nil, dump(red)}, Report: reconcile.Report{Applied: 1}})},
	}
}
