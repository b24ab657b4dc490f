package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// TestSyncStops: when the daemon ends within a sync, the remaining members are
// not asked for one by one.
func TestSyncStops(t *testing.T) {
	syncs := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/ns/notes/status", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(api.NamespaceStatus{MemberList: []api.Member{{ID: "one"}, {ID: "two"}, {ID: "three"}}})
	})
	mux.HandleFunc("POST /v1/sync", func(w http.ResponseWriter, _ *http.Request) {
		syncs++
		p := problem.From(peer.ErrClosed)
		w.WriteHeader(p.Status)
		json.NewEncoder(w).Encode(p)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "api.token"), []byte(strings.Repeat("0", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	exit := Main(t.Context(), []string{"sync", "--ns", "notes", "--data-dir", dir, "--api", srv.URL}, nil, io.Discard, &said)
	if syncs != 1 || exit != problem.ExitTryAgain || !strings.Contains(said.String(), "2 syncs were not begun") {
		t.Errorf("%d syncs were begun, exit code %d; want 1 and %d:\n%s", syncs, exit, problem.ExitTryAgain, said.String())
	}
}
