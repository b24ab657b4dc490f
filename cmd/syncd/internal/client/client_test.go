package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/endpoint"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// against makes a client of a server that does what the handler says.
func against(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	addr, err := endpoint.ParseAddr(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := New(addr, "")
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

// TestForeignAnswers: what is no problem of ours is still an error that says
// what came.
func TestForeignAnswers(t *testing.T) {
	for body, want := range map[string]string{
		"<html>proxy</html>":                 "the daemon answered 403 Forbidden: <html>proxy",
		`{"code":"denied","detail":"no"}`:    "no",
		`{"code":"","detail":"no"}`:          "the daemon answered 403",
		`{"code":"unheard-of","detail":"x"}`: "x",
	} {
		c := against(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
		})
		_, err := Ask(t.Context(), c, api.GetStatus, api.None{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", body, err, want)
		}
		if denied := errors.Is(err, peer.ErrDenied); denied != strings.Contains(body, "denied") {
			t.Errorf("%s: is ErrDenied: %v", body, denied)
		}
	}
	c := against(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "not JSON") })
	if _, err := Ask(t.Context(), c, api.GetStatus, api.None{}); err == nil || !strings.Contains(err.Error(), "reading the daemon's answer") {
		t.Errorf("error %v; want one about the answer", err)
	}
}

func TestNoDaemon(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	addr, err := endpoint.ParseAddr(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	c := New(addr, "")
	defer c.Close()
	if _, err := Ask(t.Context(), c, api.GetStatus, api.None{}); !errors.Is(err, problem.ErrNoDaemon) || !strings.Contains(err.Error(), "syncd serve") {
		t.Errorf("error %v; want ErrNoDaemon and what to do", err)
	}
	broken := against(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := Ask(t.Context(), broken, api.GetStatus, api.None{}); !errors.Is(err, problem.ErrNoDaemon) || !strings.Contains(err.Error(), "broke") {
		t.Errorf("error %v; want ErrNoDaemon and that the connection broke", err)
	}
}

// What was found is read beside the error where too few hosts have answered.
func TestTooFewAnswers(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Syncd-Answers", "1/3")
		if !strings.HasSuffix(r.URL.Path, "/k") {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"too_few","detail":"0 of 3 hosts answered"}`)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Syncd-Detail", "1 of 3 hosts answered; 2 are needed")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "value")
	})
	v, err := c.Get(t.Context(), "notes", []byte("k"), api.ReadParams{})
	if string(v.Bytes) != "value" || v.Version != "v1" || v.Answers != "1/3" || !errors.Is(err, peer.ErrTooFew) || problem.Exit(err) != problem.ExitTryAgain {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := c.Get(t.Context(), "notes", []byte("absent"), api.ReadParams{}); v.Version != "" || problem.Exit(err) != problem.ExitTryAgain {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestTimeout: the caller's deadline comes back as such.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	c := against(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, c, api.GetStatus, api.None{}); !errors.Is(err, context.DeadlineExceeded) || problem.Exit(err) != problem.ExitLimit {
		t.Errorf("error %v; want the deadline", err)
	}
}

// TestSyncReport: the report of a sync that failed comes with the error.
func TestSyncReport(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{"code":"unreachable","detail":"gone","report":{"applied":7}}`)
	})
	r, err := c.Sync(t.Context(), api.SyncRequest{})
	if !errors.Is(err, peer.ErrUnreachable) || r.Applied != 7 {
		t.Errorf("report %+v, error %v", r, err)
	}
}

// TestAckTimeout: a write that waits for hosts tells the daemon for how long, and has the version of what
// stays written.
func TestAckTimeout(t *testing.T) {
	var asked []string
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RawQuery)
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = io.WriteString(w, `{"code":"unconfirmed","detail":"1 of 2 hosts","version":"v"}`)
	})
	put, err := c.Put(t.Context(), api.PutParams{RecordParams: api.Record("notes", []byte("k")), Ack: "all", Timeout: "3s"}, nil)
	if !errors.Is(err, peer.ErrUnconfirmed) || put != "v" {
		t.Errorf("put: version %q, %v", put, err)
	}
	gone, err := c.Delete(t.Context(), api.DeleteParams{RecordParams: api.Record("notes", []byte("k")), Ack: "all", Timeout: "3s"})
	if !errors.Is(err, peer.ErrUnconfirmed) || gone != "v" {
		t.Errorf("delete: version %q, %v", gone, err)
	}
	if want := []string{"PUT ack=all&timeout=3s", "DELETE ack=all&timeout=3s"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
