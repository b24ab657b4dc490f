package peer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

// image is a node as it shows from outside: id, namespaces, members, records.
func image(t testing.TB, n *peer.Node) map[string]any {
	t.Helper()
	out := map[string]any{"id": n.ID()}
	for _, ns := range n.Namespaces() {
		info := ns.Info()
		out[ns.Name()] = fmt.Sprint(info.ID, ns.Policy(), info.Role, info.Digest, info.Clock, ns.Members())
		var records []dbadapter.Record
		for r, err := range ns.Scan(t.Context(), nil, peer.WithTombstones()) {
			must(t, err)
			records = append(records, r)
		}
		out[ns.Name()+" records"] = records
	}
	return out
}

func backUp(t testing.TB, n *peer.Node, dir string) *offline.Backup {
	t.Helper()
	b, err := n.Backup(t.Context(), dir, offline.BackupOptions{})
	must(t, err)
	return b
}

func restore(t *testing.T, from string, generation int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "restored")
	must(t, errOf(offline.Restore(t.Context(), from, dir, offline.RestoreOptions{Generation: generation})))
	return dir
}

// TestBackups changes a node at random between backups, and restores each of them:
// it is the node at that moment.
func TestBackups(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	cfg := peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}}
	n, other := open(t, cfg), open(t, peer.Config{})
	to := filepath.Join(t.TempDir(), "backups")
	for i := range 3 {
		must(t, errOf(n.CreateNamespace(t.Context(), fmt.Sprint("ns", i), peer.Policy{Unsigned: i == 2})))
	}
	images := map[int]map[string]any{}
	increments := 0
	for generation := 1; generation <= 6; generation++ {
		for range rng.IntN(6) {
			all := n.Namespaces()
			ns := all[rng.IntN(len(all))]
			switch rng.IntN(8) {
			case 0:
				must(t, ns.SetRole(t.Context(), other.ID(), peer.Role(1+rng.IntN(3))))
			case 1:
				shut(t, n)
				n = open(t, cfg)
			case 2:
				must(t, n.ForceDrop(t.Context(), ns.Name()))
				must(t, errOf(n.CreateNamespace(t.Context(), ns.Name(), peer.Policy{})))
			default:
				for range rng.IntN(50) {
					key := fmt.Appendf(nil, "key %d", rng.IntN(100))
					if rng.IntN(3) == 0 {
						if _, err := ns.Delete(t.Context(), key); err != nil && !errors.Is(err, peer.ErrNotFound) && !errors.Is(err, peer.ErrDeleted) {
							t.Fatal(err)
						}
						continue
					}
					put(t, ns, string(key), fmt.Sprint(rng.Uint64()))
				}
			}
		}
		images[generation] = image(t, n)
		b := backUp(t, n, to)
		if b.Generation != generation || b.Node != n.ID().String() || len(b.Namespaces) != 3 {
			t.Fatalf("backup %+v", b)
		}
		if b.Base > 0 {
			increments++
		}
	}
	if increments == 0 {
		t.Error("each backup is whole")
	}
	shut(t, n)
	listed, err := offline.VerifyBackups(t.Context(), to, nil)
	if err != nil || len(listed) != len(images) {
		t.Fatal(len(listed), err)
	}
	if some, err := offline.Backups(to); err != nil || !reflect.DeepEqual(some, listed) {
		t.Errorf("listed %v, %v; verified %v", some, err, listed)
	}
	for generation, want := range images {
		r := open(t, peer.Config{Dir: restore(t, to, generation), ListenAddrs: []string{}})
		if got := image(t, r); !reflect.DeepEqual(got, want) {
			t.Errorf("generation %d:\n%v\nwant\n%v", generation, got, want)
		}
		shut(t, r)
	}
	for _, dir := range []string{to, restore(t, to, 0)} {
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() == "store" && d.IsDir() {
				return errors.Join(err, fs.SkipDir)
			}
			if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.SkipDir) {
			t.Error(err)
		}
	}
}

