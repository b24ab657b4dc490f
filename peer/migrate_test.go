package peer_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

func migrate(t *testing.T, dir string, to ondisk.Kind) *offline.Migration {
	t.Helper()
	m, err := offline.Migrate(t.Context(), dir, to, offline.MigrateOptions{})
	must(t, err)
	return m
}

// stores are the folders of stores in a node's folder, with their kinds.
func stores(t *testing.T, dir string) map[string]ondisk.Kind {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "store*"))
	must(t, err)
	out := map[string]ondisk.Kind{}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue
		}
		kind, err := ondisk.KindOf(folder)
		must(t, err)
		out[filepath.Base(folder)] = kind
	}
	return out
}

// TestMigrate moves a node to Pebble and back. Each time it is the same node as
// before, its next backup holds only what has changed, and it opens the new store
// without being told.
func TestMigrate(t *testing.T) {
	dir, backups := filepath.Join(t.TempDir(), "node"), filepath.Join(t.TempDir(), "backups")
	n := open(t, peer.Config{Dir: dir})
	ns := create(t, n, peer.Policy{})
	for _, k := range []string{"a", "b", "c"} {
		put(t, ns, k, strings.Repeat(k, 100))
	}
	must(t, errOf(ns.Delete(t.Context(), []byte("c"))))
	backUp(t, n, backups)
	if _, err := offline.Migrate(t.Context(), dir, ondisk.Pebble, offline.MigrateOptions{}); !errors.Is(err, peer.ErrLocked) {
		t.Errorf("a node that runs is moved: %v", err)
	}
	want := image(t, n)
	shut(t, n)
	for _, to := range []ondisk.Kind{ondisk.Pebble, ondisk.Badger} {
		if m := migrate(t, dir, to); m.To != to || m.Namespaces != 1 || m.Records < 3 || m.Bytes < 300 {
			t.Errorf("moved: %+v", m)
		}
		if got := stores(t, dir); len(got) != 1 || got["store-"+string(to)] != to {
			t.Errorf("after a move to %s the folder has the stores %v", to, got)
		}
		if _, err := offline.Migrate(t.Context(), dir, to, offline.MigrateOptions{}); !errors.Is(err, peer.ErrExists) {
			t.Errorf("moved to where it is: %v", err)
		}
		n = open(t, peer.Config{Dir: dir})
		if got := image(t, n); !reflect.DeepEqual(got, want) {
			t.Errorf("in %s: %v, want %v", to, got, want)
		}
		ns, err := n.Namespace(ns.Name())
		must(t, err)
		put(t, ns, "after "+string(to), "v")
		if b := backUp(t, n, backups); b.Base == 0 {
			t.Errorf("the backup after the move to %s holds all", to)
		}
		want = image(t, n)
		shut(t, n)
	}
	for kind, other := range map[ondisk.Kind]bool{ondisk.Badger: false, ondisk.Pebble: true} {
		n, err := peer.Open(t.Context(), peer.Config{Dir: dir, ListenAddrs: []string{}, StoreKind: kind})
		if err == nil {
			shut(t, n)
		}
		if errors.Is(err, peer.ErrInvalid) != other || other && !strings.Contains(err.Error(), "syncd migrate pebble") {
			t.Errorf("opened as %s: %v", kind, err)
		}
	}
}

// TestMigrateInterrupted leaves a node's folder as a crash at each step of a move
// would: the node opens with all its records, and a move can be made.
func TestMigrateInterrupted(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "node")
	n := open(t, peer.Config{Dir: made})
	put(t, create(t, n, peer.Policy{}), "k", "v")
	want := image(t, n)
	shut(t, n)
	note := func(t *testing.T, dir, folder, before string) {
		t.Helper()
		b, err := cbor.Marshal(map[int]any{1: 1, 2: folder, 3: before})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "store.cbor"), b, 0o600))
	}
	for name, crash := range map[string]struct {
		leave func(t *testing.T, dir string)
		kind  ondisk.Kind
	}{
		"in the midst of the copy": {func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "store-pebble", "x"), 0o700))
		}, ondisk.Badger},
		"before the change": {func(t *testing.T, dir string) {
			old := filepath.Join(t.TempDir(), "old")
			peer.CopyNode(t, filepath.Join(dir, "store"), old)
			migrate(t, dir, ondisk.Pebble)
			must(t, os.Rename(old, filepath.Join(dir, "store")))
			must(t, os.Remove(filepath.Join(dir, "store.cbor")))
		}, ondisk.Badger},
		"after the change": {func(t *testing.T, dir string) {
			old := filepath.Join(t.TempDir(), "old")
			peer.CopyNode(t, filepath.Join(dir, "store"), old)
			migrate(t, dir, ondisk.Pebble)
			must(t, os.Rename(old, filepath.Join(dir, "store")))
			note(t, dir, "store-pebble", "store")
		}, ondisk.Pebble},
		"in the midst of the removal": {func(t *testing.T, dir string) {
			migrate(t, dir, ondisk.Pebble)
			must(t, os.MkdirAll(filepath.Join(dir, "store", "000001.sst"), 0o700))
			note(t, dir, "store-pebble", "store")
		}, ondisk.Pebble},
	} {
		for _, open1st := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "node")
				peer.CopyNode(t, made, dir)
				crash.leave(t, dir)
				check := func(kind ondisk.Kind) {
					t.Helper()
					n := open(t, peer.Config{Dir: dir, StoreKind: kind})
					defer shut(t, n)
					if got := image(t, n); !reflect.DeepEqual(got, want) {
						t.Errorf("as %s: %v, want %v", kind, got, want)
					}
				}
				if open1st {
					check(crash.kind)
				}
				to := ondisk.Pebble
				if crash.kind == to {
					to = ondisk.Badger
				}
				migrate(t, dir, to)
				check(to)
				if got, want := stores(t, dir), (map[string]ondisk.Kind{"store-" + string(to): to}); !maps.Equal(got, want) {
					t.Errorf("the folder has the stores %v, want %v", got, want)
				}
			})
		}
	}
	for _, folders := range [][2]string{{"store-/../../x", ""}, {"store", "store"}, {"store", "namespaces"}} {
		note(t, made, folders[0], folders[1])
		if _, err := peer.Open(t.Context(), peer.Config{Dir: made, ListenAddrs: []string{}}); !errors.Is(err, peer.ErrCorrupt) {
			t.Errorf("the records are said to be in %q, before in %q: %v", folders[0], folders[1], err)
		}
	}
}
