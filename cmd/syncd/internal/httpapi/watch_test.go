package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/httpapi"
	"github.com/syncd-io/syncd/peer"
)

var errSeen = errors.New("seen")

// watch takes n events behind a cursor, as "kind key=value".
func (s *served) watch(t *testing.T, since, prefix string, n int) (seen []string, last api.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := s.client.Watch(ctx, "notes", since, []byte(prefix), func(e *api.Event) error {
		text := fmt.Sprintf("%s %s", e.Kind, e.Key.Bytes())
		switch {
		case e.Value != nil:
			text += "=" + *e.Value
		case e.Kind == "put":
			text += fmt.Sprintf("=%x", e.Value64)
		}
		if seen, last = append(seen, text), *e; len(seen) == n {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		t.Fatalf("the watch ends with %v, after %q", err, seen)
	}
	return seen, last
}

func TestWatch(t *testing.T) {
	s := serve(t, "")
	_, start := s.watch(t, "", "", 1) // tells at once where it is
	if start.Kind != "at" || start.Cursor == "" {
		t.Fatalf("a watch begins with %+v", start)
	}
	s.do(t, http.MethodPut, "/v1/ns/notes/keys/a", "1")
	s.do(t, http.MethodPut, "/v1/ns/notes/keys/b?ttl=1h", "\xff")
	s.do(t, http.MethodDelete, "/v1/ns/notes/keys/a", "")
	s.do(t, http.MethodPut, "/v1/ns/notes/keys/%FF", "c")
	seen, last := s.watch(t, start.Cursor, "", 3)
	if got, want := strings.Join(seen, " "), "put b=ff delete a put \xff=c"; got != want {
		t.Errorf("the watch tells of %q, want %q", got, want)
	}
	if last.Version == "" || last.Time.IsZero() || last.Key.Key != nil {
		t.Errorf("the last event is %+v", last)
	}
	if seen, e := s.watch(t, start.Cursor, "b", 1); seen[0] != "put b=ff" || e.Expires.IsZero() {
		t.Errorf("with a prefix the watch tells of %q: %+v", seen, e)
	}
	if seen, _ := s.watch(t, "start", "", 3); strings.Join(seen, " ") != "put b=ff put \xff=c at " {
		t.Errorf("from the start it tells of %q", seen)
	}
	for since, want := range map[string]error{"never": peer.ErrInvalid, "0123456789abcdef.7": peer.ErrCursorExpired} {
		if err := s.client.Watch(t.Context(), "notes", since, nil, nil); !errors.Is(err, want) {
			t.Errorf("since %s: %v", since, err)
		}
	}
	resp, body := s.do(t, http.MethodGet, "/v1/ns/notes/watch?since=0123456789abcdef.7", "")
	if resp.StatusCode != http.StatusGone || resp.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"code":"cursor_expired"`) {
		t.Errorf("an expired cursor: %s %s %s", resp.Status, resp.Header, body)
	}
}

// TestWatchLongCursor: a cursor that is longer than the head of a request may be comes to the node, which
// says what is wrong with it.
func TestWatchLongCursor(t *testing.T) {
	s := serve(t, "")
	err := s.client.Watch(t.Context(), "notes", "s1"+strings.Repeat(",start", 1<<19), nil, nil)
	if !errors.Is(err, peer.ErrInvalid) || strings.Contains(err.Error(), "431") {
		t.Errorf("a cursor of 3 MiB: %.300v", err)
	}
}

// TestWatchStream looks at the bytes of a stream, as browsers read them: the last event's
// id takes the place of the address, and the stream ends with an event when the daemon
// does.
func TestWatchStream(t *testing.T) {
	s := serve(t, "")
	_, start := s.watch(t, "", "", 1)
	s.do(t, http.MethodPut, "/v1/ns/notes/keys/a", "1")
	ending := make(chan struct{})
	handler, err := httpapi.Handler(httpapi.Config{Node: s.node, Ending: ending})
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = handler
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/v1/ns/notes/watch?since=start", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", start.Cursor)
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("the content type is %s", kind)
	}
	lines := bufio.NewScanner(resp.Body)
	var got []string
	for lines.Scan() {
		line := lines.Text()
		if got = append(got, strings.SplitN(line, ",", 2)[0]); line == "" && len(got) == 4 {
			close(ending)
		}
	}
	log, _, _ := strings.Cut(start.Cursor, ".")
	want := []string{"id: " + log + ".1", "event: put", `data: {"cursor":"` + log + `.1"`, ""}
	if len(got) < 7 || strings.Join(got[:4], "\n") != strings.Join(want, "\n") {
		t.Fatalf("the stream is %q", got)
	}
	if end := got[len(got)-3:]; end[0] != "event: error" || !strings.Contains(end[1], "docs/PROBLEMS.md#closed") {
		t.Errorf("the stream ends with %q", end)
	}
}
