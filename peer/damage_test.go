package peer

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/memdb"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
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

// A read that meets damage makes it a state of its namespace at once, said once in the
// log. It outlasts a restart, and the damage itself, until a verification has found the
// namespace whole.
func TestDamageIsAState(t *testing.T) {
	for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
		t.Run(string(kind), func(t *testing.T) { testDamageIsAState(t, kind) })
	}
}

func testDamageIsAState(t *testing.T, kind ondisk.Kind) {
	var log Log
	registry := prometheus.NewRegistry()
	config := Config{Dir: t.TempDir(), StoreKind: kind, Logger: log.Logger(slog.LevelInfo), Registerer: registry}
	n := openForTest(t, config)
	open := map[string]*Namespace{}
	for _, name := range []string{"notes", "other"} {
		ns, err := n.CreateNamespace(t.Context(), name, Policy{Unsigned: true})
		must(t, err)
		open[name] = ns
		for i := range 10 {
			must(t, errOf(ns.Put(t.Context(), fmt.Appendf(nil, "key %d", i), fmt.Appendf(nil, "value %03d of %s", i, name))))
		}
	}
	must(t, n.store.Compact(t.Context()))
	notes := open["notes"]
	if notes.Info().Damage != nil || n.Damage() != nil || metricOf(t, registry, "syncd_store_damaged", "notes") != 0 {
		t.Fatal("it is damaged before it is")
	}
	flipIn(t, config.Dir, "value 005 of notes")
	for range 5 {
		if _, err := notes.Get(t.Context(), []byte("key 5")); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("the read: %v", err)
		}
	}
	d := notes.Info().Damage // and the node's, where the store has compacted itself meanwhile
	if d == nil || d.Findings != 5 || len(d.Found) != 1 || d.At.IsZero() || open["other"].Info().Damage != nil {
		t.Fatalf("after five reads: %+v, %+v", d, open["other"].Info().Damage)
	}
	if said := log.With("this is said once, and syncd status goes on to say it\" ns=notes"); said != 1 {
		t.Errorf("five reads have logged %d lines\n%s", said, log.String())
	}
	if metricOf(t, registry, "syncd_store_damaged", "notes") != 1 || metricOf(t, registry, "syncd_damage_findings_total", "notes") != 5 || metricOf(t, registry, "syncd_store_damaged", "other") != 0 {
		t.Error("the metrics say something else")
	}
	if _, err := notes.Verify(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a verification: %v", err)
	}
	if notes.Info().Damage == nil || n.Damage() == nil || metricOf(t, registry, "syncd_store_damaged", "") != 2 {
		t.Errorf("after a verification that found a damaged file: %+v, %+v", notes.Info().Damage, n.Damage())
	}

	flipIn(t, config.Dir, "walue 005 of notes") // the bit is what it was
	must(t, errOf(notes.Get(t.Context(), []byte("key 5"))))
	must(t, n.Close(t.Context()))
	n = openForTest(t, config)
	for name := range open {
		var err error
		open[name], err = n.Namespace(name)
		must(t, err)
	}
	notes = open["notes"]
	if again := notes.Info().Damage; again == nil || again.Findings < 5 || again.Found[0] != d.Found[0] || n.Damage() == nil {
		t.Fatalf("after a restart: %+v, %+v", again, n.Damage())
	}
	must(t, errOf(notes.Verify(t.Context())))
	if notes.Info().Damage != nil || n.Damage() == nil {
		t.Errorf("it was verified: %+v; the other was not: %+v", notes.Info().Damage, n.Damage())
	}
	if _, err := open["other"].Verify(t.Context()); err != nil || n.Damage() != nil || metricOf(t, registry, "syncd_store_damaged", "") != 0 {
		t.Errorf("all were verified: %v, %+v", err, n.Damage())
	}

	flipIn(t, config.Dir, "value 005 of notes")
	if _, err := notes.Verify(t.Context()); !errors.Is(err, ErrCorrupt) || n.Damage() == nil { // Pebble has the block in its cache
		t.Fatalf("damaged again: %v", err)
	}
	must(t, n.Close(t.Context()))
	if r, err := offline.Repair(t.Context(), config.Dir, nil); err != nil {
		t.Fatalf("the repair: %v, %+v", err, r)
	}
	n = openForTest(t, config)
	if notes, err := n.Namespace("notes"); err != nil || notes.Lost() == nil || notes.Info().Damage != nil || n.Damage() != nil || metricOf(t, registry, "syncd_lost_records", "notes") == 0 {
		t.Errorf("after a repair: %v, %+v, %+v", err, notes.Info(), n.Damage())
	}
}

// full is a namespace of a store that takes no more.
type full struct{ dbadapter.Namespace }

var errFull = errors.New("the disk is full")

func (full) Apply(context.Context, []dbadapter.Write) ([]dbadapter.Outcome, error) {
	return nil, errFull
}

// A side that breaks off a sync, whichever it is, lets the other one go at once, also
// where that has much more to send; it learns why where it has little.
func TestBreakingOff(t *testing.T) { overEach(t, breakingOff) }

