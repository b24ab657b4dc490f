package httpapi_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A record that is put with a ttl says when it expires; then it is gone, and writes
// over it can be conditional on its version.
func TestExpiry(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var passed atomic.Int64
	s := serveAt(t, "", func() time.Time { return noon.Add(time.Duration(passed.Load())) })
	const key, list, export = "/v1/ns/notes/keys/k", "/v1/ns/notes/keys", "/v1/ns/notes/export"
	want := func(what string, status int, method, path, body, contains string, header ...string) *http.Response {
		t.Helper()
		resp, got := s.do(t, method, path, body, header...)
		if resp.StatusCode != status || !strings.Contains(got, contains) {
			t.Errorf("%s: %s, %s; want %d and %s", what, resp.Status, got, status, contains)
		}
		return resp
	}
	for ttl, code := range map[string]int{"1": 400, "-1s": 400, "0s": 400, "soon": 400, "876001h": 413} {
		want("ttl="+ttl, code, http.MethodPut, key+"?ttl="+ttl, "v", `"detail"`)
	}
	etag := want("put", 200, http.MethodPut, key+"?ttl=90m1ms", "v", "version").Header.Get("ETag")
	resp := want("get", 200, http.MethodGet, key, "", "v")
	if got := [2]string{resp.Header.Get("Expires"), resp.Header.Get("Syncd-Expires")}; got != [2]string{"Sun, 01 Mar 2026 13:30:00 GMT", "2026-03-01T13:30:00.001Z"} {
		t.Errorf("it expires at %q", got)
	}
	want("list", 200, http.MethodGet, list, "", `"expires":"2026-03-01T13:30:00.001Z"`)
	const line = `{"key":"k","value":"v","expires":"2026-03-01T13:30:00.001Z"`
	want("export", 200, http.MethodGet, export, "", line+"}\n")
	want("other", 200, http.MethodPut, list+"/other", "v", "version")
	if resp := want("get other", 200, http.MethodGet, list+"/other", "", "v"); resp.Header.Values("Expires") != nil {
		t.Errorf("a record that does not expire has the header Expires: %q", resp.Header)
	}

	passed.Store(int64(90*time.Minute + time.Millisecond))
	resp = want("get, expired", 410, http.MethodGet, key, "", "expired at 2026-03-01T13:30:00.001Z")
	if resp.Header.Get("ETag") != etag {
		t.Errorf("ETag %s, want %s", resp.Header.Get("ETag"), etag)
	}
	want("its code", 410, http.MethodGet, key, "", `"code":"expired"`)
	for what, path := range map[string]string{"list": list, "export": export} {
		if _, body := s.do(t, http.MethodGet, path, ""); strings.Contains(body, `"k"`) {
			t.Errorf("%s, expired: %s", what, body)
		}
	}
	want("export of all", 200, http.MethodGet, export+"?versions=true", "", line+`,"version":"`+strings.Trim(etag, `"`)+`"}`)
	resp = want("delete, expired", 410, http.MethodDelete, key, "", `"code":"expired"`)
	if resp.Header.Get("ETag") != etag {
		t.Errorf("ETag %s, want %s", resp.Header.Get("ETag"), etag)
	}
	want("over any", 412, http.MethodPut, key, "new", `"conflict"`, "If-Match", "*")
	if resp := want("over nothing", 412, http.MethodPut, key, "new", `"conflict"`, "If-None-Match", "*"); resp.Header.Get("ETag") != etag {
		t.Errorf("ETag %s, want %s", resp.Header.Get("ETag"), etag)
	}
	want("over the expired one", 200, http.MethodPut, key+"?ttl=1h", "new", "version", "If-Match", etag)
	want("get anew", 200, http.MethodGet, key, "", "new")

	const lines = `{"key":"k","value":"old","expires":"2026-03-01T12:00:00Z"}` + "\n" + `{"key":"l","value":"v","expires":"2026-03-01T14:00:00Z"}` + "\n"
	want("import", 200, http.MethodPost, "/v1/ns/notes/import", lines, `"expired":1`)
	want("get kept", 200, http.MethodGet, key, "", "new")
	want("import of the distant", 413, http.MethodPost, "/v1/ns/notes/import", "\n"+`{"key":"m","value":"v","expires":"2126-03-01T14:00:00Z"}`, "line 2: ")
}
