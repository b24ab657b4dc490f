package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

// A batch is written whole, and answers with the version of each write.
func TestBatch(t *testing.T) {
	s := serve(t, "")
	ctx := t.Context()
	if _, err := s.client.Batch(ctx, "notes", []byte(`[{"key":"old","value":"1"},{"key":"gone","value":"1"}]`), ""); err != nil {
		t.Fatal(err)
	}
	old, err := s.client.Get(ctx, "notes", []byte("old"), api.ReadParams{})
	if err != nil {
		t.Fatal(err)
	}
	versions, err := s.client.Batch(ctx, "notes", fmt.Appendf(nil, `[
		{"key":"a","value":"é\u0000","ttl":"1h"}, {"key64":"/w==","value64":"/wA="}, {"key":"old","value":"","if_version":%q},
		{"key":"new","value":"","if_absent":true}, {"key":"gone","delete":true}, {"key":"never","delete":true}]`, old.Version), "")
	if err != nil || len(versions) != 6 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	for i, want := range map[int]struct{ key, value string }{0: {"a", "é\x00"}, 1: {"\xff", "\xff\x00"}, 2: {"old", ""}, 3: {"new", ""}} {
		got, err := s.client.Get(ctx, "notes", []byte(want.key), api.ReadParams{})
		if err != nil || string(got.Bytes) != want.value || got.Version != versions[i] || (got.Expires != "") != (i == 0) {
			t.Errorf("item %d: %+v, %v; want %q, version %s", i, got, err, want.value, versions[i])
		}
	}
	for _, key := range []string{"gone", "never"} {
		if _, err := s.client.Get(ctx, "notes", []byte(key), api.ReadParams{}); !errors.Is(err, peer.ErrDeleted) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if versions, err := s.client.Batch(ctx, "notes", []byte("[]"), ""); err != nil || len(versions) != 0 {
		t.Errorf("an empty batch: %v, %v", versions, err)
	}
}

// A batch that fails writes nothing, and says at which item; its error is that of the
// same batch in Go.
func TestBatchFails(t *testing.T) {
	s := serve(t, "")
	version, err := s.client.Put(t.Context(), api.PutParams{RecordParams: api.Record("notes", []byte("held"))}, strings.NewReader("v"))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("k", dbadapter.MaxKey+1)
	item := func(i int) *int { return &i }
	for name, c := range map[string]struct {
		list, code, version string
		status              int
		item                *int
		inGo                func(b *peer.Batch)
	}{
		"a condition on absence": {`[{"key":"new","value":"v"},{"key":"held","value":"w","if_absent":true}]`, "conflict", version, 412, item(1), func(b *peer.Batch) {
			b.Put([]byte("new"), nil)
			b.PutIf([]byte("held"), nil, dbadapter.Version{})
		}},
		"a condition on a version": {`[{"key":"new","delete":true,"if_version":"` + version + `"}]`, "conflict", "", 412, item(0), func(b *peer.Batch) {
			b.DeleteIf([]byte("new"), dbadapter.Version{Clock: 1})
		}},
		"a long key": {`[{"key":"new","value":"v"},{"key":"new","value":"v"},{"key":"` + long + `","value":"v"}]`, "limit", "", 413, item(2), func(b *peer.Batch) {
			b.Put([]byte("new"), nil)
			b.Put([]byte("new"), nil)
			b.Put([]byte(long), nil)
		}},
		"no key": {`[{"value":"v"}]`, "limit", "", 413, item(0), func(b *peer.Batch) { b.Put(nil, nil) }},
		"a long life": {`[{"key":"new","value":"v","ttl":"900000h"}]`, "limit", "", 413, item(0), func(b *peer.Batch) {
			b.Put([]byte("new"), nil, peer.TTL(peer.MaxTTL+1))
		}},
		"too many":      {"[" + strings.Repeat(`{"key":"new","value":""},`, dbadapter.MaxBatch) + `{"key":"new","value":""}]`, "limit", "", 413, nil, nil},
		"too much":      {"[" + strings.Repeat(`{"key":"new","value64":"`+base64.StdEncoding.EncodeToString(make([]byte, dbadapter.MaxValue))+`"},`, 2) + `{"key":"new","value":""}]`, "limit", "", 413, nil, nil},
		"a long body":   {`[{"key":"new","value":"` + strings.Repeat("x", api.MaxBatchBody) + `"}]`, "limit", "", 413, nil, nil},
		"no value":      {`[{"key":"new"}]`, "usage", "", 400, item(0), nil},
		"two values":    {`[{"key":"new","value":"","value64":"AA=="}]`, "usage", "", 400, item(0), nil},
		"two keys":      {`[{"key":"new","key64":"AA==","value":""}]`, "usage", "", 400, item(0), nil},
		"two fields":    {`[{"key":"new","value":"a","value":"b"}]`, "usage", "", 400, nil, nil},
		"not UTF-8":     {"[{\"key\":\"new\xff\",\"value\":\"a\"}]", "usage", "", 400, nil, nil},
		"half a pair":   {`[{"key":"new","value":"\ud800"}]`, "usage", "", 400, nil, nil},
		"both":          {`[{"key":"new","value":"","delete":true}]`, "usage", "", 400, item(0), nil},
		"a wrong life":  {`[{"key":"new","value":""},{"key":"new","value":"","ttl":"-1s"}]`, "usage", "", 400, item(1), nil},
		"a wrong if":    {`[{"key":"new","value":"","if_version":"x"}]`, "usage", "", 400, item(0), nil},
		"two ifs":       {`[{"key":"new","value":"","if_version":"` + version + `","if_absent":true}]`, "usage", "", 400, item(0), nil},
		"unknown field": {`[{"key":"new","value":"","if":"x"}]`, "usage", "", 422, nil, nil},
		"no list":       {`{"key":"new","value":""}`, "usage", "", 422, nil, nil},
		"no JSON":       {`[`, "usage", "", 400, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := s.do(t, http.MethodPost, "/v1/ns/notes/batch", c.list, "Content-Type", "application/json")
			var p problem.Problem
			if err := json.Unmarshal([]byte(body), &p); err != nil {
				t.Fatalf("%s %v %.200s", resp.Status, err, body)
			}
			if resp.StatusCode != c.status || p.Code != c.code || p.Version != c.version || fmt.Sprint(deref(p.Item)) != fmt.Sprint(deref(c.item)) {
				t.Errorf("%s, item %v, %+v", resp.Status, deref(p.Item), p)
			}
			ns, err := s.node.Namespace("notes")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ns.Get(t.Context(), []byte("new")); !errors.Is(err, peer.ErrNotFound) {
				t.Errorf("something was written: %v", err)
			}
			if c.inGo == nil {
				return
			}
			err = ns.Batch(t.Context(), func(b *peer.Batch) error { c.inGo(b); return nil })
			of, ok := errors.AsType[*peer.BatchError](err)
			if !ok || of.Item != *c.item || problem.From(err).Code != c.code {
				t.Errorf("in Go: %v", err)
			}
		})
	}
	if resp, _ := s.do(t, http.MethodPost, "/v1/ns/other/batch", "[]", "Content-Type", "application/json"); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a namespace that is not there: %s", resp.Status)
	}
}

// deref is the number of an item, or "none".
func deref(item *int) any {
	if item == nil {
		return "none"
	}
	return *item
}
