package peer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
)

func keysOf(t *testing.T, ns *peer.Namespace, options ...peer.ScanOption) (keys []string) {
	t.Helper()
	for r, err := range ns.Scan(t.Context(), nil, options...) {
		must(t, err)
		keys = append(keys, string(r.Key))
	}
	return keys
}

// Two nodes whose clocks differ by an hour hold the same records, and each reads
// them by its own clock.
func TestExpiryOnTwoClocks(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		ca, cb := newTestClock(), newTestClock()
		ca.turn(-time.Hour)
		a.Clock, b.Clock = ca.now, cb.now
		_, nb, sa, sb := pair(t, a, b, peer.Policy{MaxSkew: 2 * time.Hour})
		version, err := sa.Put(t.Context(), []byte("half"), []byte("v"), peer.TTL(30*time.Minute))
		must(t, err)
		err = sa.Batch(t.Context(), func(w *peer.Batch) error {
			w.Put([]byte("two"), []byte("v"), peer.TTL(2*time.Hour))
			w.Put([]byte("ever"), []byte("v"))
			return nil
		})
		must(t, err)
		must(t, errOf(sa.PutIf(t.Context(), []byte("half, if"), nil, dbadapter.Version{}, peer.TTL(30*time.Minute))))
		sync1(t, sa, nb.ID())
		equal(t, sa, sb)
		all := []string{"ever", "half", "half, if", "two"}
		for _, s := range []struct {
			ns   *peer.Namespace
			want []string
		}{{sa, all}, {sb, []string{"ever", "two"}}} {
			if got := keysOf(t, s.ns); !slices.Equal(got, s.want) {
				t.Errorf("a scan yields %q, want %q", got, s.want)
			}
			if got := keysOf(t, s.ns, peer.WithTombstones()); !slices.Equal(got, all) {
				t.Errorf("a scan of all yields %q", got)
			}
		}
		if r, err := sa.Get(t.Context(), []byte("half")); err != nil || r.Version != version || r.Expires.Time() != ca.now().Add(30*time.Minute) {
			t.Errorf("at the writer %+v, %v", r, err)
		}
		r, err := sb.Get(t.Context(), []byte("half"))
		if !errors.Is(err, peer.ErrExpired) || !strings.Contains(err.Error(), `get "half" in notes: expired at 2026-03-01T11:30:00Z, version `+version.String()) || r.Version != version {
			t.Errorf("at a clock an hour ahead %+v, %v", r, err)
		}
		if _, err := sb.Delete(t.Context(), []byte("half")); !errors.Is(err, peer.ErrExpired) {
			t.Errorf("delete: %v", err)
		}
		if _, err := sb.PutIf(t.Context(), []byte("half"), nil, dbadapter.Version{}); !errors.Is(err, peer.ErrConflict) {
			t.Errorf("put over nothing: %v", err)
		}
		if _, err := sb.PutIf(t.Context(), []byte("half"), []byte("new"), version); err != nil {
			t.Error(err)
		}
		if report := sync1(t, sa, nb.ID()); report.Applied != 1 {
			t.Errorf("%+v", report)
		}
		equal(t, sa, sb)
		if r, err := sa.Get(t.Context(), []byte("half")); err != nil || string(r.Value) != "new" || r.Expires != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// What has expired when it is imported is left out; the rest expires as it says.
func TestImportOfWhatExpires(t *testing.T) {
	clock := newTestClock()
	now := clock.now()
	n := open(t, peer.Config{Clock: clock.now})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "held", "v")
	done, err := ns.Import(t.Context(), items(
		peer.Item{Key: []byte("a"), Value: []byte("v"), Expires: now.Add(time.Second)},
		peer.Item{Key: []byte("dated"), Value: []byte("v"), Time: now.Add(-time.Hour), Expires: now.Add(time.Hour)},
		peer.Item{Key: []byte("held"), Value: []byte("old"), Expires: now},
	))
	if err != nil || done != (peer.ImportResult{Items: 3, Written: 2, Expired: 1, Earliest: now.Add(-time.Hour)}) {
		t.Errorf("%+v, %v", done, err)
	}
	clock.turn(time.Second)
	if got := keysOf(t, ns); !slices.Equal(got, []string{"dated", "held"}) {
		t.Errorf("there are %q", got)
	}
	// The same content with another expiry is another record.
	done, err = ns.Import(t.Context(), items(
		peer.Item{Key: []byte("dated"), Value: []byte("v"), Time: now.Add(-time.Hour), Expires: now.Add(time.Hour)},
		peer.Item{Key: []byte("held"), Value: []byte("v"), Expires: now.Add(time.Hour)},
	))
	if err != nil || done != (peer.ImportResult{Items: 2, Written: 1, Unchanged: 1, Earliest: now.Add(-time.Hour)}) {
		t.Errorf("%+v, %v", done, err)
	}
	clock.turn(time.Hour)
	if got := keysOf(t, ns); got != nil {
		t.Errorf("in the end there are %q", got)
	}
}
