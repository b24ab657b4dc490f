package api_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// TestReport: the JSON form has the names that scripts rely on, and words for what Go has numbers for.
func TestReport(t *testing.T) {
	got := api.ReportOf(&reconcile.Report{
		Method: wire.MethodSketch, DeclinedHere: reconcile.Reasons{wire.ReasonClock: 2}, DeclinedThere: reconcile.Reasons{0: 1},
	})
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"ns", "peer", "method", "rounds", "cells", "sketch_bytes", "record_bytes", "wire_bytes_sent", "wire_bytes_received",
		"missing_here", "missing_there", "mismatched", "applied", "sent", "rejected", "estimate", "forecast_bytes", "repair",
		"duration_ms", "steps_ms", "verified",
	} {
		if _, ok := fields[name]; !ok {
			t.Errorf("the JSON form has no field %q", name)
		}
	}
	for _, part := range []string{`"method":"sketch"`, `"declined_here":{"clock":2}`, `"declined_there":{"earlier":1}`} {
		if !bytes.Contains(raw, []byte(part)) {
			t.Errorf("%s lacks %s", raw, part)
		}
	}
}

// TestEmptyLists: a list without entries is [], not null.
func TestEmptyLists(t *testing.T) {
	n, err := peer.Open(t.Context(), peer.Config{ListenAddrs: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(t.Context())
	for name, v := range map[string]any{
		"peers": n.Peers(), "syncs": api.SyncsOf(nil), "status": api.StatusOf(n),
	} {
		raw, err := json.Marshal(v)
		if err != nil || bytes.Contains(raw, []byte("null")) {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
}

// TestHeadsOfAnyVersion: what a peer says that it holds can be written, whatever it says.
func TestHeadsOfAnyVersion(t *testing.T) {
	last := dbadapter.Version{Clock: ^dbadapter.Timestamp(0), Writer: 1}
	d := api.KeyDifferenceOf(&reconcile.KeyDifference{Key: []byte("k"), Kind: reconcile.MissingHere, There: reconcile.Head{Version: last}})
	w := api.WhysOf([]byte("k"), []status.Why{{Standing: "missing here", There: dbadapter.Record{Key: []byte("k"), Version: last}}})
	for _, v := range []any{d, w} {
		raw, err := json.Marshal(v)
		if err != nil || !bytes.Contains(raw, []byte(last.String())) || !bytes.Contains(raw, []byte(`"9999-12-31T`)) {
			t.Errorf("%s, %v", raw, err)
		}
	}
}
