package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

// TestReadyzSynced: a node that is alone is ready whatever is asked; one with another
// member is not before a sync has proved the two equal.
func TestReadyzSynced(t *testing.T) {
	s := serve(t, "")
	ready := func(path string, want int) {
		t.Helper()
		if resp, body := s.do(t, http.MethodGet, path, ""); resp.StatusCode != want {
			t.Errorf("%s: %s %s; want %d", path, resp.Status, body, want)
		}
	}
	ready("/readyz?synced=15m", http.StatusOK)
	ready("/readyz?synced=soon", http.StatusBadRequest)
	ns, err := s.node.Namespace("notes")
	if err != nil {
		t.Fatal(err)
	}
	other, err := api.ParseID("12D3KooWJyWUCsoEAMkNX4Tb7nD2NP8PXsNsXHnskQ87dnzjXUos")
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.SetRole(t.Context(), other, peer.RoleRead); err != nil {
		t.Fatal(err)
	}
	ready("/readyz", http.StatusOK)
	ready("/readyz?synced=15m", http.StatusServiceUnavailable)
	resp, body := s.do(t, http.MethodGet, "/v1/ns/notes/status?cluster=true&within=2s", "")
	if resp.StatusCode != http.StatusOK || !strings.Contains(body, `"reachable":false`) || !strings.Contains(body, `"self":true`) {
		t.Errorf("%s %s", resp.Status, body)
	}
	if resp, body := s.do(t, http.MethodGet, "/v1/ns/notes/status", ""); strings.Contains(body, `"cluster"`) {
		t.Errorf("%s %s", resp.Status, body)
	}
	ready("/v1/ns/notes/status?cluster=true&within=1h", http.StatusBadRequest)
}
