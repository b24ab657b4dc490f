package httpapi_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// description is where tools/openapi.sh wants the description to be written.
var description = flag.String("openapi", "", "write the OpenAPI description to this file")

// TestOpenAPI: the description names each route, with its problem, and no
// other.
func TestOpenAPI(t *testing.T) {
	s := serve(t, "")
	resp, body := s.do(t, http.MethodGet, "/openapi.json", "")
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/openapi+json" {
		t.Fatalf("%s %s", resp.Status, resp.Header)
	}
	if *description != "" {
		if err := os.WriteFile(*description, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Summary     string
			Security    []map[string]any
			Responses   map[string]struct{ Content map[string]any }
		}
		Components struct {
			Schemas         map[string]any
			SecuritySchemes map[string]struct{ Type, Scheme string }
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		t.Errorf("OpenAPI version %q", doc.OpenAPI)
	}
	if scheme := doc.Components.SecuritySchemes["token"]; scheme.Type != "http" || scheme.Scheme != "bearer" {
		t.Errorf("the token is described as %+v", scheme)
	}
	for name := range doc.Components.Schemas {
		if !strings.Contains(body, `"#/components/schemas/`+name+`"`) {
			t.Errorf("nothing refers to the schema %s", name)
		}
	}
	for _, refusal := range []struct{ path, method, status string }{
		{"/v1/ns/{ns}/keys/{key}", "get", "401"},
		{"/v1/ns/{ns}/keys/{key}", "get", "404"},
		{"/v1/ns/{ns}/keys/{key}", "get", "410"},
		{"/v1/ns/{ns}/keys/{key}", "put", "412"},
		{"/v1/ns/{ns}/keys/{key}", "put", "413"},
		{"/v1/ns/{ns}/keys/{key}", "delete", "412"},
		{"/v1/ns/{ns}/import", "post", "413"},
		{"/v1/join", "post", "403"},
	} {
		if _, ok := doc.Paths[refusal.path][refusal.method].Responses[refusal.status].Content["application/problem+json"]; !ok {
			t.Errorf("%s %s does not say that it may answer %s", refusal.method, refusal.path, refusal.status)
		}
	}
	if s := doc.Paths["/healthz"]["get"].Security; len(s) != 1 || len(s[0]) != 0 {
		t.Errorf("/healthz, which needs no token, demands %v", s)
	}
	var got []string
	for path, item := range doc.Paths {
		for method, op := range item {
			got = append(got, strings.ToUpper(method)+" "+path)
			if op.OperationID == "" || op.Summary == "" {
				t.Errorf("%s %s has no id or summary", method, path)
			}
			if _, ok := op.Responses["default"].Content["application/problem+json"]; !ok {
				t.Errorf("%s %s does not say that it may answer with a problem", method, path)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"DELETE /v1/ns/{ns}", "DELETE /v1/ns/{ns}/conflicts", "DELETE /v1/ns/{ns}/conflicts/{seq}", "DELETE /v1/ns/{ns}/invites/{id}", "DELETE /v1/ns/{ns}/keys/{key}", "DELETE /v1/ns/{ns}/lost", "DELETE /v1/ns/{ns}/members/{id}", "DELETE /v1/ns/{ns}/rejected", "DELETE /v1/ns/{ns}/rejected/{seq}", "DELETE /v1/peers/{id}",
		"GET /healthz", "GET /metrics", "GET /readyz",
		"GET /v1/namespaces", "GET /v1/ns/{ns}/collection", "GET /v1/ns/{ns}/conflicts", "GET /v1/ns/{ns}/conflicts/{seq}", "GET /v1/ns/{ns}/diff", "GET /v1/ns/{ns}/diff/keys", "GET /v1/ns/{ns}/export", "GET /v1/ns/{ns}/future",
		"GET /v1/ns/{ns}/invites", "GET /v1/ns/{ns}/keys", "GET /v1/ns/{ns}/keys/{key}", "GET /v1/ns/{ns}/layout", "GET /v1/ns/{ns}/locate/{key}", "GET /v1/ns/{ns}/members", "GET /v1/ns/{ns}/rejected", "GET /v1/ns/{ns}/rejected/{seq}", "GET /v1/ns/{ns}/status", "GET /v1/ns/{ns}/watch", "GET /v1/ns/{ns}/why/{key}",
		"GET /v1/peers", "GET /v1/status", "GET /v1/syncs", "GET /v1/version",
		"POST /v1/backups", "POST /v1/invites", "POST /v1/join", "POST /v1/namespaces", "POST /v1/ns/{ns}/batch", "POST /v1/ns/{ns}/collection", "POST /v1/ns/{ns}/conflicts/{seq}/restore",
		"POST /v1/ns/{ns}/import", "POST /v1/ns/{ns}/layout", "POST /v1/ns/{ns}/members/{id}/lapse", "POST /v1/ns/{ns}/pause", "POST /v1/ns/{ns}/reindex", "POST /v1/ns/{ns}/rejected/{seq}/restore", "POST /v1/ns/{ns}/restamp", "POST /v1/ns/{ns}/resume", "POST /v1/ns/{ns}/verify", "POST /v1/ns/{ns}/wait", "POST /v1/ns/{ns}/watch",
		"POST /v1/peers", "POST /v1/peers/{id}/pause", "POST /v1/peers/{id}/resume", "POST /v1/sync", "PUT /v1/ns/{ns}/keys/{key}", "PUT /v1/ns/{ns}/members/{id}",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the description names\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
