package peer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
)

// The age of the last proof counts from the beginning before there is one, from the
// proof then, and goes on over a restart, in order or not; a sync that proves nothing
// about all records does not end it.
func TestVerifiedSyncAge(t *testing.T) {
	dir, clock := t.TempDir(), newTestClock()
	open1 := func() (*peer.Node, *prometheus.Registry) {
		registry := prometheus.NewRegistry()
		return open(t, peer.Config{Dir: dir, Clock: clock.now, Registerer: registry}), registry
	}
	na, registry := open1()
	sa := create(t, na, peer.Policy{MaxSkew: 24 * time.Hour})
	age := func(want time.Duration, known bool) { // soon: the peer that began a sync is done first
		t.Helper()
		eventually(t, fmt.Sprintf("an age of %s, %t", want, known), func() bool {
			got, ok := gathered(t, registry, "syncd_verified_sync_age_seconds", "notes")
			return ok == known && got >= want.Seconds()-1 && got <= want.Seconds()+1
		})
	}
	clock.turn(time.Hour)
	age(0, false) // it is alone
	nb := open(t, peer.Config{Clock: clock.now})
	ticket, err := sa.Invite(t.Context(), peer.InviteOptions{})
	must(t, err)
	if _, err := nb.Join(t.Context(), ticket); err != nil { // which syncs
		t.Fatal(err)
	}
	sb := notes(t, nb)
	age(0, true)
	proof := clock.now()
	clock.turn(10 * time.Minute)
	age(10*time.Minute, true)
	restart := func() {
		t.Helper()
		must(t, na.Close(t.Context()))
		na, registry = open1()
		sa = notes(t, na)
		must(t, errOf(nb.Connect(t.Context(), na.Addrs()[0])))
	}
	clock.turn(10 * time.Minute)
	restart()
	age(20*time.Minute, true)
	if at := sa.Info().Verified; at.Sub(proof).Abs() > time.Second {
		t.Errorf("verified at %s; want %s", at, proof)
	}
	for _, m := range sa.Members() {
		if at := m.Verified; m.ID == nb.ID() && at.Sub(proof).Abs() > time.Second || m.ID == na.ID() && !at.IsZero() {
			t.Errorf("member %s was verified at %s; want %s", m.ID, at, proof)
		}
	}
	put(t, sb, "k", "v")
	for name, o := range map[string]peer.SyncOptions{"dry": {DryRun: true}, "a prefix": {Prefix: []byte("k")}} {
		if _, err := sb.Sync(t.Context(), na.ID(), o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		age(20*time.Minute, true)
	}
	sync1(t, sb, na.ID()) // the peer began it
	age(0, true)
	eventually(t, "one difference is counted", func() bool {
		n, ok := gathered(t, registry, "syncd_differences_total", "missing_here")
		return ok && n == 1
	})
	// What is damaged is left out: a new beginning, and no more.
	must(t, na.Close(t.Context()))
	files, err := filepath.Glob(filepath.Join(dir, "namespaces", "*", "verified.cbor"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	must(t, os.WriteFile(files[0], []byte("damaged"), 0o600))
	na, registry = open1()
	clock.turn(time.Minute)
	age(time.Minute, true)
}

// The gauges of alerts follow what they are about.
func TestStanding(t *testing.T) {
	registry := prometheus.NewRegistry()
	na, nb, sa, _ := pair(t, peer.Config{Dir: t.TempDir(), Registerer: registry}, peer.Config{}, peer.Policy{})
	want := func(name, label string, want float64) {
		t.Helper()
		if got, ok := gathered(t, registry, name, label); !ok || got != want {
			t.Errorf("%s of %q is %g, %t; want %g", name, label, got, ok, want)
		}
	}
	want("syncd_connected_members", "notes", 1)
	want("syncd_paused_namespaces", "notes", 0)
	want("syncd_paused_peers", "", 0)
	if taken, ok := gathered(t, registry, "syncd_storage_bytes", ""); !ok || taken < 1<<10 || taken > 1<<30 {
		t.Errorf("the folder takes %g bytes, %t", taken, ok)
	}
	if free, ok := gathered(t, registry, "syncd_storage_free_bytes", ""); !ok || free < 1<<20 {
		t.Errorf("%g bytes are free, %t", free, ok)
	}
	must(t, sa.Pause(t.Context()))
	must(t, na.PausePeer(t.Context(), nb.ID()))
	want("syncd_paused_namespaces", "notes", 1)
	want("syncd_paused_peers", "", 1)
}
