package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
)

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
		must(t, err)
		for i := range 300 {
			must(t, errOf(ns.Put(t.Context(), fmt.Appendf(nil, "key %03d", i), fmt.Appendf(nil, "%080d of %s", i, name))))
		}
	}
	must(t, n.store.Compact(t.Context()))
	text := fmt.Sprintf("%080d of notes", 77)
	if members {
		// The statement of its role, behind its length. Its watermark names it too, but may be
		// written again at an opening, to where no byte is flipped.
		text = string(rune(len(n.ID()))) + string(n.ID())
	}
	for range 2 { // the first opening notes which of Badger's tables it has read
		must(t, n.Close(t.Context()))
		n = openForTest(t, config)
	}
	must(t, n.Close(t.Context()))
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
	if _, err := n.Backup(t.Context(), t.TempDir(), offline.BackupOptions{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a backup without it: %v", err)
	}
	must(t, n.Close(t.Context()))
	config.Repair = true
	n = openForTest(t, config)
	if len(n.Unserved()) != 0 {
		t.Fatalf("after a repair not served are %+v", n.Unserved())
	}
	ns, err := n.Namespace(name)
	if err != nil || ns.Info().Damage != nil || n.Damage() != nil {
		t.Fatalf("after it: %v, %+v, %+v", err, ns.Info().Damage, n.Damage())
	}
	if _, err := ns.Get(t.Context(), []byte("key 001")); err != nil && !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if lost := ns.Lost(); !members && lost == nil {
		t.Errorf("it says that %+v is lost", lost)
	}
	if ns.Role() != RoleAdmin {
		t.Errorf("its role is %s", ns.Info().Role)
	}
	other, err = n.Namespace(other.Name())
	must(t, err)
	if _, err := other.Get(t.Context(), []byte("later")); err != nil {
		t.Errorf("the other, after the repair: %v", err)
	}
}

// A namespace that is not served can be dropped.
func TestUnservedIsDropped(t *testing.T) {
	config := Config{Dir: t.TempDir()}
	n := openForTest(t, config)
	ns := createForTest(t, n, Policy{Unsigned: true})
	must(t, errOf(ns.Put(t.Context(), []byte("k"), []byte("the value of k"))))
	for range 2 { // the first opening notes which tables it has read
		must(t, n.Close(t.Context()))
		n = openForTest(t, config)
	}
	must(t, n.Close(t.Context()))
	rotIn(t, config.Dir, "the value of k")
	n = openForTest(t, config)
	if len(n.Unserved()) != 1 {
		t.Fatalf("not served are %+v", n.Unserved())
	}
	if err := n.DropNamespace(t.Context(), "notes"); err != nil || len(n.Unserved()) != 0 {
		t.Fatalf("%v; not served are %+v", err, n.Unserved())
	}
	if _, err := n.CreateNamespace(t.Context(), "notes", Policy{}); err != nil {
		t.Error(err)
	}
}

// brokenStore opens no second set, and, without room, drops none.
type brokenStore struct {
	dbadapter.Store
	err  error
	open []dbadapter.NamespaceID
}

func (b *brokenStore) Namespace(ctx context.Context, id dbadapter.NamespaceID, h dbadapter.Hasher, observe func([]dbadapter.Change)) (dbadapter.Namespace, error) {
	if b.open = append(b.open, id); len(b.open) == 2 && b.err != nil {
		return nil, b.err
	}
	return b.Store.Namespace(ctx, id, h, observe)
}

func (b *brokenStore) Drop(ctx context.Context, id dbadapter.NamespaceID) error {
	if b.err == ErrNoRoom {
		return b.err
	}
	return b.Store.Drop(ctx, id)
}

func (b *brokenStore) List(ctx context.Context) ([]dbadapter.NamespaceID, error) {
	if store, ok := b.Store.(dbadapter.Lister); ok {
		return store.List(ctx)
	}
	return b.open, nil
}

