package check

import (
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// syncCases are those of the rules idle, honest and count.
func syncCases() []ruleCase {
	synced := func(h *History, verified, quiet bool, method wire.Method, applied int, b0, b1, a0, a1 []dbadapter.Record) {
		h.Synced(&Sync{
			Node: 0, Peer: 1, Gets: true, Gives: true, Quiet: quiet,
			Before: [2][]dbadapter.Record{b0, b1}, After: [2][]dbadapter.Record{a0, a1},
			Report: reconcile.Report{Method: method, Verified: verified, Applied: applied, Mismatched: differences([2]map[string]stamp{stamps(b0), stamps(b1)})},
		})
	}
	return []ruleCase{
		{"idle", "idle", func(h *History) []Final {
			h.Synced(&Sync{Again: true, Peer: 1, Report: reconcile.Report{Verified: true, Sent: 1}})
			return nil
		}},
		{"idle: not verified", "idle", func(h *History) []Final {
			h.Synced(&Sync{Again: true, Peer: 1})
			return nil
		}},
		{"a second sync that moves nothing", "", func(h *History) []Final {
			h.Synced(&Sync{Again: true, Peer: 1, Report: reconcile.Report{Verified: true, Method: wire.MethodSame}})
			return nil
		}},

		{"honest: this side lacks a record", "honest", func(h *History) []Final {
			synced(h, true, false, wire.MethodSketch, 0, dump(red), dump(red, other), dump(red), dump(red, other))
			return nil
		}},
		{"honest: the peer holds an older one", "honest", func(h *History) []Final {
			synced(h, true, true, wire.MethodSketch, 0, dump(blue), dump(red), dump(blue), dump(red))
			return nil
		}},
		{"honest: same, said of differing sets", "honest", func(h *History) []Final {
			synced(h, true, false, wire.MethodSame, 0, dump(blue), dump(red), dump(blue), dump(blue))
			return nil
		}},
		{"differing sets, not called verified", "", func(h *History) []Final {
			synced(h, false, false, wire.MethodSketch, 0, dump(red), dump(red, other), dump(red), dump(red, other))
			return nil
		}},
		{"a peer that is down meanwhile", "", func(h *History) []Final {
			synced(h, true, true, wire.MethodSketch, 0, dump(red, other), dump(red), dump(red, other), nil)
			return nil
		}},
		{"a verified sync, and writes meanwhile", "", func(h *History) []Final {
			synced(h, true, false, wire.MethodSketch, 1, dump(red), dump(red, other), dump(erased, other), dump(blue, other))
			return nil
		}},

		{"count: too many", "count", func(h *History) []Final {
			synced(h, true, false, wire.MethodSketch, 2, dump(red), dump(red, other), dump(red, other), dump(red, other))
			return nil
		}},
		{"count: too few", "count", func(h *History) []Final {
			synced(h, true, true, wire.MethodSketch, 1, dump(red), dump(blue, other), dump(blue, other), dump(blue, other))
			return nil
		}},
		{"fewer, because another sync wrote", "", func(h *History) []Final {
			synced(h, true, false, wire.MethodSketch, 1, dump(red), dump(blue, other), dump(blue, other), dump(blue, other))
			return nil
		}},
		{"count: another number than the store took", "count", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 1, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 2}})
			return nil
		}},
		{"count: fewer than the store took", "count", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 2, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"what the store took is what is counted", "", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 1, Counted: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"fewer than were taken by a sync that failed in the middle", "", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, Took: 2, Counted: true, Failed: true, Before: [2][]dbadapter.Record{nil, dump(red, other)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"count: applied in a dry run", "count", func(h *History) []Final {
			h.Synced(&Sync{Gets: true, DryRun: true, Before: [2][]dbadapter.Record{nil, dump(red)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
		{"count: sent in a dry run", "count", func(h *History) []Final {
			h.Synced(&Sync{Gives: true, DryRun: true, Before: [2][]dbadapter.Record{dump(red), nil}, Report: reconcile.Report{Sent: 1}})
			return nil
		}},
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
		{"count: applied where nothing is asked for", "count", func(h *History) []Final {
			h.Synced(&Sync{Gives: true, Before: [2][]dbadapter.Record{nil, dump(red)}, Report: reconcile.Report{Applied: 1}})
			return nil
		}},
	}
}
