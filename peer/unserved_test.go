package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// rotIn flips a bit of a text where it stands in a table, and leaves no other trace: the
// time of the last change stays.
func rotIn(t *testing.T, dir, text string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, storeDir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tables {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			b[at] ^= 1
			if err := errors.Join(os.WriteFile(path, b, 0o600), os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%q is in none of %d tables", text, len(tables))
}

// A bad record of a small namespace, of which no summary is kept, or of its list of
// members, leaves the other namespaces served. A repair makes it be served again.
func TestOthersAreServed(t *testing.T) {
	t.Parallel()
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		for _, members := range []bool{false, true} {
			if members && kind == ondisk.Pebble {
				continue // one block has the lists of both
			}
			t.Run(fmt.Sprintf("%s, members %t", kind, members), func(t *testing.T) { testOthersAreServed(t, kind, members) })
		}
	}
}

func testOthersAreServed(t *testing.T, kind ondisk.Kind, members bool) {
	config := Config{Dir: t.TempDir(), StoreKind: kind}
	n := openForTest(t, config)
	names := []string{"notes", "other"}
	for _, name := range names {
		ns, err := n.CreateNamespace(t.Context(), name, Policy{Unsigned: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			if _, err := ns.Put(t.Context(), fmt.Appendf(nil, "key %03d", i), fmt.Appendf(nil, "%080d of %s", i, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := n.store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%080d of notes", 77)
	if members {
		// The statement of its role, behind its length. Its watermark names it too, but may be
		// written again at an opening, to where no byte is flipped.
		text = string(rune(len(n.ID()))) + string(n.ID())
	}
	for range 2 { // the first opening notes which of Badger's tables it has read
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		n = openForTest(t, config)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rotIn(t, config.Dir, text)
	n = openForTest(t, config)
	out := n.Unserved()
	if len(out) != 1 || out[0].Damage == nil || !members && out[0].Name != "notes" || len(n.Namespaces()) != 1 {
		t.Fatalf("not served are %+v, and served are %d", out, len(n.Namespaces()))
	}
	name, other := out[0].Name, n.Namespaces()[0]
	if _, err := other.Put(t.Context(), []byte("later"), []byte("v")); err != nil || other.Info().Damage != nil {
		t.Errorf("the other: %v, %+v", err, other.Info().Damage)
	}
	if _, err := n.Namespace(name); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a call gives %v", err)
	}
	if _, err := n.CreateNamespace(t.Context(), name, Policy{}); !errors.Is(err, ErrExists) {
		t.Errorf("its name is given away: %v", err)
	}
	if _, err := n.Backup(t.Context(), t.TempDir(), BackupOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a backup without it: %v", err)
	}
	r, err := n.Repair(t.Context(), name)
	if err != nil || len(r.Damage) == 0 || len(n.Unserved()) != 0 {
		t.Fatalf("the repair: %v, %+v; not served are %+v", err, r, n.Unserved())
	}
	ns, err := n.Namespace(name)
	if err != nil || ns.Info().Damage != nil || n.Damage() != nil {
		t.Fatalf("after it: %v, %+v, %+v", err, ns.Info().Damage, n.Damage())
	}
	if _, err := ns.Get(t.Context(), []byte("key 001")); err != nil && !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if lost := ns.Lost(); !members && (lost == nil || lost.missing() == 0) {
		t.Errorf("it says that %+v is lost", lost)
	}
	if ns.Info().Role != RoleAdmin {
		t.Errorf("its role is %s", ns.Info().Role)
	}
	if _, err := other.Get(t.Context(), []byte("later")); err != nil {
		t.Errorf("the other, after the repair: %v", err)
	}
}

// A namespace that is not served can be dropped.
func TestUnservedIsDropped(t *testing.T) {
	config := Config{Dir: t.TempDir()}
	n := openForTest(t, config)
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Put(t.Context(), []byte("k"), []byte("the value of k")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first opening notes which tables it has read
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		n = openForTest(t, config)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rotIn(t, config.Dir, "the value of k")
	n = openForTest(t, config)
	if len(n.Unserved()) != 1 {
		t.Fatalf("not served are %+v", n.Unserved())
	}
	if err := n.DropNamespace(t.Context(), "notes", DropOptions{}); err != nil || len(n.Unserved()) != 0 {
		t.Fatalf("%v; not served are %+v", err, n.Unserved())
	}
	if _, err := n.CreateNamespace(t.Context(), "notes", Policy{}); err != nil {
		t.Error(err)
	}
}