// TestBackupOfBatches backs up while batches are written to two namespaces that
// each change two records, and while a namespace is changed: no backup holds half
// of a batch.
func TestBackupOfBatches(t *testing.T) {
	n := open(t, peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}})
	ns := create(t, n, peer.Policy{})
	to := filepath.Join(t.TempDir(), "backups")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	written := make(chan struct{}, 1)
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := ns.Batch(context.WithoutCancel(ctx), func(b *peer.Batch) error {
				b.Put([]byte("a"), fmt.Append(nil, i))
				b.Put([]byte("z"), fmt.Append(nil, i))
				b.Put(fmt.Append(nil, "other ", i%100), fmt.Append(nil, i))
				return nil
			})
			if err != nil {
				done <- err
				return
			}
			select {
			case written <- struct{}{}:
			default:
			}
		}
		done <- nil
	}()
	for range 4 {
		<-written
		backUp(t, n, to)
	}
	cancel()
	must(t, <-done)
	shut(t, n)
	values := map[string]bool{}
	for generation := 1; generation <= 4; generation++ {
		r := open(t, peer.Config{Dir: restore(t, to, generation), ListenAddrs: []string{}})
		rs := notes(t, r)
		a, errA := rs.Get(t.Context(), []byte("a"))
		z, errZ := rs.Get(t.Context(), []byte("z"))
		if errA != nil || errZ != nil || string(a.Value) != string(z.Value) {
			t.Errorf("generation %d: %q and %q, %v %v", generation, a.Value, z.Value, errA, errZ)
		}
		values[string(a.Value)] = true
		shut(t, r)
	}
	if len(values) < 2 {
		t.Errorf("all backups show one moment: %v", values)
	}
}

// TestRestoredNodeGoesOn restores a node whose original has written and synced
// after the backup: the restored one repeats no version, also where its clock says
// an earlier time, and becomes equal with the others.
func TestRestoredNodeGoesOn(t *testing.T) {
	clock := newTestClock()
	na, nb, sa, sb := pair(t, peer.Config{Dir: t.TempDir(), Clock: clock.now}, peer.Config{Clock: clock.now}, peer.Policy{})
	to := filepath.Join(t.TempDir(), "backups")
	before := put(t, sa, "before", "b")
	backUp(t, na, to)
	versions := map[dbadapter.Version]string{before: "before"}
	for i := range 20 {
		clock.turn(time.Second)
		key := fmt.Sprint("after ", i)
		versions[put(t, sa, key, "a")] = key
		put(t, sb, fmt.Sprint("elsewhere ", i), "e")
	}
	sync1(t, sa, nb.ID())
	shut(t, na)

	clock.turn(-time.Minute)
	dir := restore(t, to, 0)
	if _, err := os.Stat(filepath.Join(dir, "restored")); err != nil {
		t.Error("the node cannot tell that it was restored:", err)
	}
	r := open(t, peer.Config{Dir: dir, Clock: clock.now})
	if r.ID() != na.ID() {
		t.Fatal("another identity")
	}
	sr := notes(t, r)
	for i := range 20 {
		v := put(t, sr, fmt.Sprint("after ", i), "r")
		if was, taken := versions[v]; taken {
			t.Errorf("version %s of %q is used again", v, was)
		}
		if v.Clock <= before.Clock {
			t.Errorf("version %s is not after %s, which the backup holds", v, before)
		}
	}
	clock.turn(2 * time.Minute)
	must(t, errOf(r.Connect(t.Context(), nb.Addrs()[0])))
	sync1(t, sr, nb.ID())
	equal(t, sr, sb)
}

func TestBackupRefusals(t *testing.T) {
	dir := t.TempDir()
	n := open(t, peer.Config{Dir: dir, ListenAddrs: []string{}})
	put(t, create(t, n, peer.Policy{}), "k", "v")
	full, empty, theirs := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "theirs")
	must(t, os.WriteFile(filepath.Join(full, "mine"), nil, 0o600))
	backUp(t, open(t, peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}}), theirs)
	backUp(t, n, empty)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	for to, want := range map[string]string{
		full: "holds other files", theirs: "holds backups of node", filepath.Join(dir, "b"): "in the node's own", filepath.Join(link, "c", "d"): "in the node's own",
	} {
		if _, err := n.Backup(t.Context(), to, offline.BackupOptions{}); !errors.Is(err, peer.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("into %s: %v", to, err)
		}
	}
	if _, err := open(t, peer.Config{}).Backup(t.Context(), t.TempDir(), offline.BackupOptions{}); !errors.Is(err, peer.ErrInvalid) {
		t.Errorf("of a node in memory: %v", err)
	}
	if _, err := offline.Restore(t.Context(), empty, full, offline.RestoreOptions{}); !errors.Is(err, peer.ErrExists) {
		t.Errorf("into a folder with files: %v", err)
	}
	for _, from := range []string{full, filepath.Join(full, "absent")} {
		if _, err := offline.Restore(t.Context(), from, filepath.Join(t.TempDir(), "r"), offline.RestoreOptions{}); !errors.Is(err, peer.ErrNotFound) {
			t.Errorf("of %s: %v", from, err)
		}
	}
	if b, err := n.Backup(t.Context(), empty, offline.BackupOptions{Full: true}); err != nil || b.Base != 0 || b.Generation != 2 {
		t.Errorf("a full one: %+v, %v", b, err)
	}
	// A restore that was cut short leaves a folder that no node opens.
	part := t.TempDir()
	must(t, os.WriteFile(filepath.Join(part, "restoring"), nil, 0o600))
	if _, err := peer.Open(t.Context(), peer.Config{Dir: part}); !errors.Is(err, peer.ErrCorrupt) || !strings.Contains(err.Error(), "restore again") {
		t.Errorf("part of a restore was opened: %v", err)
	}
}

