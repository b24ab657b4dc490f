package peer

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/offline"
)

var (
	rotFlips = flag.Int("rot", 4, "how many bits TestRot flips, over each engine")
	rotSeed  = flag.Uint64("rot.seed", 0, "which bits TestRot flips; 0: any")
)

// rotting are three nodes, of which one is stopped, and what all of them hold.
type rotting struct {
	kind   ondisk.Kind
	random *rand.Rand
	dir    string // of the one that is stopped
	alive  [2]*Namespace
	want   map[string]dbadapter.Record
	counts map[string]int
}

// A bit of the files of one of three nodes flips while it is stopped. When it is started
// again the flip is either harmless, or it is found, named and repaired: in the end all
// three hold what they held, and nothing else, and meanwhile no read gives anything else.
func TestRot(t *testing.T) {
	seed := *rotSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("replay with -args -rot %d -rot.seed %d", *rotFlips, seed)
	for i, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		t.Run(string(kind), func(t *testing.T) {
			r := &rotting{kind: kind, random: rand.New(rand.NewPCG(seed, uint64(i))), counts: map[string]int{}}
			r.write(t)
			for range *rotFlips {
				r.flip(t)
				if t.Failed() {
					return
				}
			}
			t.Logf("%d flips: %v", *rotFlips, r.counts)
		})
	}
}

// write makes the nodes, lets each of them write, and stops one.
func (r *rotting) write(t *testing.T) {
	t.Helper()
	r.dir = t.TempDir()
	open := func() (nodes [3]*Node) {
		for i := range nodes {
			dir := r.dir
			if i > 0 {
				dir = t.TempDir()
			}
			nodes[i] = openForTest(t, Config{Dir: dir, StoreKind: r.kind})
		}
		return nodes
	}
	nodes := open()
	first := createForTest(t, nodes[0], Policy{})
	all := [3]*Namespace{first}
	for i := 1; i < 3; i++ {
		all[i] = joinForTest(t, first, nodes[i], RoleAdmin)
	}
	if _, err := first.Sync(t.Context(), nodes[1].ID(), SyncOptions{}); err != nil { // it hears of the third
		t.Fatal(err)
	}
	r.alive = [2]*Namespace{all[1], all[2]}
	r.connect(t, nodes[1], nodes[2])
	for round := range 3 { // of each key there are older records in other tables
		for i := range 240 {
			ns, key := all[(i+round)%3], fmt.Appendf(nil, "key %03d", i)
			var err error
			if i%11 == 3 && round == 2 {
				_, err = ns.Delete(t.Context(), key)
			} else {
				_, err = ns.Put(t.Context(), key, bytes.Repeat([]byte{byte('a' + round)}, 1+r.random.IntN(120)))
			}
			must(t, err)
		}
		r.equalize(t, first)
		if round == 1 {
			must(t, nodes[0].store.Compact(t.Context()))
		}
	}
	r.want = contents(t, r.alive[0])
	if got := contents(t, first); !maps.EqualFunc(got, r.want, same) {
		t.Fatal("they are not equal before anything is damaged")
	}
	must(t, nodes[0].Close(t.Context()))
}

func same(a, b dbadapter.Record) bool {
	return a.Version == b.Version && a.Deleted == b.Deleted && bytes.Equal(a.Value, b.Value)
}

// contents are all records, deleted ones included.
func contents(t *testing.T, ns *Namespace) map[string]dbadapter.Record {
	t.Helper()
	snap, err := ns.shards()[0].set.Store.Snapshot()
	must(t, err)
	defer snap.Close()
	all := map[string]dbadapter.Record{}
	for r, err := range snap.Scan(t.Context(), nil, nil) {
		must(t, err)
		all[string(r.Key)] = r.Record
	}
	return all
}

func (r *rotting) connect(t *testing.T, n *Node, to ...*Node) {
	t.Helper()
	for _, other := range to {
		must(t, errOf(n.Connect(t.Context(), other.Addrs()[0])))
	}
}

// equalize syncs all three with one another, twice.
func (r *rotting) equalize(t *testing.T, ns *Namespace) {
	t.Helper()
	for range 2 {
		for _, pair := range [][2]*Namespace{{ns, r.alive[0]}, {r.alive[0], r.alive[1]}, {ns, r.alive[1]}} {
			if report, err := pair[0].Sync(t.Context(), pair[1].node.ID(), SyncOptions{}); err != nil || !report.Verified {
				t.Fatalf("a sync: %v, %+v", err, report)
			}
		}
	}
}

