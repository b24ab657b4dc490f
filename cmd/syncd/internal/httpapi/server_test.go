package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/httpapi"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a node in memory behind the API.
type served struct {
	*httptest.Server
	node   *peer.Node
	client *client.Client
}

func serve(t *testing.T, token string) *served { return serveAt(t, token, time.Now) }

// serveAt serves a node with a clock of its own.
func serveAt(t *testing.T, token string, clock func() time.Time) *served {
	t.Helper()
	registry := prometheus.NewRegistry()
	node, err := peer.Open(t.Context(), peer.Config{ListenAddrs: []string{}, Registerer: registry, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.CreateNamespace(t.Context(), "notes", peer.Policy{}); err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.Handler(httpapi.Config{Node: node, Version: api.Program{Version: "v0"}, Token: token, Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	s := &served{Server: httptest.NewServer(handler), node: node}
	addr, err := endpoint.ParseAddr(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.client = client.New(addr, token)
	t.Cleanup(func() {
		s.client.Close()
		s.Close()
		if err := node.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// do sends a request as it is, and returns the answer with its body read.
func (s *served) do(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read only
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// TestProblems: each refusal is a problem with the right status and code.
func TestProblems(t *testing.T) {
	s := serve(t, "")
	ctx := t.Context()
	version, err := s.client.Put(ctx, api.PutParams{RecordParams: api.Record("notes", []byte("gone"))}, strings.NewReader("v"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.Delete(ctx, api.DeleteParams{RecordParams: api.Record("notes", []byte("gone"))}); err != nil {
		t.Fatal(err)
	}
	const stranger = "12D3KooWFHWkcADzzppY9P18i5GDzvgB2Bpo1JXj3o8rf4Axa84X"
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		code               string
	}{
		{http.MethodGet, "/v1/ns/notes/keys/none", "", nil, 404, "not_found"},
		{http.MethodGet, "/v1/ns/notes/keys/gone", "", nil, 410, "deleted"},
		{http.MethodGet, "/v1/ns/other/keys/none", "", nil, 404, "no_namespace"},
		{http.MethodDelete, "/v1/ns/notes/keys/none", "", nil, 404, "not_found"},
		{http.MethodPut, "/v1/ns/notes/keys/gone", "v", []string{"If-Match", `"` + version + `"`}, 412, "conflict"},
		{http.MethodPut, "/v1/ns/notes/keys/gone", "v", []string{"If-None-Match", "*"}, 412, "conflict"},
		{http.MethodPut, "/v1/ns/notes/keys/gone", "v", []string{"If-Match", "x"}, 400, "usage"},
		{http.MethodPut, "/v1/ns/notes/keys/k", strings.Repeat("x", 1<<20+1), nil, 413, "limit"},
		{http.MethodPut, "/v1/ns/notes/keys/" + strings.Repeat("k", 1025), "v", nil, 413, "limit"},
		{http.MethodGet, "/v1/ns/notes/key64/!", "", nil, 400, "usage"},
		{http.MethodGet, "/v1/ns/notes/keys?limit=0", "", nil, 422, "usage"},
		{http.MethodGet, "/v1/ns/notes/keys?cursor=!", "", nil, 400, "usage"},
		{http.MethodGet, "/v1/ns/notes/keys?page=2", "", nil, 422, "usage"},
		{http.MethodPost, "/v1/ns/notes/import", "oops\n", nil, 400, "malformed"},
		{http.MethodPost, "/v1/namespaces", `{"name":"notes"}`, nil, 409, "exists"},
		{http.MethodPost, "/v1/namespaces", `{"nmae":"x"}`, nil, 422, "usage"},
		{http.MethodPost, "/v1/namespaces", `{`, nil, 400, "usage"},
		{http.MethodPost, "/v1/invites", `{"ns":"notes","role":"king"}`, nil, 400, "usage"},
		{http.MethodPost, "/v1/invites", `{"ns":"notes","expires":"-1h"}`, nil, 400, "usage"},
		{http.MethodPost, "/v1/peers", `{"addr":"nonsense"}`, nil, 400, "invalid"},
		{http.MethodDelete, "/v1/ns/notes/conflicts/7", "", nil, 404, "not_found"},
		{http.MethodDelete, "/v1/ns/notes/rejected", "", nil, 422, "usage"},
		{http.MethodDelete, "/v1/ns/notes/rejected?through=0", "", nil, 422, "usage"},
		{http.MethodDelete, "/v1/peers/nonsense", "", nil, 400, "usage"},
		{http.MethodPost, "/v1/sync", `{"peer":"x","ns":"notes"}`, nil, 400, "usage"},
		{http.MethodPost, "/v1/sync", `{"peer":"x","ns":"notes","dir":"up"}`, nil, 422, "usage"},
		{http.MethodPost, "/v1/sync", `{"peer":"` + stranger + `","ns":"notes"}`, nil, 403, "denied"},
		{http.MethodGet, "/v1/ns/notes/diff?peer=" + stranger, "", nil, 403, "denied"},
		{http.MethodGet, "/v1/ns/notes/diff", "", nil, 422, "usage"},
		{http.MethodGet, "/v1/nothing", "", nil, 404, "usage"},
		{http.MethodGet, "/v1/ns/notes/diff?peer=/ip4/192.0.2.1/tcp/1", "", nil, 400, "invalid"},
		{http.MethodGet, "/v1/ns/notes/diff?dir=pull&method=all&peer=" + s.node.ID().String(), "", nil, 403, "denied"},
		{http.MethodGet, "/v1/ns/notes/diff?dir=up&peer=" + s.node.ID().String(), "", nil, 422, "usage"},
		{http.MethodGet, "/v1/ns/notes/diff?peer=" + s.node.ID().String() + "&prefix=" + strings.Repeat("k", 1025), "", nil, 413, "limit"},
		{http.MethodPut, "/v1/ns/notes/keys/k?ttl=-1s", "v", nil, 400, "usage"},
		{http.MethodPut, "/v1/ns/notes/keys/k?ttl=900000h", "v", nil, 413, "limit"},
		{http.MethodGet, "/v1/ns/notes/keys/k?timeout=soon", "", nil, 400, "usage"},
		{http.MethodPut, "/v1/ns/notes/keys/k?timeout=soon", "", nil, 400, "usage"},
		{http.MethodDelete, "/v1/ns/notes/keys/k?timeout=soon", "", nil, 400, "usage"},
		{http.MethodPost, "/v1/peers", `{"addr":"/ip4/192.0.2.1/tcp/1"}`, nil, 400, "invalid"},
		{http.MethodPost, "/v1/join", `{"ticket":"x"}`, nil, 400, "invalid"},
		{http.MethodPost, "/v1/namespaces", `{"name":"bad/name"}`, nil, 400, "invalid"},
		{http.MethodPut, "/v1/ns/notes/keys/none", "v", []string{"If-Match", "*"}, 412, "conflict"},
		{http.MethodPut, "/v1/ns/notes/keys/gone", "v", []string{"If-Match", "*"}, 412, "conflict"},
		{http.MethodDelete, "/v1/ns/notes/keys/none", "", []string{"If-Match", "*"}, 412, "conflict"},
	} {
		resp, body := s.do(t, c.method, c.path, c.body, c.header...)
		var p problem.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.80s: %s is no problem (%v): %s", c.method, c.path, resp.Status, err, body)
			continue
		}
		if resp.StatusCode != c.status || p.Status != c.status || p.Code != c.code || p.Detail == "" {
			t.Errorf("%s %.80s: %s %+v; want %d %s", c.method, c.path, resp.Status, p, c.status, c.code)
		}
	}
}

// TestAnyKey: a key of any bytes goes through the path and comes back in
// lists and exports, in the order of its bytes.
func TestAnyKey(t *testing.T) {
	s := serve(t, "")
	ctx := t.Context()
	held := map[string]string{}
	put := func(key, value []byte) error {
		held[string(key)] = string(value)
		_, err := s.client.Put(ctx, api.PutParams{RecordParams: api.Record("notes", key)}, bytes.NewReader(value))
		return err
	}
	for _, key := range []string{".", "..", "/", "//", "/../", "a/b", "a%2Fb", "\xff", "\x00", " ", "?", "#", "a?b=c#d", "é", "%"} {
		if err := put([]byte(key), []byte("value of "+key)); err != nil {
			t.Fatalf("put %q: %v", key, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "key")
		value := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "value")
		if err := put(key, value); err != nil {
			t.Fatal(err)
		}
		got, err := s.client.Get(ctx, "notes", key, api.ReadParams{})
		if err != nil || !bytes.Equal(got.Bytes, value) || got.Version == "" || got.Expires != "" {
			t.Fatalf("get %q = %+v, %v; want %q", key, got, err, value)
		}
	})
	var keys []string
	for cursor := ""; ; {
		page, err := client.Ask(ctx, s.client, api.ListKeys, api.ListParams{NSParams: api.OfNS("notes"), Cursor: cursor, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range page.Keys {
			keys = append(keys, string(k.Bytes()))
			if k.Size != len(held[string(k.Bytes())]) {
				t.Errorf("%q has %d bytes; listed as %d", k.Bytes(), len(held[string(k.Bytes())]), k.Size)
			}
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	if len(keys) != len(held) || !slices.IsSorted(keys) {
		t.Errorf("%d keys listed of %d, sorted %v", len(keys), len(held), slices.IsSorted(keys))
	}
	// A prefix is any bytes, too.
	page, err := client.Ask(ctx, s.client, api.ListKeys, api.ListParams{NSParams: api.OfNS("notes"), PrefixParams: api.Under("\xff"), Limit: 1000})
	if err != nil || len(page.Keys) == 0 {
		t.Fatalf("keys that begin with ff: %d, %v", len(page.Keys), err)
	}
	for _, k := range page.Keys {
		if !strings.HasPrefix(string(k.Bytes()), "\xff") {
			t.Errorf("%q does not begin with ff", k.Bytes())
		}
	}
	// An export imported elsewhere is exported alike.
	var out, again bytes.Buffer
	other := serve(t, "")
	if err := s.client.Export(ctx, api.ExportParams{NSParams: api.OfNS("notes")}, &out); err != nil {
		t.Fatal(err)
	}
	if _, err := other.client.Import(ctx, api.ImportParams{NSParams: api.OfNS("notes")}, out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := other.client.Export(ctx, api.ExportParams{NSParams: api.OfNS("notes")}, &again); err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("an export that was imported is exported differently")
	}
}

// TestPathsOfOtherClients: unescaped slashes belong to the key, and key64
// gives the two keys that browsers would rewrite.
func TestPathsOfOtherClients(t *testing.T) {
	s := serve(t, "")
	for path, key := range map[string]string{
		"/v1/ns/notes/keys/a/b//c": "a/b//c",
		"/v1/ns/notes/keys/a%2Fb":  "a/b",
		"/v1/ns/notes/key64/Li4":   "..",
		"/v1/ns/notes/key64/_w":    "\xff",
		"/v1/ns/notes/keys/%2E":    ".",
	} {
		resp, body := s.do(t, http.MethodPut, path, "v:"+key)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("ETag") == "" {
			t.Errorf("PUT %s: %s %s", path, resp.Status, body)
		}
		got, err := s.client.Get(t.Context(), "notes", []byte(key), api.ReadParams{})
		if err != nil || string(got.Bytes) != "v:"+key {
			t.Errorf("after PUT %s, %q is %q, %v", path, key, got.Bytes, err)
		}
	}
}

// TestMethods: a method that a route does not take is 405, with those that it
// does, and the path as it was asked for.
func TestMethods(t *testing.T) {
	s := serve(t, "")
	for _, c := range []struct{ method, path, allow string }{
		{http.MethodPatch, "/v1/ns/notes/keys/x", "DELETE, GET, HEAD, PUT"},
		{http.MethodPost, "/v1/ns/notes/key64/eA", "DELETE, GET, HEAD, PUT"},
		{http.MethodPost, "/healthz", "GET, HEAD"},
		{http.MethodDelete, "/v1/namespaces", "GET, HEAD, POST"},
		{http.MethodGet, "/v1/sync?x=y", "POST"},
	} {
		resp, body := s.do(t, c.method, c.path, "")
		path, _, _ := strings.Cut(c.path, "?")
		if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != c.allow || !strings.Contains(body, `"`+c.method+" "+path+":") {
			t.Errorf("%s %s: %s, Allow %q, %s; want 405, %q", c.method, c.path, resp.Status, resp.Header.Get("Allow"), body, c.allow)
		}
	}
}

func TestToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	token, err := endpoint.MakeToken(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := endpoint.MakeToken(path); err != nil || again != token {
		t.Fatalf("a token that is there is kept: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the token's mode is %v, %v", info.Mode(), err)
	}
	s := serve(t, token)
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/metrics", "", 200},
		{"/openapi.json", "", 200},
		{"/v1/status", "", 401},
		{"/v1/status", "Bearer wrong", 401},
		{"/v1/status", token, 401},
		{"/v1/status", "Basic " + token, 401},
		{"/v1/status", "Bearer " + token, 200},
		{"/v1/status", "bearer " + token, 200},
		{"/v1/status", "BEARER  " + token, 200},
	} {
		resp, body := s.do(t, http.MethodGet, c.path, "", "Authorization", c.header)
		if resp.StatusCode != c.status {
			t.Errorf("%s with %q: %s %s; want %d", c.path, c.header, resp.Status, body, c.status)
		}
	}
	if _, err := client.Ask(t.Context(), s.client, api.GetStatus, api.None{}); err != nil {
		t.Error(err)
	}
	addr, err := endpoint.ParseAddr(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	wrong := client.New(addr, "wrong")
	defer wrong.Close()
	if _, err := client.Ask(t.Context(), wrong, api.GetStatus, api.None{}); !errors.Is(err, problem.ErrToken) {
		t.Errorf("error %v; want ErrToken", err)
	}
}

// TestContentCoding: a body that is coded is refused, whatever the route, and nothing is stored.
func TestContentCoding(t *testing.T) {
	s := serve(t, "")
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPut, "/v1/ns/notes/keys/k", "v"},
		{http.MethodPost, "/v1/ns/notes/batch", `[{"key":"k","value":"v"}]`},
		{http.MethodPost, "/v1/ns/notes/import", `{"key":"k","value":"v"}`},
		{http.MethodPost, "/v1/namespaces", `{"name":"other"}`},
		{http.MethodPost, "/v1/ns/notes/watch", `{"since":"start"}`},
		{http.MethodDelete, "/v1/ns/notes/keys/k", "v"},
	} {
		for _, coding := range []string{"gzip", "br", "identity, gzip", "snafu", "GZIP"} {
			resp, body := s.do(t, c.method, c.path, c.body, "Content-Encoding", coding)
			if resp.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(body, coding) {
				t.Errorf("%s %s, coded %s: %s %s; want 415", c.method, c.path, coding, resp.Status, body)
			}
		}
	}
	if resp, _ := s.do(t, http.MethodGet, "/v1/ns/notes/keys/k", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a refused request has stored something: %s", resp.Status)
	}
	if resp, _ := s.do(t, http.MethodGet, "/v1/ns/other/keys", ""); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a refused request has made something: %s", resp.Status)
	}
	if resp, body := s.do(t, http.MethodPut, "/v1/ns/notes/keys/k", "v", "Content-Encoding", "Identity"); resp.StatusCode >= 300 {
		t.Errorf("a body without a coding: %s %s", resp.Status, body)
	}
}

// TestMetrics: names begin with syncd_ and the text is what Prometheus reads.
func TestMetrics(t *testing.T) {
	s := serve(t, "")
	resp, body := s.do(t, http.MethodGet, "/metrics", "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, "\nsyncd_") {
		t.Errorf("%s: no metric begins with syncd_:\n%.500s", resp.Status, body)
	}
}
