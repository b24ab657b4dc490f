package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/durable"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

// How an opening ends that meets a file that is damaged.
const (
	isRefused  = "refused"    // the node is not opened, and the error is ErrFileDamaged
	isUnserved = "not served" // the namespace is not served, for ErrFileDamaged, and the other one is
	isHealed   = "healed"     // the log warns and names the file; what was there is kept under another name
	isWarned   = "warned"     // the log warns and names the file, which is made anew or holds nothing
	isFine     = "fine"       // nothing shows, and nothing is wrong
	isSystem   = "system"     // the node is not opened, and the error is the system's
	isLeft     = "left"       // the log warns with the system's error, and the file stays as it is
	isApart    = "apart"      // the namespace is not served, for the system's error, and the other one is
)

// damages are what is done to a file.
var damages = []struct {
	name string
	do   func(path, other string) error
}{
	{"missing", func(path, _ string) error { return os.Remove(path) }},
	{"empty", func(path, _ string) error { return os.Truncate(path, 0) }},
	{"cut", func(path, _ string) error { return rewrite(path, func(b []byte) []byte { return b[:len(b)/2] }) }},
	{"zeros", func(path, _ string) error {
		return rewrite(path, func(b []byte) []byte { return make([]byte, len(b)) })
	}},
	{"flipped early", flip(0.3)},
	{"flipped last", flip(0.99)},
	{"another node's", func(path, other string) error {
		b, err := os.ReadFile(other)
		if errors.Is(err, fs.ErrNotExist) { // it is of no node
			return nil
		}
		return errors.Join(err, os.WriteFile(path, b, 0o600))
	}},
	{"a folder", func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
	{"unreadable", func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink(path, path)) }}, // also for root
}

func rewrite(path string, edit func([]byte) []byte) error {
	b, err := os.ReadFile(path)
	return errors.Join(err, os.WriteFile(path, edit(b), 0o600))
}

func flip(at float64) func(string, string) error {
	return func(path, _ string) error {
		return rewrite(path, func(b []byte) []byte { b[int(at*float64(len(b)))] ^= 1; return b })
	}
}

// smallFiles are the files of a data directory, ID standing for the namespace's, and what
// comes of each of the damages, in their order.
var smallFiles = []struct {
	name                 string
	missing, bad, others string // others: another node's
	folder, unreadable   string
	todo                 func(*testing.T, *filesTest) // what the error says to do, beside putting the file back
}{
	{"identity.key", isRefused, isRefused, isRefused, isSystem, isSystem, newIdentityForTest},
	{"peers.cbor", isWarned, isHealed, isRefused, isSystem, isSystem, nil},
	{"damage.cbor", isFine, isHealed, isHealed, isSystem, isSystem, nil},
	{"restored", isFine, isWarned, isWarned, isSystem, isSystem, nil},
	{"store.cbor", isRefused, isRefused, isFine, isSystem, isSystem, renameStore},
	{"namespaces/ID/state.cbor", isUnserved, isUnserved, isUnserved, isApart, isApart, joinAgain},
	{"namespaces/ID/secret", isUnserved, isUnserved, isFine, isApart, isApart, joinAgain},
	{"namespaces/ID/verified.cbor", isWarned, isHealed, isHealed, isLeft, isLeft, nil},
	{"namespaces/ID/members.log", isWarned, isWarned, isFine, isLeft, isLeft, nil},
	{"namespaces/ID", isUnserved, "", "", "", "", joinAgain},
}

// filesTest is a node whose folder is damaged, and another member of its namespace.
type filesTest struct {
	dir, path string // the folder, and the file
	log       Log
	member    *Namespace
	id        dbadapter.NamespaceID
}

func (f *filesTest) open(t *testing.T) (*Node, error) {
	f.log.Reset()
	n, err := Open(t.Context(), Config{Dir: f.dir, ListenAddrs: []string{}, Logger: f.log.Logger(slog.LevelWarn)})
	return n, err
}

