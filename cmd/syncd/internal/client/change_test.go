package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// TestUnansweredWrite: a write that ends without an answer says whether it is written, as far
// as that is known, whatever ends it.
func TestUnansweredWrite(t *testing.T) {
	writes := map[string]func(context.Context, *Client) (string, error){
		"put": func(ctx context.Context, c *Client) (string, error) {
			return c.Put(ctx, "notes", []byte("k"), strings.NewReader("v"), PutOptions{Wait: 1}, Condition{})
		},
		"delete": func(ctx context.Context, c *Client) (string, error) {
			return c.Delete(ctx, "notes", []byte("k"), AckOptions{}, Condition{})
		},
		"batch": func(ctx context.Context, c *Client) (string, error) {
			_, err := c.Batch(ctx, "notes", []byte("[]"))
			return "", err
		},
		"restore": func(ctx context.Context, c *Client) (string, error) {
			_, err := c.RestoreKept(ctx, "notes", Conflicts, 1)
			return "", err
		},
	}
	for _, c := range []struct {
		name   string
		early  bool // the daemon says the version before its answer
		daemon func(w http.ResponseWriter, interrupt func(), gone <-chan struct{})
		exit   int
		says   string
	}{
		{"interrupted, and told", true, func(_ http.ResponseWriter, interrupt func(), gone <-chan struct{}) { interrupt(); <-gone }, problem.ExitInterrupted, "context canceled; it is written, as version v1, and not confirmed"},
		{"the daemon dies, and told", true, func(http.ResponseWriter, func(), <-chan struct{}) { panic(http.ErrAbortHandler) }, problem.ExitNoDaemon, "it is written, as version v1, and not confirmed"},
		{"the daemon dies", false, func(http.ResponseWriter, func(), <-chan struct{}) { panic(http.ErrAbortHandler) }, problem.ExitNoDaemon, "whether it is written is not known"},
		{"interrupted, and answered then", false, func(w http.ResponseWriter, interrupt func(), _ <-chan struct{}) {
			interrupt()
			w.Header().Set("ETag", `"v1"`)
			_, _ = io.WriteString(w, "{}")
		}, problem.ExitOK, ""},
		{"refused", false, func(w http.ResponseWriter, _ func(), _ <-chan struct{}) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":"no_namespace","detail":"none"}`)
		}, problem.ExitNotFound, "none"},
	} {
		for name, write := range writes {
			if c.early && name != "put" {
				continue
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				daemon := against(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if c.early && r.Header.Get(api.EarlyHeader) != "" {
						w.Header().Set("ETag", `"v1"`)
						w.WriteHeader(http.StatusProcessing)
					}
					c.daemon(w, interrupt, r.Context().Done())
				})
				version, err := write(ctx, daemon)
				if problem.Exit(err) != c.exit || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, exit code %d; want %q, %d", err, problem.Exit(err), c.says, c.exit)
				}
				if c.early && version != "v1" {
					t.Errorf("version %q; want v1", version)
				}
			})
		}
	}
	// What was never sent is not written.
	gone := New(against(t, nil).addr, "")
	gone.addr.Address = "127.0.0.1:0"
	if _, err := writes["put"](t.Context(), New(gone.addr, "")); !errors.Is(err, problem.ErrNoDaemon) || strings.Contains(err.Error(), "written") {
		t.Errorf("error %v; want that there is no daemon, alone", err)
	}
}
