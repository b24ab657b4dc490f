package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// A node that is the only member waits for no other, and refuses to wait for more than
// there are before it writes.
func TestWaitsOfOneMember(t *testing.T) {
	s := serve(t, "")
	key := []byte("a/b.c")
	if _, err := s.client.Put(t.Context(), api.PutParams{RecordParams: api.Record("notes", key), Ack: "2"}, strings.NewReader("v")); !errors.Is(err, peer.ErrInvalid) {
		t.Errorf("a write that cannot be confirmed: %v", err)
	}
	if _, err := s.client.Get(t.Context(), "notes", key, api.ReadParams{}); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("it was written: %v", err)
	}
	version, err := s.client.Put(t.Context(), api.PutParams{RecordParams: api.Record("notes", key)}, strings.NewReader("v"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(key)
	if waited, err := s.client.Wait(t.Context(), "notes", api.WaitRequest{Key: &text, Version: version}); err != nil || len(waited.Held)+len(waited.Missing) != 0 {
		t.Errorf("%+v, %v", waited, err)
	}
	if whys, err := client.Ask(t.Context(), s.client, api.Explain, api.WhyParams{RecordParams: api.Record("notes", key), Peer: ""}); err != nil || len(whys.Peers) != 0 || string(whys.Bytes()) != text {
		t.Errorf("%+v, %v", whys, err)
	}
	for path, status := range map[string]int{
		"/v1/ns/notes/why/a%2Fb.c":               http.StatusOK,
		"/v1/ns/notes/why/k?peer=nobody":         http.StatusBadRequest,
		"/v1/ns/none/why/k":                      http.StatusNotFound,
		"/v1/ns/notes/why64/!":                   http.StatusBadRequest,
		"/v1/ns/notes/keys/k?ack=1":              http.StatusUnprocessableEntity, // of a write alone
		"/v1/ns/notes/keys/k?read=most":          http.StatusBadRequest,
		"/v1/ns/notes/keys/k?at_least=1":         http.StatusBadRequest,
		"/v1/ns/notes/why/k?peer=/ip4/127.0.0.1": http.StatusBadRequest,
	} {
		if resp, body := s.do(t, http.MethodGet, path, ""); resp.StatusCode != status {
			t.Errorf("%s: %s: %s", path, resp.Status, body)
		}
	}
	for name, in := range map[string]api.WaitRequest{
		"a version without a key": {Version: version}, "both keys": {Key: &text, Key64: key}, "no version": {Key: &text, Version: "1"},
		"a peer": {Peers: []string{"nobody"}}, "a time": {Timeout: "soon"}, "a count": {Count: 1},
	} {
		if _, err := s.client.Wait(t.Context(), "notes", in); err == nil || problem.Exit(err) != problem.ExitUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
