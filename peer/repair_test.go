package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// flipIn flips a bit of a text where it stands in a table. A store that is open may have
// mapped the file.
func flipIn(t *testing.T, dir, text string) (table string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, storeDir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tables {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(b, []byte(text))
		if at < 0 {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{b[at] ^ 1}, int64(at))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return filepath.Base(path)
	}
	t.Fatalf("%q is in none of %d tables", text, len(tables))
	return ""
}

// A node loses a record that a member holds, and one that no member holds, to damage:
// the first comes back, the second is named until that is accepted.
func TestRepair(t *testing.T) {
	t.Parallel()
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, running %t", kind, running), func(t *testing.T) { testRepair(t, kind, running) })
		}
	}
}

func testRepair(t *testing.T, kind ondisk.Kind, running bool) {
	config := Config{Dir: t.TempDir(), StoreKind: kind}
	a, b := openForTest(t, config), openForTest(t, Config{})
	ours, err := a.CreateNamespace(t.Context(), "notes", Policy{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := joinForTest(t, ours, b)
	for i := range 300 {
		if _, err := ours.Put(t.Context(), fmt.Appendf(nil, "key %03d", i), fmt.Appendf(nil, "%080d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ours.Delete(t.Context(), []byte("key 005")); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Sync(t.Context(), a.ID(), SyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Put(t.Context(), []byte("zz"), []byte("that no member holds")); err != nil {
		t.Fatal(err)
	}
	if err := a.store.Compact(t.Context()); err != nil { // into tables
		t.Fatal(err)
	}
	before := ours.Info()
	if !running {
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	table := flipIn(t, config.Dir, fmt.Sprintf("%080d", 77))
	flipIn(t, config.Dir, "that no member holds")
	if !running {
		done, err := Salvage(t.Context(), config.Dir, nil)
		if err != nil || len(done.Namespaces) != 1 || done.Namespaces[0].Lost == nil {
			t.Fatalf("%+v, %v", done, err)
		}
		a = openForTest(t, config)
		if ours, err = a.Namespace("notes"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ours.Verify(t.Context()); running && (!errors.Is(err, ErrCorrupt) || !bytes.Contains([]byte(err.Error()), []byte(table))) {
		t.Fatalf("verify says %v", err)
	}
	if _, err := a.Connect(t.Context(), b.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	r, err := ours.Repair(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Regained == 0 || running && len(r.Damage) == 0 || !slices.Equal(r.From, []ID{b.ID()}) {
		t.Errorf("it has repaired %+v", r)
	}
	if r.Lost == nil || len(r.Lost.Keys) != 1 || string(r.Lost.Keys[0]) != "zz" || r.Lost.Unnamed != 0 || r.Lost.Older {
		t.Fatalf("it says that %+v is lost", r.Lost)
	}
	if _, err := ours.Get(t.Context(), []byte("key 005")); !errors.Is(err, ErrDeleted) {
		t.Errorf("what was deleted: %v", err)
	}
	if ours.Info().Records != before.Records-1 || ours.Info().Digest != theirs.Info().Digest || ours.Collection().Recovering {
		t.Errorf("after it: %+v, and the member has %+v", ours.Info(), theirs.Info())
	}
	if v, err := ours.Put(t.Context(), []byte("zz"), []byte("anew")); err != nil || !v.Clock.Time().After(before.Clock) {
		t.Errorf("a write after it: %v, %v", v, err)
	}
}

// What is lost stays listed when the node is opened again, until it is accepted.
func TestLostIsKept(t *testing.T) {
	config := Config{Dir: t.TempDir()}
	n := openForTest(t, config)
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"one", "two"} {
		if _, err := ns.Put(t.Context(), []byte(key), []byte("the value of "+key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.store.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	flipIn(t, config.Dir, "the value of two")
	for range 2 {
		r, err := ns.Repair(t.Context())
		if err != nil || r.Lost == nil || len(r.Lost.Keys) != 1 || string(r.Lost.Keys[0]) != "two" || ns.Info().Lost == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		n = openForTest(t, config)
		if ns, err = n.Namespace("notes"); err != nil {
			t.Fatal(err)
		}
	}
	if err := ns.AcceptLoss(); err != nil || ns.Lost() != nil {
		t.Errorf("%v; it still lists %+v", err, ns.Lost())
	}
	if _, err := ns.Get(t.Context(), []byte("one")); err != nil {
		t.Error(err)
	}
}
