package peer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/peer"
)

func TestRestartKeepsAll(t *testing.T) {
	a, b := peer.Config{Dir: t.TempDir()}, peer.Config{Dir: t.TempDir()}
	na, nb, sa, sb := pair(t, a, b, peer.Policy{MaxSkew: time.Hour})
	put(t, sa, "k", "v")
	must(t, errOf(sa.Delete(t.Context(), []byte("k"))))
	put(t, sa, "l", "w")
	sync1(t, sb, na.ID())
	want, info, members := contents(t, sb), sb.Info(), listed(sb)
	open1 := invite(t, sa, peer.InviteOptions{})
	shut(t, na)
	shut(t, nb)

	na2, nb2 := open(t, a), open(t, b)
	if na2.ID() != na.ID() || nb2.ID() != nb.ID() {
		t.Error("the identity has changed")
	}
	sb2 := notes(t, nb2)
	if got := contents(t, sb2); !maps.Equal(got, want) || !reflect.DeepEqual(sb2.Info(), info) || listed(sb2) != members {
		t.Errorf("after a restart: %v\n%+v\n%v", got, sb2.Info(), sb2.Members())
	}
	// The port is another, so b is told where a is now.
	must(t, errOf(nb2.Connect(t.Context(), na2.Addrs()[0])))
	put(t, sb2, "m", "x")
	sync1(t, sb2, na.ID())
	// A ticket from before the restart is good, if it says the address.
	sa2 := notes(t, na2)
	equal(t, sa2, sb2)
	if _, err := nb2.Join(t.Context(), open1); err != nil {
		t.Errorf("a ticket from before the restart: %v", err)
	}
}

// A namespace that is dropped and joined again has lost its clock, and yet no
// version of its first life is given to another write: the incarnation is another.
func TestDroppedAndJoinedAgain(t *testing.T) {
	clock := newTestClock()
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{Clock: clock.now}, peer.Policy{})
	first := put(t, sb, "k", "first")
	sync1(t, sb, na.ID())
	must(t, nb.DropNamespace(t.Context(), sb.Name()))
	sb = join(t, sa, nb, peer.RoleWrite)
	second := put(t, sb, "k", "second")
	if first.Incarnation == second.Incarnation || first.Writer != second.Writer {
		t.Errorf("two writes have the versions %s and %s", first, second)
	}
	sync1(t, sb, na.ID())
	equal(t, sa, sb)
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	n := open(t, peer.Config{Dir: dir})
	ns := create(t, n, peer.Policy{})
	invite(t, ns, peer.InviteOptions{})
	shut(t, n)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "store" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		if strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".new") {
			t.Errorf("%s was left", path)
		}
		return nil
	})
	must(t, err)
	path := filepath.Join(dir, "identity.key")
	must(t, os.Chmod(path, 0o644))
	if _, err := peer.Open(t.Context(), peer.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key for all to read: %v", err)
	}
	must(t, os.Chmod(path, 0o600))
	open(t, peer.Config{Dir: dir})
	if _, err := peer.Open(t.Context(), peer.Config{Dir: dir}); !errors.Is(err, peer.ErrLocked) {
		t.Errorf("a second node in the folder: %v", err)
	}
}

