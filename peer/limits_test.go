package peer_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// A peer that has as many syncs as it may is put off, which both sides tell, tries again, and
// succeeds once one has ended.
func TestBusyPeerIsTriedAgain(t *testing.T) {
	registry := prometheus.NewRegistry()
	na, nb, sa, sb := pair(t, peer.Config{Limits: peer.Limits{SessionsPerPeer: 1}, Registerer: registry}, peer.Config{}, peer.Policy{})
	put(t, sa, "a", "1")
	put(t, sb, "b", "1") // a node that is empty puts off a second sync with a peer itself
	inside, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		first := true
		_, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{Progress: func(r reconcile.Report) {
			if first && r.WireBytesReceived > 0 {
				first = false
				close(inside)
				<-release
			}
		}})
		if err != nil {
			t.Errorf("the first sync: %v", err)
		}
	})
	<-inside
	wg.Go(func() {
		if _, err := sb.Sync(t.Context(), na.ID(), peer.SyncOptions{}); err != nil {
			t.Errorf("the second sync: %v", err)
		}
	})
	eventually(t, "the second sync is put off", func() bool {
		return metricOf(t, registry, "syncd_refusals_total", "busy") > 0 &&
			slices.ContainsFunc(nb.RecentSyncs(), func(s status.Sync) bool { return strings.Contains(s.Error, "busy") })
	})
	close(release)
	wg.Wait()
	equal(t, sa, sb)
}

// A node under a bound moves what differs, and tells for how long its bytes have
// waited.
func TestSyncUnderABound(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, nb, sa, sb := pair(t, peer.Config{Registerer: registry, Bandwidth: peer.Bandwidth{PeerSend: peer.MinBandwidth}}, peer.Config{}, peer.Policy{})
	put(t, sa, "a", strings.Repeat("v", 48<<10)) // three times what passes at once
	must(t, errOf(sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{})))
	equal(t, sa, sb)
	if metricOf(t, registry, "syncd_bandwidth_wait_seconds_total", "") == 0 {
		t.Error("no byte has waited")
	}
}

// A node does not wait for a place of its own beyond its context.
func TestOwnSyncsAreBounded(t *testing.T) {
	_, nb, sa, _ := pair(t, peer.Config{Limits: peer.Limits{Sessions: 1}}, peer.Config{}, peer.Policy{})
	put(t, sa, "a", "1")
	var nested error
	first := true
	_, err := sa.Sync(t.Context(), nb.ID(), peer.SyncOptions{Progress: func(reconcile.Report) {
		if first {
			first = false
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, nested = sa.Sync(ctx, nb.ID(), peer.SyncOptions{})
		}
	}})
	if err != nil || !errors.Is(nested, context.Canceled) {
		t.Errorf("%v; nested: %v", err, nested)
	}
}

func TestOnlyEd25519(t *testing.T) {
	key, _, err := crypto.GenerateKeyPair(crypto.Secp256k1, 0)
	must(t, err)
	if _, err := peer.Open(t.Context(), peer.Config{Identity: key}); err == nil || !strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("another kind of key: %v", err)
	}
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.Identity(key), libp2p.DisableMetrics())
	must(t, err)
	defer h.Close()
	if _, err := peer.Open(t.Context(), peer.Config{Host: h}); err == nil || !strings.Contains(err.Error(), "Ed25519") {
		t.Errorf("a host with another kind of key: %v", err)
	}
	good, _, err := crypto.GenerateKeyPair(crypto.Ed25519, 0)
	must(t, err)
	if _, err := peer.Open(t.Context(), peer.Config{Host: h, Identity: good}); err == nil {
		t.Error("two identities were taken")
	}
	n := open(t, peer.Config{Identity: good})
	ns := create(t, n, peer.Policy{})
	if err := ns.SetRole(t.Context(), h.ID(), peer.RoleRead); err == nil {
		t.Error("a member that cannot sign")
	}
	if err := ns.SetRole(t.Context(), n.ID(), 0); err == nil {
		t.Error("a member without a role")
	}
}

func TestTexts(t *testing.T) {
	for _, role := range []peer.Role{peer.RoleRead, peer.RoleWrite, peer.RoleAdmin} {
		b, err := json.Marshal(role)
		var back peer.Role
		if err != nil || json.Unmarshal(b, &back) != nil || back != role || string(b) != `"`+role.String()+`"` {
			t.Errorf("%v: %s, %v", role, b, err)
		}
	}
	if err := new(peer.Role).UnmarshalText([]byte("root")); err == nil {
		t.Error("role root")
	}
}

func TestScanInParts(t *testing.T) {
	n := open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	err := ns.Batch(t.Context(), func(b *peer.Batch) error {
		for _, key := range []string{"a", "b/1", "b/2", "b/3", "b/4", "c"} {
			b.Put([]byte(key), []byte(key))
		}
		b.Delete([]byte("b/3"))
		return nil
	})
	must(t, err)
	scan := func(limit int, prefix string, o ...peer.ScanOption) (keys []string) {
		for r, err := range ns.Scan(t.Context(), []byte(prefix), o...) {
			must(t, err)
			if keys = append(keys, string(r.Key)); len(keys) == limit {
				break
			}
		}
		return keys
	}
	for _, c := range []struct {
		got  []string
		want string
	}{
		{scan(0, ""), "a b/1 b/2 b/4 c"},
		{scan(0, "b/"), "b/1 b/2 b/4"},
		{scan(0, "b/", peer.WithTombstones()), "b/1 b/2 b/3 b/4"},
		{scan(2, "b/"), "b/1 b/2"},
		{scan(2, "b/", peer.After([]byte("b/2"))), "b/4"},
		{scan(0, "", peer.After([]byte("b/2x"))), "b/4 c"},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("scan: %s, want %s", got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range ns.Scan(ctx, nil) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
	}
}
