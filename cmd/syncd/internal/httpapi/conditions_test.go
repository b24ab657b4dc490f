package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

func TestConditions(t *testing.T) {
	s := serve(t, "")
	resp, _ := s.do(t, http.MethodPut, "/v1/ns/notes/keys/k", "1", "If-None-Match", "*")
	etag := resp.Header.Get("ETag")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(etag, `"`) {
		t.Fatalf("%s, ETag %s", resp.Status, etag)
	}
	if resp, _ = s.do(t, http.MethodGet, "/v1/ns/notes/keys/k", ""); resp.Header.Get("ETag") != etag {
		t.Errorf("ETag %s; want %s", resp.Header.Get("ETag"), etag)
	}
	if resp, _ = s.do(t, http.MethodPut, "/v1/ns/notes/keys/k", "2", "If-Match", etag); resp.StatusCode != http.StatusOK {
		t.Errorf("If-Match of the version held: %s", resp.Status)
	}
	if resp, _ = s.do(t, http.MethodPut, "/v1/ns/notes/keys/k", "2", "If-Match", "*"); resp.StatusCode != http.StatusOK {
		t.Errorf("If-Match of any version: %s", resp.Status)
	}
	if resp, _ = s.do(t, http.MethodDelete, "/v1/ns/notes/keys/k", "", "If-Match", etag); resp.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("If-Match of an old version: %s", resp.Status)
	}
	// Over a tombstone, too, a write can be conditional.
	if resp, _ = s.do(t, http.MethodDelete, "/v1/ns/notes/keys/k", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("DELETE: %s", resp.Status)
	}
	if resp, _ = s.do(t, http.MethodGet, "/v1/ns/notes/keys/k", ""); resp.StatusCode != http.StatusGone || resp.Header.Get("ETag") == "" {
		t.Errorf("GET of a tombstone: %s, ETag %s", resp.Status, resp.Header.Get("ETag"))
	}
	if resp, _ = s.do(t, http.MethodPut, "/v1/ns/notes/keys/k", "3", "If-Match", resp.Header.Get("ETag")); resp.StatusCode != http.StatusOK {
		t.Errorf("If-Match of the tombstone: %s", resp.Status)
	}
	// Of a key that holds nothing no version is named.
	if resp, body := s.do(t, http.MethodPut, "/v1/ns/notes/keys/none", "4", "If-Match", etag); resp.StatusCode != http.StatusPreconditionFailed || resp.Header.Get("ETag") != "" ||
		strings.Contains(body, `"version"`) || !strings.Contains(body, "there is no record now") {
		t.Errorf("If-Match of a key that is not there: %s, ETag %q, %s", resp.Status, resp.Header.Get("ETag"), body)
	}
}

// TestNotModified: a value that the client holds is not sent again.
func TestNotModified(t *testing.T) {
	s := serve(t, "")
	resp, _ := s.do(t, http.MethodPut, "/v1/ns/notes/keys/k", "1")
	etag := resp.Header.Get("ETag")
	for header, status := range map[string]int{
		etag: 304, `"x", W/` + etag: 304, "*": 304, `"x"`: 200, "": 200,
	} {
		resp, body := s.do(t, http.MethodGet, "/v1/ns/notes/keys/k", "", "If-None-Match", header)
		if resp.StatusCode != status || resp.Header.Get("ETag") != etag || (body == "1") != (status == 200) {
			t.Errorf("If-None-Match: %s: %s, ETag %s, %q; want %d", header, resp.Status, resp.Header.Get("ETag"), body, status)
		}
	}
	if resp, _ := s.do(t, http.MethodGet, "/v1/ns/notes/keys/other", "", "If-None-Match", "*"); resp.StatusCode != 404 {
		t.Errorf("a key that is not there: %s", resp.Status)
	}
}

// TestProblemMembers: a program reads from a problem what it needs: a type of its
// own, and the version held where a condition did not hold.
func TestProblemMembers(t *testing.T) {
	s := serve(t, "")
	ask := func(method, path, body string, header ...string) (p problem.Problem) {
		t.Helper()
		resp, text := s.do(t, method, path, body, header...)
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Status != resp.StatusCode || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
		}
		if want := problem.TypeBase + p.Code; p.Type != want {
			t.Errorf("%s %s: the type is %q; want %q", method, path, p.Type, want)
		}
		return p
	}
	const key = "/v1/ns/notes/keys/k"
	if p := ask(http.MethodPut, key, "1", "If-Match", "*"); p.Code != "conflict" || p.Version != "" {
		t.Errorf("a write over nothing: %+v", p)
	}
	resp, _ := s.do(t, http.MethodPut, key, "1")
	held := strings.Trim(resp.Header.Get("ETag"), `"`)
	for _, p := range []problem.Problem{
		ask(http.MethodPut, key, "2", "If-None-Match", "*"),
		ask(http.MethodPut, key, "2", "If-Match", `"0000000000000001-0000000000000001-0000000000000001"`),
		ask(http.MethodDelete, key, "", "If-Match", `"0000000000000001-0000000000000001-0000000000000001"`),
	} {
		if p.Status != http.StatusPreconditionFailed || p.Code != "conflict" || p.Version != held {
			t.Errorf("%+v; want the version %s", p, held)
		}
	}
	s.do(t, http.MethodDelete, key, "")
	if p := ask(http.MethodGet, key, ""); p.Code != "deleted" || p.Version == "" || p.Version == held {
		t.Errorf("a tombstone: %+v", p)
	}
	if p := ask(http.MethodDelete, key, ""); p.Code != "deleted" || p.Version == "" {
		t.Errorf("a tombstone: %+v", p)
	}
	ask(http.MethodGet, "/v1/ns/notes/keys?limit=x", "")
	ask(http.MethodGet, "/v1/nowhere", "")
	ask(http.MethodPost, "/v1/sync", "not JSON", "Content-Type", "application/json")
}
