package peer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/peer/offline"
)

// flipIn flips a bit of a text where it stands in a table, and returns the table with the time of its last
// change. A store that is open may have mapped the file.
func flipIn(t *testing.T, dir, text string) (table string, changed time.Time) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, folder.StoreDir, "*.sst"))
	must(t, err)
	for _, path := range tables {
		b, err := os.ReadFile(path)
		must(t, err)
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			must(t, err)
			info, err := f.Stat()
			must(t, err)
			_, err = f.WriteAt([]byte{b[at] ^ 1}, int64(at))
			must(t, errors.Join(err, f.Close()))
			return path, info.ModTime()
		}
	}
	t.Fatalf("%q is in none of %d tables", text, len(tables))
	return "", time.Time{}
}

// rotIn is flipIn that leaves no other trace: the time of the last change stays.
func rotIn(t *testing.T, dir, text string) {
	t.Helper()
	table, changed := flipIn(t, dir, text)
	must(t, os.Chtimes(table, time.Time{}, changed))
}

// A damaged store is made anew: what its database reads is there at once, what a member holds comes
// back by a sync, and what no member holds is lost, which is said until it is accepted. So where the
// store opens and damage was met, and where it does not open.
func TestRepair(t *testing.T) {
	t.Parallel()
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		for name, harm := range map[string]func(t *testing.T, store string){
			"a table": func(t *testing.T, store string) {
				flipIn(t, filepath.Dir(store), fmt.Sprintf("%080d", 77))
				flipIn(t, filepath.Dir(store), "that no member holds")
			},
			"the list": func(t *testing.T, store string) {
				files, err := filepath.Glob(filepath.Join(store, "MANIFEST*"))
				for _, path := range files {
					err = errors.Join(err, os.Truncate(path, 9))
				}
				if err != nil || len(files) == 0 {
					t.Fatal(files, err)
				}
			},
		} {
			for _, itself := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, by itself %t", kind, name, itself), func(t *testing.T) { testRepair(t, kind, harm, name == "the list", itself) })
			}
		}
	}
}