// A namespace without a folder that is joined again keeps its records where it cannot be opened.
func TestJoinedAgainInVain(t *testing.T) {
	na := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}})
	member := createForTest(t, na, Policy{})
	for name, c := range map[string]struct {
		err    error
		listed bool // the store alone knows of it
	}{"cut off": {context.Canceled, false}, "a full disk": {syscall.ENOSPC, false}, "damage": {ErrCorrupt, false}, "listed": {context.Canceled, true}} {
		t.Run(name, func(t *testing.T) {
			config := Config{Dir: t.TempDir(), ListenAddrs: []string{}}
			n := openForTest(t, config)
			ticket, err := member.Invite(t.Context(), InviteOptions{Role: RoleWrite})
			must(t, err)
			ns, err := n.Join(t.Context(), ticket)
			if err == nil {
				_, err = ns.Put(t.Context(), []byte("k"), []byte("v"))
			}
			must(t, errors.Join(err, n.Close(t.Context()), os.RemoveAll(folder.Path(config.Dir, member.id))))
			n = openForTest(t, config)
			if c.listed {
				clear(n.unserved)
			}
			whole := n.store
			n.store = &brokenStore{Store: whole, err: c.err}
			if _, err := n.Join(t.Context(), ticket); !errors.Is(err, c.err) {
				t.Errorf("joined: %v", err)
			}
			n.store = whole
			repairs := c.err == ErrCorrupt
			if out := n.Unserved(); !slices.ContainsFunc(out, func(u status.Unserved) bool { return u.Name == "notes" && (u.Why == "") == repairs }) {
				t.Errorf("not served are %+v", out)
			}
			if repairs {
				must(t, n.Close(t.Context()))
				n = openForTest(t, config)
			} else if _, err := n.Join(t.Context(), ticket); err != nil {
				t.Fatal(err)
			}
			if ns, err = n.Namespace("notes"); err == nil {
				_, err = ns.Get(t.Context(), []byte("k"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// The records of a namespace whose drop is not finished are not offered to be joined again.
func TestUnfinishedDrop(t *testing.T) {
	for name, noRoom := range map[string]bool{"no room": true, "a damaged folder": false} {
		t.Run(name, func(t *testing.T) {
			store := &brokenStore{Store: memdb.New(memdb.Options{})}
			config := Config{Dir: t.TempDir(), Store: store}
			n := openForTest(t, config)
			ns, err := n.CreateNamespace(t.Context(), "notes", Policy{})
			if err == nil {
				err = n.Close(t.Context())
			}
			must(t, errors.Join(err, folder.MarkDropped(n.dir, ns.id)))
			if noRoom {
				store.err = ErrNoRoom
			} else if err := os.Truncate(filepath.Join(folder.DroppedPath(n.dir, ns.id), folder.StateFile), 9); err != nil {
				t.Fatal(err)
			}
			if out := openForTest(t, config).Unserved(); len(out) > 0 {
				t.Errorf("not served are %+v", out)
			}
		})
	}
}

// A node that was removed, and has set aside what it held alone, has no trouble that a sync would end.
func TestRemovedHasNoTrouble(t *testing.T) {
	na, nb := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}}), openForTest(t, Config{})
	sa := createForTest(t, na, Policy{})
	sb := joinForTest(t, sa, nb, RoleWrite)
	must(t, sa.Remove(t.Context(), nb.ID()))
	must(t, errOf(sb.Put(t.Context(), []byte("k"), []byte("v"))))
	if _, err := sb.Sync(t.Context(), na.ID(), SyncOptions{}); !errors.Is(err, ErrRemoved) || !sb.core.Sets()[0].Recovers() {
		t.Fatalf("the sync: %v, recovers %t", err, sb.core.Sets()[0].Recovers())
	}
	if cause, is := nb.health.Causes(t.Context())[status.Recovering]; is {
		t.Error(cause)
	}
}