// warns reports whether the log has a warning that names the file.
func (f *filesTest) warns() bool {
	return strings.Contains(f.log.String(), filepath.Base(f.path)) || strings.Contains(f.log.String(), "list of members")
}

func newIdentityForTest(t *testing.T, f *filesTest) {
	r, err := offline.NewIdentity(f.dir, nil)
	must(t, err)
	if _, err := os.Stat(r.OldKey); r.OldKey != "" && err != nil {
		t.Error(err)
	}
	n, err := f.open(t)
	if err != nil || n.ID() != r.New || len(n.Unserved()) > 0 {
		t.Fatalf("%v, not served %+v", err, n.Unserved())
	}
	joinForTest(t, f.member, n, RoleWrite)
	f.whole(t, n)
}

func joinAgain(t *testing.T, f *filesTest) {
	n, err := f.open(t)
	must(t, err)
	joinForTest(t, f.member, n, RoleWrite)
	f.whole(t, n)
}

func renameStore(t *testing.T, f *filesTest) {
	if err := os.Rename(f.path, f.path+".away"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	must(t, os.Rename(filepath.Join(f.dir, "store-pebble"), filepath.Join(f.dir, "store")))
	n, err := f.open(t)
	must(t, err)
	f.whole(t, n)
}

// whole closes a node that has all of its records.
func (f *filesTest) whole(t *testing.T, n *Node) {
	t.Helper()
	if len(n.Unserved()) > 0 {
		t.Errorf("not served: %+v", n.Unserved())
	}
	for _, name := range []string{"notes", "other"} {
		ns, err := n.Namespace(name)
		if err == nil {
			_, err = ns.Get(t.Context(), []byte("k"))
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// check opens the damaged folder and compares what comes of it.
func (f *filesTest) check(t *testing.T, want string) {
	n, err := f.open(t)
	if err == nil {
		defer n.Close(context.Background())
	}
	switch want {
	case isRefused:
		if !errors.Is(err, ErrFileDamaged) || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), f.path) {
			t.Errorf("opened: %v; want an error that names %s", err, f.path)
		}
		return
	case isSystem:
		if err == nil || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), f.path) {
			t.Errorf("opened: %v; want the system's error", err)
		}
		return
	}
	must(t, err)
	out := n.Unserved()
	if want == isUnserved || want == isApart {
		if _, err := n.Namespace("other"); err != nil {
			t.Errorf("the other: %v", err)
		}
		if len(out) == 0 || out[0].Why == "" || !strings.Contains(f.log.String(), out[0].Why) {
			t.Fatalf("not served are %+v; the log: %s", out, &f.log)
		}
		at := slices.IndexFunc(out, func(u status.Unserved) bool { return u.ID == fmt.Sprintf("%x", f.id) })
		_, err := n.Namespace(out[at].Name)
		if errors.Is(err, ErrFileDamaged) != (want == isUnserved) || !strings.Contains(err.Error(), f.path) {
			t.Errorf("a call gives %v", err)
		}
		if _, err := n.Namespace("notes"); err == nil || !strings.Contains(err.Error(), "is not served") {
			t.Errorf("by its name: %v", err)
		}
		must(t, n.Close(t.Context()))
		if r, err := offline.Repair(t.Context(), n.dir, nil); err == nil && len(r.Strange) == 0 && len(r.Namespaces) != 2 {
			t.Errorf("a repair of the store loses it in silence: %+v", r)
		}
		return
	}
	if len(out) > 0 || f.warns() == (want == isFine) {
		t.Errorf("not served are %+v; the log: %s", out, &f.log)
	}
	kept, _ := filepath.Glob(f.path + durable.AsideSuffix + "*")
	if want == isHealed && (len(kept) != 1 || !strings.Contains(f.log.String(), kept[0])) {
		t.Errorf("kept are %v; the log: %s", kept, &f.log)
	}
}