func testRepair(t *testing.T, kind ondisk.Kind, harm func(t *testing.T, store string), all, itself bool) {
	config := Config{Dir: t.TempDir(), StoreKind: kind}
	a, b := openForTest(t, config), openForTest(t, Config{})
	ours := createForTest(t, a, Policy{})
	theirs := joinForTest(t, ours, b, RoleWrite)
	for i := range 300 {
		must(t, errOf(ours.Put(t.Context(), fmt.Appendf(nil, "key %03d", i), fmt.Appendf(nil, "%080d", i))))
	}
	must(t, errOf(ours.Delete(t.Context(), []byte("key 005"))))
	must(t, errOf(theirs.Sync(t.Context(), a.ID(), SyncOptions{})))
	must(t, errOf(ours.Put(t.Context(), []byte("zz"), []byte("that no member holds"))))
	if err := a.store.Compact(t.Context()); err != nil { // into tables
		t.Fatal(err)
	}
	before := ours.Info()
	if _, err := offline.Repair(t.Context(), config.Dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("while the node runs: %v", err)
	}
	must(t, a.Close(t.Context()))
	harm(t, filepath.Join(config.Dir, folder.StoreDir))
	if itself {
		config.Repair = true
	} else {
		done, err := offline.Repair(t.Context(), config.Dir, nil)
		if err != nil || len(done.Namespaces) != 1 || done.Namespaces[0].Lost == nil || (done.Why != nil) != all || filepath.Base(done.Kept) != folder.DamagedDir {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	a = openForTest(t, config)
	ours = notes(t, a)
	lost := ours.Lost()
	if lost == nil || all && lost.Records != -1 || !all && lost.Records < 2 || !ours.Collection().Recovering || ours.Info().Damage != nil || a.Damage() != nil {
		t.Fatalf("after the repair: %+v, %+v", lost, ours.Info())
	}
	if here := ours.Info().Records; all && here != 0 || !all && kind == ondisk.Badger && here < before.Records-20 || here > before.Records-2 {
		t.Errorf("of %d records %d were carried over", before.Records, here)
	}
	if _, err := os.Stat(filepath.Join(config.Dir, folder.DamagedDir, "FORMAT")); err != nil {
		t.Errorf("the damaged files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(config.Dir, folder.StoreDir)); err == nil {
		t.Error("the damaged store is there")
	}
	must(t, errOf(a.Connect(t.Context(), b.Addrs()[0])))
	if report, err := ours.Sync(t.Context(), b.ID(), SyncOptions{}); err != nil || !report.Verified {
		t.Fatalf("%+v, %v", report, err)
	}
	if _, err := ours.Get(t.Context(), []byte("key 005")); !errors.Is(err, ErrDeleted) {
		t.Errorf("what was deleted: %v", err)
	}
	if r, err := ours.Get(t.Context(), []byte("key 077")); err != nil || string(r.Value) != fmt.Sprintf("%080d", 77) {
		t.Errorf("what the member holds: %v", err)
	}
	if ours.Info().Records != before.Records-1 || ours.Info().Digest != theirs.Info().Digest || ours.Collection().Recovering {
		t.Errorf("after a sync: %+v, and the member has %+v", ours.Info(), theirs.Info())
	}
	if _, err := ours.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := ours.Put(t.Context(), []byte("zz"), []byte("anew")); err != nil || !v.Clock.Time().After(before.Clock) {
		t.Errorf("a write after it: %v, %v", v, err)
	}
	must(t, a.Close(t.Context()))
	a = openForTest(t, config)
	if ours = notes(t, a); ours.Info().Lost == nil || ours.Info().Records != before.Records || ours.Collection().Recovering {
		t.Fatalf("after a restart: %+v", ours.Info())
	}
	if err := ours.AcceptLoss(); err != nil || ours.Lost() != nil {
		t.Errorf("%v; it still says %+v", err, ours.Lost())
	}
	if kept, err := filepath.Glob(filepath.Join(config.Dir, folder.DamagedDir+"*")); err != nil || len(kept) != 1 {
		t.Errorf("kept are %v, %v", kept, err)
	}
}

// A repair that is cut short once the node has the new store is finished by the next start. The
// next damaged store is kept beside the first one.
func TestRepairIsFinished(t *testing.T) {
	config := Config{Dir: t.TempDir()}
	n := openForTest(t, config)
	ns, err := n.CreateNamespace(t.Context(), "notes", Policy{Unsigned: true})
	if err == nil {
		_, err = ns.Put(t.Context(), []byte("one"), []byte("v"))
	}
	must(t, errors.Join(err, n.Close(t.Context())))
	for round, at := range []string{folder.StoreDir + "-2", folder.StoreDir} {
		done, err := offline.Repair(t.Context(), config.Dir, nil)
		if err != nil || done.Why != nil || done.Namespaces[0].Lost.Records != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		before := folder.StoreDir
		if at == folder.StoreDir {
			before += "-2"
		}
		cut := folder.Store{Folder: at, Before: before, Damaged: true}
		must(t, errors.Join(os.Rename(done.Kept, filepath.Join(config.Dir, before)), cut.Write(config.Dir)))
		n = openForTest(t, config)
		if ns, err = n.Namespace("notes"); err == nil {
			_, err = ns.Get(t.Context(), []byte("one"))
		}
		must(t, errors.Join(err, n.Close(t.Context())))
		if kept, err := filepath.Glob(filepath.Join(config.Dir, folder.DamagedDir+"*")); err != nil || len(kept) != round+1 {
			t.Errorf("kept are %v, %v", kept, err)
		}
		if _, err := os.Stat(filepath.Join(config.Dir, before)); err == nil {
			t.Error("the damaged store is in its place")
		}
	}
}

// A store that the note names and that is not there is not made anew, empty, in its place.
func TestNamedStoreIsNotMadeAnew(t *testing.T) {
	config := Config{Dir: t.TempDir()}
	n := openForTest(t, config)
	ns := createForTest(t, n, Policy{Unsigned: true})
	_, err := ns.Put(t.Context(), []byte("one"), []byte("v"))
	must(t, err)
	must(t, errors.Join(n.Close(t.Context()), folder.Store{Folder: "store-2", Before: "store", Damaged: true}.Write(config.Dir)))
	if _, err := Open(t.Context(), config); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a node without its store opens: %v", err)
	}
	if err := os.Remove(filepath.Join(config.Dir, "store.cbor")); err != nil { // as the error advises
		t.Fatal(err)
	}
	n = openForTest(t, config)
	ns = notes(t, n)
	if _, err := ns.Get(t.Context(), []byte("one")); err != nil {
		t.Error(err)
	}
}

// One of three nodes has lost all statements of the list of members, as damage leaves a
// store: started again it lists all three, and syncs with both others.
func TestLostListIsPutBack(t *testing.T) {
	dir := t.TempDir()
	first, second, third := openForTest(t, Config{}), openForTest(t, Config{}), openForTest(t, Config{Dir: dir})
	a := createForTest(t, first, Policy{})
	joined := func(n *Node) *Namespace {
		ns := joinForTest(t, a, n, RoleWrite)
		return ns
	}
	b, c := joined(second), joined(third)
	if _, err := a.Sync(t.Context(), second.ID(), SyncOptions{}); err != nil { // it hears of the third
		t.Fatal(err)
	}
	lose := func() {
		snap, err := c.core.Control.Store.Snapshot()
		must(t, err)
		defer snap.Close()
		var writes []dbadapter.Write
		for r, err := range snap.Scan(t.Context(), []byte("s"), nil) {
			must(t, err)
			writes = append(writes, dbadapter.Write{Record: r, Action: dbadapter.Collect})
		}
		if _, err := c.core.Control.Store.Apply(t.Context(), writes); err != nil || len(writes) != 3 {
			t.Fatalf("%d statements: %v", len(writes), err)
		}
	}
	lose()
	for _, damaged := range []bool{false, true} {
		must(t, third.Close(t.Context()))
		if damaged { // alone, it does no harm
			must(t, os.WriteFile(filepath.Join(folder.Path(dir, c.ID()), folder.ListFile), []byte("x"), 0o600))
		}
		third = openForTest(t, Config{Dir: dir})
		c = notes(t, third)
		if n := len(c.Members()); n != 3 || c.Role() != RoleWrite {
			t.Fatalf("it lists %d members, and itself with the role %s", n, c.Info().Role)
		}
		for _, other := range []*Namespace{a, b} {
			must(t, errOf(third.Connect(t.Context(), other.node.Addrs()[0])))
			if _, err := c.Sync(t.Context(), other.node.ID(), SyncOptions{}); err != nil {
				t.Errorf("it calls another: %v", err)
			}
			if _, err := other.Sync(t.Context(), third.ID(), SyncOptions{}); err != nil {
				t.Errorf("another calls it: %v", err)
			}
		}
	}
	if c.core.Members().Role(node.ID(first.ID())) != node.RoleAdmin {
		t.Error("the first node is no admin")
	}
}
