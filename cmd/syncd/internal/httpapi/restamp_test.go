package httpapi_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

// A clock that was wrong is set right: writes are refused with the remedy, and
// the remedy works.
func TestRestamp(t *testing.T) {
	var wrong atomic.Int64
	s := serveAt(t, "", func() time.Time { return time.Now().Add(time.Duration(wrong.Load())) })
	put := func(key string) error {
		_, err := s.client.Put(t.Context(), api.PutParams{RecordParams: api.Record("notes", []byte(key))}, strings.NewReader("v"))
		return err
	}
	wrong.Store(int64(24 * time.Hour))
	if err := put("k"); err != nil {
		t.Fatal(err)
	}
	wrong.Store(0)
	if err := put("l"); !errors.Is(err, peer.ErrFutureVersion) || !strings.Contains(err.Error(), "syncd restamp") {
		t.Errorf("a write after the clock was set right: %v", err)
	}
	status, err := client.Ask(t.Context(), s.client, api.GetNamespace, api.StatusParams{NSParams: api.OfNS("notes")})
	if err != nil || status.Ahead == "" {
		t.Errorf("status %+v, %v", status, err)
	}
	f, err := client.Ask(t.Context(), s.client, api.GetFuture, api.OfNS("notes"))
	if err != nil || f.Own != 1 || f.Others != 0 || len(f.Records) != 1 || string(f.Records[0].Bytes()) != "k" || !f.Records[0].Own {
		t.Errorf("from the future: %+v, %v", f, err)
	}
	r, err := client.Ask(t.Context(), s.client, api.Restamp, api.OfNS("notes"))
	if err != nil || r.Restamped != 1 || r.Left.Own != 0 || r.Left.Others != 0 || len(r.Left.Records) != 0 {
		t.Errorf("restamped: %+v, %v", r, err)
	}
	if err := put("l"); err != nil {
		t.Error(err)
	}
	if status, err := client.Ask(t.Context(), s.client, api.GetNamespace, api.StatusParams{NSParams: api.OfNS("notes")}); err != nil || status.Ahead != "" {
		t.Errorf("status %+v, %v", status, err)
	}
	if _, err := client.Ask(t.Context(), s.client, api.Restamp, api.OfNS("other")); err == nil {
		t.Error("a namespace that is not there was restamped")
	}
}
