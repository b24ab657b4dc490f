package peer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
)

// The bounds of the bandwidth hold for pushes that come and for those that are passed on.
func TestBandwidthOfPushes(t *testing.T) {
	registry := prometheus.NewRegistry()
	bounded := open(t, peer.Config{SyncInterval: time.Hour, Registerer: registry, Bandwidth: peer.Bandwidth{Receive: peer.MinBandwidth}})
	writer := open(t, peer.Config{SyncInterval: time.Hour})
	spaces := []*peer.Namespace{create(t, bounded, peer.Policy{})}
	spaces = append(spaces, join(t, spaces[0], writer, peer.RoleWrite))
	of := func(metric string) float64 { return metricOf(t, registry, metric, "received") }
	const size, waits = 32 << 10, "syncd_bandwidth_wait_seconds_total"
	for i := range 10 {
		synced, before := of("syncd_sync_bytes_total"), of(waits)
		key, value := fmt.Sprint("large ", i), strings.Repeat("x", size)
		must(t, errOf(spaces[1].Put(t.Context(), []byte(key), []byte(value))))
		eventually(t, "the other holds what was pushed", func() bool { return holds(t, spaces[0], key, value) })
		if of("syncd_sync_bytes_total") > synced {
			continue // the first sync after the opening has brought it
		}
		if of(waits) == before {
			t.Error("what is pushed waits for no bound")
		}
		return
	}
	t.Error("syncs bring all of it")
}
