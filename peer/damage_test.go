package peer

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/peer/offline"
)

// A read that meets damage makes it a state of its namespace at once, said once in the
// log. It outlasts a restart, and the damage itself, until a verification has found the
// namespace whole.
func TestDamageIsAState(t *testing.T) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		t.Run(string(kind), func(t *testing.T) { testDamageIsAState(t, kind) })
	}
}

func testDamageIsAState(t *testing.T, kind ondisk.Kind) {
	var log Log
	registry := prometheus.NewRegistry()
	config := Config{Dir: t.TempDir(), StoreKind: kind, Logger: log.Logger(slog.LevelInfo), Registerer: registry}
	n := openForTest(t, config)
	open := map[string]*Namespace{}
	for _, name := range []string{"notes", "other"} {
		ns, err := n.CreateNamespace(t.Context(), name, Policy{Unsigned: true})
		must(t, err)
		open[name] = ns
		for i := range 10 {
			must(t, errOf(ns.Put(t.Context(), fmt.Appendf(nil, "key %d", i), fmt.Appendf(nil, "value %03d of %s", i, name))))
		}
	}
	must(t, n.store.Compact(t.Context()))
	notes := open["notes"]
	if notes.Info().Damage != nil || n.Damage() != nil || metricOf(t, registry, "syncd_store_damaged", "notes") != 0 {
		t.Fatal("it is damaged before it is")
	}
	flipIn(t, config.Dir, "value 005 of notes")
	for range 5 {
		if _, err := notes.Get(t.Context(), []byte("key 5")); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("the read: %v", err)
		}
	}
	d := notes.Info().Damage // and the node's, where the store has compacted itself meanwhile
	if d == nil || d.Findings != 5 || len(d.Found) != 1 || d.At.IsZero() || open["other"].Info().Damage != nil {
		t.Fatalf("after five reads: %+v, %+v", d, open["other"].Info().Damage)
	}
	if said := log.With("the store is damaged"); said != 1 {
		t.Errorf("five reads have logged %d lines", said)
	}
	if metricOf(t, registry, "syncd_store_damaged", "notes") != 1 || metricOf(t, registry, "syncd_damage_findings_total", "notes") != 5 || metricOf(t, registry, "syncd_store_damaged", "other") != 0 {
		t.Error("the metrics say something else")
	}
	if _, err := notes.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a verification: %v", err)
	}
	if notes.Info().Damage == nil || n.Damage() == nil || metricOf(t, registry, "syncd_store_damaged", "") != 2 {
		t.Errorf("after a verification that found a damaged file: %+v, %+v", notes.Info().Damage, n.Damage())
	}

	flipIn(t, config.Dir, "walue 005 of notes") // the bit is what it was
	must(t, errOf(notes.Get(t.Context(), []byte("key 5"))))
	must(t, n.Close(t.Context()))
	n = openForTest(t, config)
	for name := range open {
		var err error
		open[name], err = n.Namespace(name)
		must(t, err)
	}
	notes = open["notes"]
	if again := notes.Info().Damage; again == nil || again.Findings < 5 || again.Found[0] != d.Found[0] || n.Damage() == nil {
		t.Fatalf("after a restart: %+v, %+v", again, n.Damage())
	}
	must(t, errOf(notes.Verify(t.Context())))
	if notes.Info().Damage != nil || n.Damage() == nil {
		t.Errorf("it was verified: %+v; the other was not: %+v", notes.Info().Damage, n.Damage())
	}
	if _, err := open["other"].Verify(t.Context()); err != nil || n.Damage() != nil || metricOf(t, registry, "syncd_store_damaged", "") != 0 {
		t.Errorf("all were verified: %v, %+v", err, n.Damage())
	}

	flipIn(t, config.Dir, "value 005 of notes")
	if _, err := notes.Verify(t.Context()); !errors.Is(err, ErrCorrupt) || n.Damage() == nil { // Pebble has the block in its cache
		t.Fatalf("damaged again: %v", err)
	}
	must(t, n.Close(t.Context()))
	if r, err := offline.Repair(t.Context(), config.Dir, nil); err != nil {
		t.Fatalf("the repair: %v, %+v", err, r)
	}
	n = openForTest(t, config)
	if notes, err := n.Namespace("notes"); err != nil || notes.Lost() == nil || notes.Info().Damage != nil || n.Damage() != nil || metricOf(t, registry, "syncd_lost_records", "notes") == 0 {
		t.Errorf("after a repair: %v, %+v, %+v", err, notes.Info(), n.Damage())
	}
}
