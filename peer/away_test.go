package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
)

// A node that was away, or is empty, meets six peers at once that hold what it lacks. One
// of them sends each value, whichever side calls, and however much is missing. The test
// counts all records that the six have sent, also in syncs that were put off.
func TestAwayFromSixPeers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		held     int // records that the node holds already
		missing  int
		bulk     syncing.Bulk
		incoming bool // the six call
		// later: five are met once the first has sent something. Parts as small as here would
		// be sent whole, as a called peer sends unasked, before a no arrives.
		later bool
		// changed: the records are held already, and were changed a moment ago, so that the
		// cells do not tell which side has the later versions.
		changed bool
	}{
		{"sketch, it calls", 100, 1500, syncing.Bulk{}, false, false, false},
		{"sketch, they call", 100, 1500, syncing.Bulk{}, true, false, false},
		{"parts, it calls", 100, 1500, syncing.Bulk{PartsFrom: 500, PartSize: 250, Turn: 50}, false, true, false},
		{"parts, they call", 100, 1500, syncing.Bulk{PartsFrom: 500, PartSize: 250, Turn: 50}, true, false, false},
		{"empty, it calls", 0, 1500, syncing.Bulk{}, false, false, false},
		{"empty, they call", 0, 1500, syncing.Bulk{}, true, false, false},
		{"changed, it calls", 1500, 1500, syncing.Bulk{}, false, false, true},
		{"changed, they call", 1500, 1500, syncing.Bulk{}, true, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodes, all := clusterForTest(t, Policy{Unsigned: true}, make([]Config, 7)...)
			for _, n := range nodes {
				n.core.Bulk = test.bulk
			}
			away, id := all[6], nodes[6].ID()
			for _, ns := range all[1:] { // all list all
				for _, n := range nodes {
					if n.ID() == ns.node.ID() {
						continue
					}
					must(t, errOf(ns.Sync(t.Context(), n.ID(), SyncOptions{})))
				}
			}
			random := rand.New(rand.NewPCG(1, uint64(len(test.name))))
			fill := func(what string, n int) (size int64) {
				value := make([]byte, 1000)
				for i := range n {
					key := fmt.Appendf(nil, "%s %d", what, i)
					for at := range value {
						value[at] = byte(random.Uint32())
					}
					must(t, errOf(all[0].Put(t.Context(), key, value)))
					size += int64(len(key) + len(value))
				}
				return size
			}
			fill("held", test.held)
			must(t, errOf(away.Sync(t.Context(), nodes[0].ID(), SyncOptions{})))
			what := "missing"
			if test.changed {
				what = "held"
			}
			size := fill(what, test.missing)
			for _, ns := range all[1:6] {
				must(t, errOf(ns.Sync(t.Context(), nodes[0].ID(), SyncOptions{})))
			}

			before := make([]int64, 6)
			for i := range before {
				before[i] = sentTo(t, nodes[i], id)
			}
			var calls sync.WaitGroup
			begun, begin := context.WithCancel(t.Context())
			defer begin()
			if !test.later {
				begin()
			}
			for i := range 6 {
				calls.Go(func() {
					o := SyncOptions{}
					if i == 0 {
						defer begin()
						o.Progress = func(r reconcile.Report) {
							if r.Applied > 0 {
								begin()
							}
						}
					} else {
						<-begun.Done()
					}
					from, to := away, nodes[i].ID()
					if test.incoming {
						from, to = all[i], id
					}
					if r, err := from.Sync(t.Context(), to, o); err != nil && !errors.Is(err, ErrBusy) {
						t.Errorf("with node %d: %v, %+v", i, err, r)
					}
				})
			}
			calls.Wait()
			var sent int64
			for i := range before {
				sent += sentTo(t, nodes[i], id) - before[i]
			}
			most := 1.1
			if test.changed { // each peer, and this node, sends as much on suspicion, before a no arrives
				most += 7 * float64(1<<16) / float64(size)
			}
			ratio := float64(sent) / float64(size)
			t.Logf("%d bytes of records were sent for %d that were missing: %.3f", sent, size, ratio)
			if ratio > most || ratio < 1 {
				t.Errorf("%d bytes of records were sent for %d that were missing: %.3f", sent, size, ratio)
			}
			if d := away.Info().Digest; d != all[0].Info().Digest {
				t.Error("the sets differ")
			}
		})
	}
}

// sentTo is how many bytes of records a node has sent to a peer, or received, in syncs
// that are over.
func sentTo(t *testing.T, n *Node, id ID) (bytes int64) {
	t.Helper()
	eventually(t, "all syncs have ended", func() bool { return n.running.Load() == 0 })
	all := n.RecentSyncs()
	if len(all) == RecentSyncs {
		t.Fatal("more syncs than are remembered")
	}
	for _, s := range all {
		if s.Report.Peer == id.String() {
			bytes += s.Report.RecordBytes
		}
	}
	return bytes
}