// flip flips a bit in a copy of the stopped node's files, and starts it on that.
func (r *rotting) flip(t *testing.T) {
	dir := t.TempDir()
	copyNode(t, r.dir, dir)
	files, err := filepath.Glob(filepath.Join(dir, folder.StoreDir, "*"))
	must(t, err)
	path, b := "", []byte(nil)
	// Of Badger's KEYREGISTRY Badger says so itself, and leaves goroutines behind.
	for len(b) == 0 || filepath.Base(path) == "KEYREGISTRY" {
		path = files[r.random.IntN(len(files))]
		b, err = os.ReadFile(path)
		must(t, err)
	}
	at, bit := r.random.IntN(max(1, len(bytes.TrimRight(b, "\x00")))), byte(1)<<r.random.IntN(8)
	b[at] ^= bit
	must(t, os.WriteFile(path, b, 0o600))
	if r.random.IntN(2) == 0 { // as rot does; else Badger reads the table when it is opened
		if info, err := os.Stat(filepath.Join(r.dir, folder.StoreDir, filepath.Base(path))); err != nil || os.Chtimes(path, time.Time{}, info.ModTime()) != nil {
			t.Fatal(err)
		}
	}
	what := fmt.Sprintf("bit %#x of byte %d of %s", bit, at, filepath.Base(path))
	how := r.start(t, dir, what)
	t.Logf("%s: %s", what, how)
	r.counts[how]++
	must(t, os.RemoveAll(dir))
}

// start starts the node, repairs it if that is asked for, and compares all.
func (r *rotting) start(t *testing.T, dir, what string) (how string) {
	how = "harmless"
	config := Config{Dir: dir, StoreKind: r.kind}
	n, err := Open(t.Context(), config)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: the start: %v", what, err)
		}
		how = "found at the start"
		n = r.repair(t, config, what)
	}
	defer func() {
		if err := n.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("%s: closing: %v", what, err)
		}
	}()
	r.connect(t, n, r.alive[0].node, r.alive[1].node)
	found := len(n.Unserved()) > 0
	if ns, err := n.Namespace("notes"); err == nil {
		r.read(t, ns, what)
		for _, other := range r.alive { // it may fail, but says nothing that is not so
			if _, err := ns.Sync(t.Context(), other.node.ID(), SyncOptions{}); err == nil {
				r.read(t, ns, what)
			}
		}
		_, err = ns.Verify(t.Context())
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: the verification: %v", what, err)
		}
		if found = err != nil; found && ns.Info().Damage == nil && n.Damage() == nil {
			t.Errorf("%s: it was found, and is no state: %v", what, err)
		}
	}
	if found {
		how = "found by reading"
		if err := n.Close(t.Context()); err != nil {
			t.Fatalf("%s: closing: %v", what, err)
		}
		n = r.repair(t, config, what)
		r.connect(t, n, r.alive[0].node, r.alive[1].node)
	}
	ns, err := n.Namespace("notes")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if n := len(ns.Members()); n != 3 {
		t.Fatalf("%s: %d members are listed: it would deny the others", what, n)
	}
	r.equalize(t, ns)
	for _, of := range []*Namespace{ns, r.alive[0], r.alive[1]} {
		if got := contents(t, of); !maps.EqualFunc(got, r.want, same) {
			t.Fatalf("%s: %d records are there in the end, and %d were; or others", what, len(got), len(r.want))
		}
	}
	if _, err := ns.Verify(t.Context()); err != nil || ns.Info().Damage != nil || n.Damage() != nil || ns.Info().Digest != r.alive[0].Info().Digest {
		t.Fatalf("%s: in the end: %v, %+v, %+v", what, err, ns.Info(), n.Damage())
	}
	return how
}

// repair repairs the store of the node, and starts it.
func (r *rotting) repair(t *testing.T, config Config, what string) *Node {
	t.Helper()
	done, err := offline.Repair(t.Context(), config.Dir, nil)
	if err != nil || len(done.Namespaces) != 1 {
		t.Fatalf("%s: the repair: %v, %+v", what, err, done)
	}
	n, err := Open(t.Context(), config)
	if err != nil {
		t.Fatalf("%s: the start after a repair: %v", what, err)
	}
	if ns, err := n.Namespace("notes"); err == nil {
		r.read(t, ns, what)
	}
	return n
}

// read reads each record: it is what was written, or an error that says what is wrong.
func (r *rotting) read(t *testing.T, ns *Namespace, what string) {
	t.Helper()
	lacks := ns.Lost() != nil // as is said
	for key, want := range r.want {
		got, err := ns.Get(t.Context(), []byte(key))
		switch {
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNotFound) && lacks, want.Deleted && errors.Is(err, ErrDeleted):
		case err != nil:
			t.Errorf("%s: %q gives %v", what, key, err)
		case got.Version != want.Version || !bytes.Equal(got.Value, want.Value):
			t.Errorf("%s: %q has the version %s, not %s", what, key, got.Version, want.Version)
		}
	}
}
