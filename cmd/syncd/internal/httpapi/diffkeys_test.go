package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
)

// TestDiffKeys: the lines of a list are JSON objects, the last of which tells the end; a
// client that hangs up, and a peer that is not there, harm nothing.
func TestDiffKeys(t *testing.T) {
	s := serve(t, "")
	other, err := peer.Open(t.Context(), peer.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	theirs, err := other.CreateNamespace(t.Context(), "notes2", peer.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := theirs.Invite(t.Context(), peer.InviteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.node.Join(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	const n = 3000
	if err := theirs.Batch(t.Context(), func(b *peer.Batch) error {
		for i := range n {
			b.Put(fmt.Appendf(nil, "key %d \xff", i), []byte("value"))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	resp, body := s.do(t, http.MethodGet, "/v1/ns/notes2/diff/keys?prefix=key%2010&limit=5&peer="+other.ID().String(), "")
	lines := strings.Split(strings.TrimSpace(body), "\n")
	if resp.Header.Get("Content-Type") != "application/x-ndjson" || len(lines) != 6 || !strings.HasPrefix(lines[0], `{"kind":"missing_here","key64":"`) || !strings.HasPrefix(lines[5], `{"kind":"end","more":true,"report":{`) {
		t.Errorf("%s %s", resp.Header, body)
	}
	differ := api.DiffKeysParams{NSParams: api.OfNS("notes2"), Peer: other.ID().String()}
	listed, hangUp := 0, errors.New("enough")
	if _, err := s.client.DiffKeys(t.Context(), differ, func(*api.KeyDifference) error { return hangUp }); !errors.Is(err, hangUp) {
		t.Error(err)
	}
	last, err := s.client.DiffKeys(t.Context(), differ, func(d *api.KeyDifference) error {
		listed++
		if d.There == nil || d.Here != nil || d.There.Version == "" || d.There.Time.IsZero() {
			t.Errorf("listed as %+v", d)
		}
		return nil
	})
	if err != nil || listed != n || last.More || last.Report == nil || last.Report.MissingHere != n {
		t.Errorf("%d keys, %+v, %v", listed, last, err)
	}
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.DiffKeys(t.Context(), differ, nil); !errors.Is(err, peer.ErrUnreachable) {
		t.Errorf("of a peer that is gone: %v", err)
	}
}
