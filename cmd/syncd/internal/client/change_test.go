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

// TestUnansweredWrite: a write that ends without an answer says that it is not known whether it is
// written, whatever ends it.
func TestUnansweredWrite(t *testing.T) {
	writes := map[string]func(context.Context, *Client) (string, error){
		"put": func(ctx context.Context, c *Client) (string, error) {
			return c.Put(ctx, api.PutParams{RecordParams: api.Record("notes", []byte("k"))}, strings.NewReader("v"))
		},
		"delete": func(ctx context.Context, c *Client) (string, error) {
			return c.Delete(ctx, api.DeleteParams{RecordParams: api.Record("notes", []byte("k"))})
		},
		"batch": func(ctx context.Context, c *Client) (string, error) {
			_, err := c.Batch(ctx, "notes", []byte("[]"), "")
			return "", err
		},
		"restore": func(ctx context.Context, c *Client) (string, error) {
			_, err := c.RestoreKept(ctx, api.Conflicts, api.KeptParams{NSParams: api.OfNS("notes"), Seq: 1})
			return "", err
		},
	}
	for _, c := range []struct {
		name   string
		daemon func(w http.ResponseWriter, interrupt func(), gone <-chan struct{})
		exit   int
		says   string
	}{
		{"interrupted", func(_ http.ResponseWriter, interrupt func(), gone <-chan struct{}) { interrupt(); <-gone }, problem.ExitInterrupted, "whether it is written is not known"},
		{"the daemon dies", func(http.ResponseWriter, func(), <-chan struct{}) { panic(http.ErrAbortHandler) }, problem.ExitNoDaemon, "whether it is written is not known"},
		{"interrupted, and answered then", func(w http.ResponseWriter, interrupt func(), _ <-chan struct{}) {
			interrupt()
			w.Header().Set("ETag", `"v1"`)
			_, _ = io.WriteString(w, "{}")
		}, problem.ExitOK, ""},
		{"refused", func(w http.ResponseWriter, _ func(), _ <-chan struct{}) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"code":"no_namespace","detail":"none"}`)
		}, problem.ExitNotFound, "none"},
	} {
		for name, write := range writes {
			if c.name == "interrupted" && name != "put" {
				continue // it takes the time that is given to an answer
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				daemon := against(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					c.daemon(w, interrupt, r.Context().Done())
				})
				_, err := write(ctx, daemon)
				if problem.Exit(err) != c.exit || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, exit code %d; want %q, %d", err, problem.Exit(err), c.says, c.exit)
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
