package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

// The test's node is in memory: what a backup does is shown by the program's
// script; here, that a refusal is a problem, and no answer of lines.
func TestBackupRefused(t *testing.T) {
	s := serve(t, "")
	dir := filepath.Join(t.TempDir(), "b")
	for path, want := range map[string]string{dir: "cannot be copied", "relative": "absolute path", "": "dir"} {
		_, err := s.client.Backup(t.Context(), api.NewBackup{Dir: path}, func(int64) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("into %q: %v", path, err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the folder was made")
	}
	resp, body := s.do(t, http.MethodPost, "/v1/backups", `{"dir":"`+dir+`"}`)
	if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"code":"invalid"`) {
		t.Errorf("%s %s %s", resp.Status, resp.Header, body)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.client.Backup(gone, api.NewBackup{Dir: dir}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.client.Backup(t.Context(), api.NewBackup{Dir: dir}, nil); !errors.Is(err, peer.ErrInvalid) {
		t.Error(err)
	}
}