func TestDrop(t *testing.T) {
	dir := t.TempDir()
	n := open(t, peer.Config{Dir: dir})
	ns := create(t, n, peer.Policy{})
	put(t, ns, "k", "v")
	id := ns.Info().ID
	if _, err := n.CreateNamespace(t.Context(), "notes", peer.Policy{}); !errors.Is(err, peer.ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	if err := n.DropNamespace(t.Context(), "notes"); !errors.Is(err, peer.ErrHeldHere) {
		t.Errorf("what is here alone is dropped: %v", err)
	}
	must(t, n.ForceDrop(t.Context(), "notes"))
	if err := n.DropNamespace(t.Context(), "notes"); !errors.Is(err, peer.ErrNotFound) {
		t.Errorf("dropped twice: %v", err)
	}
	if _, err := ns.Put(t.Context(), []byte("k"), nil); !errors.Is(err, peer.ErrClosed) {
		t.Errorf("put after a drop: %v", err)
	}
	for r, err := range ns.Scan(t.Context(), nil) {
		if !errors.Is(err, peer.ErrClosed) {
			t.Errorf("scan after a drop: %v, %v", r, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "namespaces", id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v", err)
	}
	// Cut short at any point, a drop and a creation leave nothing behind.
	ns = create(t, n, peer.Policy{})
	put(t, ns, "k", "v")
	id = ns.Info().ID
	shut(t, n)
	folder := filepath.Join(dir, "namespaces", id)
	must(t, os.Rename(folder, folder+".dropped"))
	must(t, os.MkdirAll(folder+".new", 0o700))
	n = open(t, peer.Config{Dir: dir})
	if got := n.Namespaces(); len(got) != 0 {
		t.Errorf("namespaces %v", got)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "namespaces")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	// Joined or made again before its drop was finished, it keeps its records.
	ns = create(t, n, peer.Policy{})
	put(t, ns, "k", "v")
	id = ns.Info().ID
	shut(t, n)
	must(t, os.Mkdir(filepath.Join(dir, "namespaces", id+".dropped"), 0o700))
	n = open(t, peer.Config{Dir: dir})
	if got := n.Namespaces(); len(got) != 1 || got[0].Info().Records != 1 {
		t.Errorf("namespaces %v", got)
	}
	for _, name := range []string{"", "-", "a/b", "..", ".a", "ü", strings.Repeat("a", 65), "a b"} {
		if _, err := n.CreateNamespace(t.Context(), name, peer.Policy{}); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
}

func TestCloseIsFinal(t *testing.T) {
	n, other := open(t, peer.Config{}), open(t, peer.Config{})
	ns := create(t, n, peer.Policy{})
	ticket := invite(t, ns, peer.InviteOptions{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { shut(t, n) })
	}
	wg.Wait()
	ctx := t.Context()
	for name, err := range map[string]error{
		"put":     errOf(ns.Put(ctx, []byte("k"), nil)),
		"get":     errOf(ns.Get(ctx, []byte("k"))),
		"batch":   ns.Batch(ctx, func(b *peer.Batch) error { b.Put([]byte("k"), nil); return nil }),
		"delete":  errOf(ns.Delete(ctx, []byte("k"))),
		"import":  errOf(ns.Import(ctx, items())),
		"sync":    errOf(ns.Sync(ctx, other.ID(), peer.SyncOptions{})),
		"invite":  errOf(ns.Invite(ctx, peer.InviteOptions{})),
		"member":  ns.SetRole(ctx, other.ID(), peer.RoleRead),
		"create":  errOf(n.CreateNamespace(ctx, "x", peer.Policy{})),
		"drop":    n.DropNamespace(ctx, "notes"),
		"join":    errOf(n.Join(ctx, ticket)),
		"connect": errOf(n.Connect(ctx, other.Addrs()[0])),
		"add":     errOf(n.AddPeer(ctx, other.Addrs()[0])),
		"remove":  n.RemovePeer(ctx, other.ID()),
	} {
		if !errors.Is(err, peer.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	n.Peers()
	n.Syncing()
	ns.Info()
}

// A caller's host and store stay open, and serve a second node.
func TestCallersHostAndStoreStayOpen(t *testing.T) {
	h, store := rawHost(t), memdb.New(memdb.Options{})
	defer store.Close()
	dir := t.TempDir()
	cfg := peer.Config{Dir: dir, Host: h, Store: store}
	n := open(t, cfg)
	if n.ID() != h.ID() {
		t.Errorf("id %s, the host's is %s", n.ID(), h.ID())
	}
	ns := create(t, n, peer.Policy{})
	put(t, ns, "k", "v")
	shut(t, n)
	if len(h.Addrs()) == 0 || len(h.Mux().Protocols()) == 0 {
		t.Error("the host is closed")
	}
	for _, p := range h.Mux().Protocols() {
		if p == peer.SyncProtocol || p == peer.JoinProtocol {
			t.Errorf("%s is still served", p)
		}
	}
	n = open(t, cfg)
	ns = notes(t, n)
	if _, err := ns.Get(t.Context(), []byte("k")); err != nil {
		t.Error(err)
	}
	other := open(t, peer.Config{})
	so := join(t, ns, other, peer.RoleWrite)
	sync1(t, so, n.ID())
	equal(t, ns, so)
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	na, _, sa, sb := pair(t, peer.Config{Registerer: registry}, peer.Config{Registerer: registry}, peer.Policy{})
	put(t, sa, "k", "v")
	sync1(t, sb, na.ID())
	for _, name := range []string{"syncd_sync_step_duration_seconds", "syncd_syncs_total", "syncd_sync_bytes_total", "syncd_records", "syncd_running_syncs"} {
		if _, ok := gathered(t, registry, name, ""); !ok {
			t.Errorf("no metric %s", name)
		}
	}
	eventually(t, "the responder has ended too", func() bool { return len(na.RecentSyncs()) == 2 }) // the first with the join
	sent := 0                                                                                       // in which order the two ended at the responder is open
	for _, r := range na.RecentSyncs() {
		if sent += r.Report.Sent; !r.Incoming || r.Error != "" {
			t.Errorf("a recent sync: %+v", r)
		}
	}
	if sent != 1 {
		t.Errorf("%d records were sent", sent)
	}
}

// A scan is paused, as an export is whose reader has stopped: its namespace is
// dropped and joined again, and others are made, joined and dropped meanwhile.
// Then the scan ends with ErrClosed.
func TestPausedScanHoldsNothingUp(t *testing.T) {
	onBothStores(t, func(t *testing.T, a, b peer.Config) {
		na, nb, sa, sb := pair(t, a, b, peer.Policy{})
		put(t, sb, "a", "1")
		put(t, sb, "b", "1")
		other, err := na.CreateNamespace(t.Context(), "other", peer.Policy{})
		must(t, err)
		toOther, toNotes := invite(t, other, peer.InviteOptions{}), invite(t, sa, peer.InviteOptions{})
		meanwhile := func() error {
			ctx := t.Context()
			if err := nb.ForceDrop(ctx, "notes"); err != nil {
				return err
			}
			if _, err := nb.CreateNamespace(ctx, "notes", peer.Policy{}); err != nil {
				return err
			}
			if _, err := nb.Join(ctx, toOther); err != nil {
				return err
			}
			if err := errors.Join(nb.ForceDrop(ctx, "notes"), nb.ForceDrop(ctx, "other")); err != nil {
				return err
			}
			again, err := nb.Join(ctx, toNotes)
			if err != nil {
				return err
			}
			if _, err := again.Put(ctx, []byte("c"), nil); err != nil {
				return err
			}
			if records := again.Info().Records; records != 1 {
				return fmt.Errorf("the namespace joined again holds %d records, want 1", records)
			}
			return nil
		}
		done := make(chan error, 1)
		seen := 0
		for _, err = range sb.Scan(t.Context(), nil) {
			if seen++; seen > 1 {
				break
			}
			go func() { done <- meanwhile() }()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(5 * time.Minute):
				t.Error("a drop, a creation or a join waits for a paused scan")
			}
		}
		if !errors.Is(err, peer.ErrClosed) {
			t.Errorf("a scan over which its namespace was dropped ends with %v, want ErrClosed", err)
		}
	})
}