func breakingOff(t *testing.T, listen []string) {
	for _, records := range []int{1, 40} {
		for _, caller := range []string{"full", "giving"} {
			t.Run(fmt.Sprintf("%d records, the %s side calls", records, caller), func(t *testing.T) {
				cfg := Config{ListenAddrs: listen, Limits: Limits{IdleTimeout: time.Hour}}
				a, b := openForTest(t, cfg), openForTest(t, cfg)
				giving := createForTest(t, a, Policy{})
				must(t, errOf(giving.Put(t.Context(), []byte("common"), nil)))
				taking := joinForTest(t, giving, b, RoleWrite)
				for i := range records {
					must(t, errOf(giving.Put(t.Context(), fmt.Append(nil, i), make([]byte, 1<<20))))
				}
				taking.shards()[0].set.Store = full{taking.shards()[0].set.Store}
				ended := make(chan error, 1)
				if caller == "full" {
					if _, err := taking.Sync(t.Context(), a.self.id, SyncOptions{}); !errors.Is(err, errFull) {
						t.Errorf("the full side: %v", err)
					}
					eventually(t, "the giving side has ended", func() bool { return a.running.Load() == 0 })
				} else {
					go func() {
						_, err := giving.Sync(t.Context(), b.self.id, SyncOptions{})
						ended <- err
					}()
					var err error
					select {
					case err = <-ended:
					case <-time.After(5 * time.Minute):
						t.Fatal("the giving side waits")
					}
					if !errors.Is(err, ErrUnreachable) && !errors.Is(err, reconcile.ErrPeer) || records == 1 && errors.Is(err, ErrUnreachable) {
						t.Errorf("the giving side: %v", err)
					}
				}
			})
		}
	}
}

// An audit is content with what commits and syncs make, and sees each kind of
// drift.
func TestAudit(t *testing.T) {
	n := openForTest(t, Config{})
	ns := createForTest(t, n, Policy{})
	for i := range 200 {
		must(t, errOf(ns.Put(t.Context(), fmt.Append(nil, i%150), fmt.Append(nil, i))))
	}
	must(t, errOf(ns.Delete(t.Context(), []byte("7"))))
	must(t, ns.Audit(t.Context()))
	_, _, seq := ns.shards()[0].set.Live.State()
	for what, change := range map[string]dbadapter.Change{
		"a pair":   {Index: 5, New: dbadapter.Checksum(rateless.Seal(5, 7))},
		"a digest": {Delta: dbadapter.Digest{1}},
		"a number": {Records: 1},
	} {
		change.Seq = seq
		ns.shards()[0].set.Live.Observe([]dbadapter.Change{change})
		if err := ns.Audit(t.Context()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s too many: %v", what, err)
		}
		change.Old, change.New, change.Records = change.New, change.Old, -change.Records
		change.Delta = dbadapter.Digest{}.Sub(change.Delta)
		ns.shards()[0].set.Live.Observe([]dbadapter.Change{change})
		if err := ns.Audit(t.Context()); err != nil {
			t.Errorf("without %s: %v", what, err)
		}
	}
	shut := ns.node
	must(t, shut.Close(t.Context()))
	if err := ns.Audit(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed node: %v", err)
	}
}

// A node that was closed in order takes up a summary, and does not read its records;
// Verify puts right what has drifted, and names the file that is damaged.
func TestVerify(t *testing.T) {
	t.Parallel()
	dir, log := t.TempDir(), &Log{}
	config := Config{Dir: dir, Logger: log.Logger(slog.LevelInfo)}
	n := openForTest(t, config)
	ns := createForTest(t, n, Policy{Unsigned: true})
	const records = 5 * 4000
	for at := 0; at < records; at += 4000 {
		if err := ns.Batch(t.Context(), func(b *Batch) error {
			for i := range 4000 {
				b.Put(fmt.Appendf(nil, "key %d", at+i), []byte("value"))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := ns.Info()
	must(t, n.Close(t.Context()))
	n = openForTest(t, config)
	ns = notes(t, n)
	if got := ns.Info(); got.Digest != want.Digest || got.Records != records || log.With("was taken up") != 1 {
		t.Fatalf("after a restart it holds %d records, and has taken up %d summaries", got.Records, log.With("was taken up"))
	}
	if v, err := ns.Verify(t.Context()); err != nil || v != (status.Verification{Records: records, Files: true}) {
		t.Fatalf("a sound node: %+v, %v", v, err)
	}
	_, _, seq := ns.shards()[0].set.Live.State()
	ns.shards()[0].set.Live.Observe([]dbadapter.Change{{Seq: seq, Index: 5, New: dbadapter.Checksum(rateless.Seal(5, 7)), Records: 1}})
	if v, err := ns.Verify(t.Context()); err != nil || v.Drift == "" || ns.shards()[0].set.Live.Drifted() != 1 || log.With("had drifted") != 1 {
		t.Fatalf("a node that has drifted: %+v, %v", v, err)
	}
	if v, err := ns.Verify(t.Context()); err != nil || v.Drift != "" {
		t.Fatalf("once that is put right: %+v, %v", v, err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, folder.StoreDir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal("there is no table", err)
	}
	info, err := os.Stat(tables[0])
	must(t, err)
	f, err := os.OpenFile(tables[0], os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	b := make([]byte, 1)
	must(t, errOf(f.ReadAt(b, 500)))
	must(t, errOf(f.WriteAt([]byte{b[0] ^ 1}, 500)))
	must(t, os.Chtimes(tables[0], time.Time{}, info.ModTime()))
	if _, err := ns.Verify(t.Context()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), filepath.Base(tables[0])) {
		t.Errorf("a flipped bit of %s gives %v", tables[0], err)
	}
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
