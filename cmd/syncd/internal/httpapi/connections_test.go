package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/peer"
)

// TestBoundConnections: as many connections as are allowed are served, the next ones are told
// that the server is busy, and one that ends makes room for another.
func TestBoundConnections(t *testing.T) {
	const most = 3
	var ends [most]chan struct{}
	for i := range ends {
		ends[i] = make(chan struct{})
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
		_ = http.NewResponseController(w).Flush()
		if i := strings.TrimPrefix(r.URL.Path, "/"); i != "" {
			<-ends[i[0]-'0']
		}
	}))
	BoundConnections(srv.Config, 4*most+3)
	srv.Start()
	defer srv.Close()
	ask := func(path string) (*http.Response, string) {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 200)
		n, err := r.Body.Read(line)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return r, string(line[:n])
	}
	var held [most]*http.Response
	for i := range held {
		var line string
		if held[i], line = ask("/" + string(rune('0'+i))); line != "ok\n" {
			t.Fatalf("connection %d: %s", i, line)
		}
	}
	for range 2 * most { // those that are refused take no place
		if r, line := ask("/"); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(line, peer.ErrBusy.Error()) || r.Body.Close() != nil {
			t.Fatalf("one too many: %s, %s", r.Status, line)
		}
	}
	close(ends[0])
	_ = held[0].Body.Close()
	for t.Context().Err() == nil {
		r, _ := ask("/")
		_ = r.Body.Close()
		if r.StatusCode == http.StatusOK {
			break
		}
	}
	for i := 1; i < most; i++ {
		close(ends[i])
		_ = held[i].Body.Close()
	}
}