// TestNewIdentity makes a copy live beside its original.
func TestNewIdentity(t *testing.T) {
	na, nb, sa, sb := pair(t, peer.Config{}, peer.Config{Dir: t.TempDir()}, peer.Policy{})
	put(t, sa, "k", "v")
	sync1(t, sb, na.ID())
	to := filepath.Join(t.TempDir(), "backups")
	backUp(t, nb, to)
	dir := restore(t, to, 0)
	r, err := offline.NewIdentity(dir, nil)
	old, fresh := r.Old, r.New
	if err != nil || old != nb.ID() || fresh == old {
		t.Fatal(old, fresh, err)
	}
	if info, err := os.Stat(r.OldKey); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the old key: %v, %v", info, err)
	}
	nc := open(t, peer.Config{Dir: dir})
	if nc.ID() != fresh {
		t.Errorf("id %s, want %s", nc.ID(), fresh)
	}
	if _, err := offline.NewIdentity(dir, nil); !errors.Is(err, peer.ErrLocked) {
		t.Errorf("of an open node: %v", err)
	}
	sc := notes(t, nc)
	if rec, err := sc.Get(t.Context(), []byte("k")); err != nil || string(rec.Value) != "v" {
		t.Errorf("the records: %v, %v", rec, err)
	}
	if _, err := sc.Put(t.Context(), []byte("k"), []byte("w")); !errors.Is(err, peer.ErrDenied) {
		t.Errorf("it writes before it is a member: %v", err)
	}
	sc = join(t, sa, nc, peer.RoleWrite)
	put(t, sc, "c", "w")
	sync1(t, sc, na.ID())
	equal(t, sa, sc)
}

// A backup of shards, with a locator or without, is restored, whole and with what has changed since.
func TestBackupOfShards(t *testing.T) {
	t.Parallel()
	for _, p := range []peer.Placement{
		{Kind: "hash", Shards: 8, Replicas: 1},
		{Kind: "hash", Shards: 8, Replicas: 1, Locator: true},
	} {
		t.Run(fmt.Sprintf("%s, a locator %t", p.Kind, p.Locator), func(t *testing.T) {
			t.Parallel()
			n, to := open(t, peer.Config{Dir: t.TempDir(), ListenAddrs: []string{}}), t.TempDir()
			ns := create(t, n, peer.Policy{Placement: &p})
			eventually(t, "there is a layout", func() bool {
				_, err := ns.Put(t.Context(), []byte("0/0"), []byte("value"))
				return err == nil
			})
			const generations, each = 2, 20
			for g := range generations {
				for i := range each {
					put(t, ns, fmt.Sprint(g, "/", i), "value")
				}
				if b := backUp(t, n, to); len(b.Namespaces) != 1 || b.Namespaces[0].Records != int64((g+1)*each) {
					t.Errorf("generation %d holds %+v", g+1, b.Namespaces)
				}
			}
			shut(t, n)
			for g := range generations {
				r := open(t, peer.Config{Dir: restore(t, to, g+1), ListenAddrs: []string{}})
				restored := notes(t, r)
				if got := restored.Info().Records; got != int64((g+1)*each) {
					t.Errorf("of generation %d %d records are restored", g+1, got)
				}
				shut(t, r)
			}
		})
	}
}
