package api_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// filled sets each field of a report to a value that is not zero.
func filled(t *testing.T) reconcile.Report {
	t.Helper()
	var r reconcile.Report
	v := reflect.ValueOf(&r).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("x")
		case reflect.Int, reflect.Int64:
			f.SetInt(int64(i + 1))
		case reflect.Uint8: // a method
			f.SetUint(1)
		case reflect.Float64:
			f.SetFloat(float64(i + 1))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Map:
			m := reflect.MakeMap(f.Type())
			m.SetMapIndex(reflect.ValueOf("peel").Convert(f.Type().Key()), reflect.New(f.Type().Elem()).Elem())
			f.Set(m)
		case reflect.Array: // numbers by reason
			f.Index(2).SetInt(int64(i + 1))
		case reflect.Slice, reflect.Struct, reflect.Pointer: // what the nodes go by, and no figure: not in the JSON form
		default:
			t.Fatalf("the field %s is a %s: fill it", v.Type().Field(i).Name, f.Kind())
		}
	}
	return r
}

// TestReport: the JSON form carries every figure of a report, under the names
// that scripts rely on.
func TestReport(t *testing.T) {
	from := filled(t)
	got := api.ReportOf(&from)
	v := reflect.ValueOf(got)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Repair" {
			t.Errorf("the field %s is lost", name)
		}
	}
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
