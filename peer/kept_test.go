package peer_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// entries are a list of kept records, as "key=value", or "key deleted".
func entries(t *testing.T, list iter.Seq2[dbadapter.Kept, error]) (all []dbadapter.Kept, shown string) {
	t.Helper()
	var words []string
	for k, err := range list {
		must(t, err)
		word := fmt.Sprintf("%s=%s", k.Record.Key, k.Record.Value)
		if k.Record.Deleted {
			word = fmt.Sprintf("%s deleted", k.Record.Key)
		}
		all, words = append(all, k), append(words, word)
	}
	return all, strings.Join(words, " ")
}

// Two nodes write and delete unseen by one another; nothing is lost without a
// trace, whichever store they have, and what is restored wins.
func TestConflicts(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		clock := newTestClock()
		registry := prometheus.NewRegistry()
		a.Clock, b.Clock, a.Registerer = clock.now, clock.now, registry
		na, nb, sa, sb := pair(t, a, b, peer.Policy{})
		for _, key := range []string{"both", "deleted here", "deleted there", "seen"} {
			put(t, sa, key, "first")
		}
		sync1(t, sa, nb.ID())
		put(t, sb, "seen", "second")
		sync1(t, sa, nb.ID())
		put(t, sa, "seen", "third")

		later := func() { clock.turn(time.Second) }
		put(t, sa, "both", "a")
		put(t, sa, "deleted there", "of a")
		must(t, errOf(sa.Delete(t.Context(), []byte("deleted here"))))
		later()
		put(t, sb, "both", "b")
		put(t, sb, "deleted here", "of b")
		must(t, errOf(sb.Delete(t.Context(), []byte("deleted there"))))
		won, err := sb.Get(t.Context(), []byte("both"))
		must(t, err)
		sync1(t, sb, na.ID())
		equal(t, sa, sb)

		lost, shown := entries(t, sa.Conflicts(t.Context()))
		if len(lost) != 3 || !strings.Contains(shown, "both=a") || !strings.Contains(shown, "deleted here deleted") || !strings.Contains(shown, "deleted there=of a") {
			t.Fatalf("lost at a: %s", shown)
		}
		if _, shown := entries(t, sb.Conflicts(t.Context())); shown != "" {
			t.Errorf("lost at b, which wrote later: %s", shown)
		}
		if n := sa.Info().Conflicts; n != 3 {
			t.Errorf("%d conflicts are counted", n)
		}
		if got := metricOf(t, registry, "syncd_conflict_records", ""); got != 3 {
			t.Errorf("the metric says %v", got)
		}
		synced := clock.now()
		for _, k := range lost {
			if string(k.Record.Key) == "both" && k.By != won.Version || !k.At.Equal(synced) {
				t.Errorf("%s was lost at %v against %v", k.Record.Key, k.At, k.By)
			}
			later()
			version, err := sa.RestoreKept(t.Context(), k)
			if err != nil || version.IsZero() {
				t.Fatalf("restore %s: %v, %v", k.Record.Key, version, err)
			}
		}
		if _, shown := entries(t, sa.Conflicts(t.Context())); shown != "" {
			t.Errorf("after all were restored: %s", shown)
		}
		sync1(t, sa, nb.ID())
		equal(t, sa, sb)
		for key, want := range map[string]string{"both": "a", "deleted there": "of a", "deleted here": ""} {
			r, err := sb.Get(t.Context(), []byte(key))
			if string(r.Value) != want || (want == "") != errors.Is(err, peer.ErrDeleted) {
				t.Errorf("%s is %q there, %v", key, r.Value, err)
			}
		}
		if _, shown := entries(t, sb.Conflicts(t.Context())); shown != "" {
			t.Errorf("a restored record had seen what it replaced, and b lost %s", shown)
		}
	})
}

// What is set aside is listed and restored; what cannot be restored stays.
func TestSetAside(t *testing.T) {
	clock := newTestClock()
	n := open(t, peer.Config{Clock: clock.now, ListenAddrs: []string{}})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "k", "v")
	must(t, errOf(ns.Put(t.Context(), []byte("short"), []byte("v"), peer.TTL(time.Minute))))
	must(t, ns.Batch(t.Context(), func(b *peer.Batch) error { b.Delete([]byte("gone")); return nil }))
	must(t, peer.PutAside(ns, "k", "short", "gone"))
	if _, err := ns.Get(t.Context(), []byte("k")); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("a record that was set aside: %v", err)
	}
	clock.turn(time.Hour)
	all, shown := entries(t, ns.SetAside(t.Context()))
	if shown != "k=v short=v gone deleted" || ns.Info().SetAside != 3 {
		t.Fatalf("set aside: %s", shown)
	}
	if v, err := ns.RestoreKept(t.Context(), all[0]); err != nil || v.IsZero() {
		t.Errorf("restore: %v, %v", v, err)
	}
	if r, err := ns.Get(t.Context(), []byte("k")); err != nil || string(r.Value) != "v" {
		t.Errorf("restored: %q, %v", r.Value, err)
	}
	if _, err := ns.RestoreKept(t.Context(), all[1]); !errors.Is(err, peer.ErrExpired) {
		t.Errorf("restore of an expired record: %v", err)
	}
	if v, err := ns.RestoreKept(t.Context(), all[2]); err != nil || !v.IsZero() {
		t.Errorf("restore of a deletion where there is no record: %v, %v", v, err)
	}
	if _, shown := entries(t, ns.SetAside(t.Context())); shown != "short=v" {
		t.Errorf("still set aside: %s", shown)
	}
	if err := ns.ForgetKept(t.Context(), all[1].Seq); err != nil || ns.Info().SetAside != 0 {
		t.Errorf("forget: %v, %d left", err, ns.Info().SetAside)
	}
}
