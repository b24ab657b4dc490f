package peer

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/syncd-io/syncd/internal/syncing"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Each side lists a large sync once, whatever number of parts it has gone in, with what all
// of them have moved; and so after a break.
func TestLargeSyncIsListedOnce(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa := createForTest(t, a, Policy{Unsigned: true})
	sb := joinForTest(t, sa, b, RoleWrite)
	for _, n := range []*Node{a, b} {
		n.core.Bulk = syncing.Bulk{PartsFrom: 200, PartSize: 60}
	}
	put := func(what string, n int) {
		for i := range n {
			for _, ns := range []*Namespace{sa, sb} {
				must(t, errOf(ns.Put(t.Context(), fmt.Append(nil, what, ns.node.ID(), i), []byte("value"))))
			}
		}
	}
	rested := func() {
		t.Helper()
		eventually(t, "all syncs have ended", func() bool { return a.running.Load()+b.running.Load() == 0 })
	}
	put("common", 1)
	must(t, errOf(sa.Sync(t.Context(), b.ID(), SyncOptions{})))
	rested()
	put("first", 300)
	before := [2]int{len(a.RecentSyncs()), len(b.RecentSyncs())}
	forecasts := 0
	report, err := sa.Sync(t.Context(), b.ID(), SyncOptions{Progress: func(reconcile.Report) {
		if s := b.RecentSyncs()[0]; s.Report.Parts > 0 && s.Report.ForecastBytes > s.Report.WireBytesSent+s.Report.WireBytesReceived {
			forecasts++
		}
	}})
	if err != nil || report.Parts < 5 {
		t.Fatalf("%+v, %v", report, err)
	}
	rested()
	if forecasts == 0 {
		t.Error("the side that was called has never told what the whole would cost")
	}
	for i, n := range []*Node{a, b} {
		all := n.RecentSyncs()
		s := all[0]
		r := s.Report
		if len(all) != before[i]+1 || s.Incoming != (i == 1) || s.Error != "" {
			t.Errorf("node %d lists %d syncs after %d, the last %+v", i, len(all), before[i], s)
		}
		if r.Method != wire.MethodParts || r.Parts != report.Parts || r.PartsDone != r.Parts || r.Applied != 300 || r.Sent != 300 || !r.Verified || r.Split != nil {
			t.Errorf("node %d lists %+v", i, r)
		}
		if sent, received := report.WireBytesSent, report.WireBytesReceived; i == 1 && (r.WireBytesSent != received || r.WireBytesReceived != sent) {
			t.Errorf("node %d lists %d and %d bytes; the other side %d and %d", i, r.WireBytesSent, r.WireBytesReceived, received, sent)
		}
	}

	// A sync that is cut is one, too, and the next one another.
	put("second", 300)
	before = [2]int{len(a.RecentSyncs()), len(b.RecentSyncs())}
	var cut atomic.Bool // a connection that is made anew is cut, too
	b.host.Network().Notify(&network.NotifyBundle{ConnectedF: func(_ network.Network, c network.Conn) {
		if cut.Load() {
			c.Close()
		}
	}})
	_, err = sa.Sync(t.Context(), b.ID(), SyncOptions{Progress: func(r reconcile.Report) {
		if r.PartsDone >= 2 && !cut.Swap(true) {
			for _, c := range b.host.Network().ConnsToPeer(a.ID()) {
				c.Close()
			}
		}
	}})
	cut.Store(false)
	if !errors.Is(err, ErrUnreachable) {
		t.Fatal(err)
	}
	rested()
	for i, n := range []*Node{a, b} {
		all := n.RecentSyncs()
		if r := all[0].Report; len(all) != before[i]+1 || all[0].Error == "" || r.Parts < 2 {
			t.Errorf("node %d lists %d syncs after %d, the last %+v", i, len(all), before[i], all[0])
		}
	}
	_, err = sa.Sync(t.Context(), b.ID(), SyncOptions{})
	must(t, err)
	rested()
	for i, n := range []*Node{a, b} {
		all := n.RecentSyncs()
		if len(all) != before[i]+2 || all[0].Error != "" || !all[0].Report.Verified || all[1].Error == "" {
			t.Errorf("node %d lists %d syncs after %d, the last %+v", i, len(all), before[i], all[0])
		}
	}
}