// TestSmallFiles does each damage to each small file of a data directory. Each is noticed:
// the node, or the namespace alone, is refused by an error that names the file and says
// what to do, which then helps; or the log warns, and what was there is kept.
func TestSmallFiles(t *testing.T) {
	whole, other := t.TempDir(), t.TempDir()
	na := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}})
	member := createForTest(t, na, Policy{})
	must(t, errOf(member.Put(t.Context(), []byte("k"), []byte("v"))))
	names := map[string]bool{}
	for _, dir := range []string{other, whole} {
		n := openForTest(t, Config{Dir: dir, ListenAddrs: []string{}})
		ns := joinForTest(t, member, n, RoleWrite)
		second, err := n.CreateNamespace(t.Context(), "other", Policy{})
		if err == nil {
			_, err = second.Put(t.Context(), []byte("k"), []byte("v"))
		}
		if err == nil {
			_, err = n.AddPeer(t.Context(), "/ip4/192.0.2.1/tcp/4747/p2p/12D3KooWJyWUCsoEAMkNX4Tb7nD2NP8PXsNsXHnskQ87dnzjXUos")
		}
		must(t, err)
		_ = n.damage.Met(ns.id, "notes", fmt.Errorf("found: %w", ErrCorrupt))
		must(t, n.Close(t.Context()))
		must(t, errOf(offline.Migrate(t.Context(), dir, ondisk.Pebble, offline.MigrateOptions{})))
	}
	id := fmt.Sprintf("%x", member.id)
	for _, file := range smallFiles {
		name := strings.Replace(file.name, "ID", id, 1)
		names[name] = true
		for i, d := range damages {
			want := file.bad
			switch d.name {
			case "missing":
				want = file.missing
			case "another node's":
				want = file.others
			case "a folder":
				want = file.folder
			case "unreadable":
				want = file.unreadable
			}
			if strings.HasSuffix(file.name, "ID") && i > 0 {
				continue
			}
			t.Run(file.name+" "+d.name, func(t *testing.T) {
				f := &filesTest{dir: filepath.Join(t.TempDir(), "d"), member: member, id: member.id}
				f.path = filepath.Join(f.dir, name)
				copyNode(t, whole, f.dir)
				if name == "restored" {
					must(t, folder.SaveNote(durable.File{Path: f.path, Kind: "restored"}, folder.Restored{Generation: 1}))
				}
				if strings.HasSuffix(file.name, "ID") {
					must(t, os.RemoveAll(f.path))
				} else {
					must(t, d.do(f.path, filepath.Join(other, name)))
				}
				f.check(t, want)
				if file.todo != nil && (want == isRefused || want == isUnserved) {
					file.todo(t, f)
				}
				if want == isHealed || want == isWarned {
					f.check(t, isFine)
				}
			})
		}
	}
	if err := filepath.WalkDir(whole, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(whole, path)
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(rel, "store"):
			return fs.SkipDir
		case !e.IsDir() && !names[strings.Replace(rel, filepath.Base(filepath.Dir(rel)), id, 1)] && !names[rel]:
			t.Errorf("%s is not in the table", rel)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestFilesWithoutEnvelope: the files of programs before the envelope are taken, and have one then.
func TestFilesWithoutEnvelope(t *testing.T) {
	f := &filesTest{dir: t.TempDir()}
	n, err := f.open(t)
	must(t, err)
	ns := createForTest(t, n, Policy{})
	must(t, n.Close(t.Context()))
	for _, path := range []string{filepath.Join(f.dir, folder.AddressBookFile), filepath.Join(folder.Path(f.dir, ns.id), folder.StateFile)} {
		must(t, rewrite(path, func(b []byte) []byte { _, b, _ = bytes.Cut(b, []byte("\n")); return b }))
		if n, err = f.open(t); err != nil || len(n.Namespaces()) != 1 || f.log.String() != "" {
			t.Fatalf("%v; the log: %s", err, &f.log)
		}
		must(t, n.Close(t.Context()))
		if b, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, []byte("syncd file 1 ")) || !bytes.Contains(b[:100], []byte(n.ID().String())) {
			t.Errorf("%s begins with %.60q, %v", path, b, err)
		}
	}
}
