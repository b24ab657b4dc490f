package client

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// TestExportCut: an export that breaks off is an error, however much came.
func TestExportCut(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("line\n", 100_000))
		panic(http.ErrAbortHandler)
	})
	var out bytes.Buffer
	err := c.Export(t.Context(), api.ExportParams{NSParams: api.OfNS("notes")}, &out)
	if err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("error %v after %d bytes; want that it broke off", err, out.Len())
	}
}

// TestExportEndsEarly: an export that ends early copies whole lines alone, says behind which key to go
// on, and is the error that the daemon has said, if it has.
func TestExportEndsEarly(t *testing.T) {
	const whole = `{"key":"a","value":"one"}` + "\n" + `{"key64":"/w==","version":"v","deleted":true}` + "\n"
	for name, of := range map[string]struct {
		end  string
		want error
		exit int
	}{
		"said": {`{"problem":{"code":"unreachable","detail":"of shard 3"}}` + "\n", peer.ErrUnreachable, problem.ExitTryAgain},
		"cut":  {`{"key":"b","val`, io.ErrUnexpectedEOF, problem.ExitNoDaemon},
	} {
		c := against(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "after=%00" {
				t.Errorf("asked with %q", r.URL.RawQuery)
			}
			_, _ = io.WriteString(w, whole+of.end)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		var out bytes.Buffer
		err := c.Export(t.Context(), api.ExportParams{NSParams: api.OfNS("notes"), After: "\x00"}, &out)
		early, ok := errors.AsType[*ExportError](err)
		if !ok || string(early.Last) != "\xff" || !errors.Is(err, of.want) || problem.Exit(err) != of.exit {
			t.Errorf("%s: %v", name, err)
		}
		if out.String() != whole {
			t.Errorf("%s: copied %q", name, out.String())
		}
	}
}
