package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// A node that repairs by itself keeps the damaged files, also where the store can be
// opened, and the repair is one of a store that is open.
func TestDamagedFilesAreKept(t *testing.T) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		t.Run(string(kind), func(t *testing.T) {
			config := Config{Dir: t.TempDir(), StoreKind: kind}
			n := openForTest(t, config)
			ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 300 {
				if _, err := ns.Put(t.Context(), fmt.Appendf(nil, "key %03d", i), fmt.Appendf(nil, "%080d", i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.store.Compact(t.Context()); err != nil { // into tables
				t.Fatal(err)
			}
			table := flipIn(t, config.Dir, fmt.Sprintf("%080d", 77))
			damaged, err := os.ReadFile(filepath.Join(config.Dir, storeDir, table))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ns.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("verify says %v", err)
			}
			if err := n.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			config.Repair = true
			n = openForTest(t, config)
			waitFor(t, "the repair", func() bool {
				ns, err := n.Namespace("notes")
				return err == nil && ns.Lost() != nil
			})
			if kept, err := os.ReadFile(filepath.Join(config.Dir, damagedDir, table)); err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("of %s %d bytes are kept, %v; it had %d", table, len(kept), err, len(damaged))
			}
		})
	}
}

// A stamp of which a byte is damaged is put right, and that is all: the files that it
// speaks of stay, and the one copy is left for a repair that throws files away.
func TestMendedStampIsNoRepair(t *testing.T) {
	config := Config{Dir: t.TempDir()}
	n := openForTest(t, config)
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Put(t.Context(), []byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	log := ns.shards()[0].set.Store.Log()
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(config.Dir, storeDir, "FORMAT")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[3] ^= 1
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), config); !errors.Is(err, ErrSalvageable) {
		t.Fatalf("a node that does not repair: %v", err)
	}
	config.Repair = true
	n = openForTest(t, config)
	if ns, err = n.Namespace("notes"); err != nil {
		t.Fatal(err)
	}
	if ns.shards()[0].set.Store.Log() != log || ns.Lost() != nil {
		t.Errorf("the store was made anew: the log is %x and was %x, and %+v is lost", ns.shards()[0].set.Store.Log(), log, ns.Lost())
	}
	if _, err := os.Stat(filepath.Join(config.Dir, damagedDir)); !os.IsNotExist(err) {
		t.Errorf("the one copy is used up: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, good) {
		t.Errorf("the stamp is %q, %v", b, err)
	}
}
