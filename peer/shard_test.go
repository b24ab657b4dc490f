package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/netio"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
)

// Shards go to the nodes that join, and leave those that handed them over; and come back
// when a member is removed. No record is lost, and restarts keep what is held, with what
// syncs have proved of it.
func TestShardsComeAndGo(t *testing.T) {
	t.Parallel()
	c := newShardCluster(t, 1, Config{})
	for number := range placement.Shard(8) {
		c.put(0, number, fmt.Sprint("first of ", number))
	}
	c.join()
	c.join()
	c.settle(0, 1, 2)
	c.whole()
	for number := range placement.Shard(8) {
		of := c.holders(number)
		if len(of) != 2 {
			t.Fatalf("%v hold shard %d", of, number)
		}
		c.put(of[1], number, fmt.Sprint("second of ", number))
	}
	c.round()
	c.round()
	c.whole()
	for i, ns := range c.spaces {
		records, held := int64(0), c.numbers(i)
		for _, number := range held {
			records += int64(len(c.want[number]))
		}
		if got := ns.Info().Records; got != records {
			t.Errorf("node %d tells of %d records, want %d", i, got, records)
		}
		if v, err := ns.Verify(t.Context()); err != nil || v.Records != records {
			t.Errorf("node %d verifies %d records: %v", i, v.Records, err)
		}
		c.reopen(i)
		if got := c.numbers(i); !slices.Equal(got, held) {
			t.Errorf("node %d held %v before its restart, and holds %v", i, held, got)
		}
		for _, sh := range c.spaces[i].shards() {
			if last, _ := sh.verified.Last(); last.At.IsZero() {
				t.Errorf("after a restart node %d does not know that shard %d was proved", i, sh.set.Shard())
			}
		}
		for number := range placement.Shard(8) {
			_, err := os.Stat(filepath.Join(folder.Path(c.config[i].Dir, ns.id), folder.ProofsOf(int(number), true)))
			if kept := err == nil; kept != slices.Contains(held, number) {
				t.Errorf("node %d, which holds %v, has proofs of shard %d: %t", i, held, number, kept)
			}
		}
	}
	c.whole()
	// Of two old hosts both are needed: the member first hands its shards over.
	for what, end := range map[string]func(*Namespace, context.Context, ID) error{"removed": (*Namespace).Remove, "lapses": (*Namespace).Lapse} {
		if err := end(c.spaces[0], t.Context(), c.nodes[2].ID()); !errors.Is(err, ErrNoMajority) || len(c.spaces[0].Members()) != 3 {
			t.Errorf("one of two hosts is %s: %v", what, err)
		}
	}
	all, err := c.spaces[0].Cluster(t.Context())
	must(t, err)
	without, needed := c.spaces[0].Majorities(all)
	if len(without) > 0 || !slices.Contains(needed, c.nodes[2].ID()) {
		t.Errorf("shards without a majority: %v; needed are %v", without, needed)
	}
	must(t, c.spaces[0].SetRole(t.Context(), c.nodes[2].ID(), RoleRead))
	c.settle(0, 1)
	must(t, c.spaces[0].Remove(t.Context(), c.nodes[2].ID()))
	if got := [][]placement.Shard{c.numbers(0), c.numbers(1)}; len(got[0]) != 8 || len(got[1]) != 8 {
		t.Errorf("two nodes are left, which hold %v", got)
	}
	c.round()
	c.whole()
}

// A backup, a restore, another store and a repair keep all shards that a node holds; a drop
// leaves no record of any.
func TestFilesOfShards(t *testing.T) {
	c := newShardCluster(t, 1, Config{})
	for number := range placement.Shard(8) {
		for i := range int(number) {
			c.put(0, number, fmt.Sprintf("%d of %d", i, number))
		}
	}
	backups, config, id := t.TempDir(), c.config[0], c.spaces[0].id
	b, err := c.nodes[0].Backup(t.Context(), backups, offline.BackupOptions{})
	if want := []offline.BackupNamespace{{Name: "notes", ID: c.spaces[0].Info().ID, Records: 28}}; err != nil || !slices.Equal(b.Namespaces, want) {
		t.Fatalf("backed up: %+v, %v; want %+v", b, err, want)
	}
	must(t, c.nodes[0].Close(t.Context()))
	config.Dir = filepath.Join(t.TempDir(), "restored")
	must(t, errOf(offline.Restore(t.Context(), backups, config.Dir, offline.RestoreOptions{})))
	c.config[0] = config
	moved, err := offline.Migrate(t.Context(), config.Dir, ondisk.Pebble, offline.MigrateOptions{})
	if err != nil || moved.Namespaces != 1 || moved.Records < 28 {
		t.Fatalf("moved: %+v, %v", moved, err)
	}
	saved, err := offline.Repair(t.Context(), config.Dir, nil)
	if err != nil || saved.Why != nil || len(saved.Namespaces) != 1 || saved.Namespaces[0].Lost.Records != 0 || len(saved.Namespaces[0].Lost.Shards) != 0 {
		t.Fatalf("repaired: %+v, %v", saved, err)
	}
	c.reopen(0)
	c.whole()
	if v, err := c.spaces[0].Verify(t.Context()); err != nil || v.Records != 28 || !v.Files {
		t.Errorf("verified: %+v, %v", v, err)
	}
	some := c.spaces[0].shards()[:7] // as if the store of the last one could not be opened
	c.spaces[0].held.Store(&some)
	must(t, c.nodes[0].DropNamespace(t.Context(), "notes"))
	if _, err := os.Stat(folder.Path(config.Dir, id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	if sets, err := c.nodes[0].setsInStore(t.Context()); err != nil || len(sets) > 0 {
		t.Errorf("of the sets %x are left: %v", sets, err)
	}
}

// What is written to a shard is pushed to the node that holds it, too.
func TestShardsArePushed(t *testing.T) {
	c := newShardCluster(t, 3, Config{SyncInterval: time.Hour})
	c.settle(0, 1, 2)
	for number := range placement.Shard(8) {
		of := c.holders(number)
		c.put(of[0], number, fmt.Sprint("of ", number))
		eventually(t, fmt.Sprintf("shard %d is pushed", number), func() bool { return slices.Equal(c.keys(of[1], number), c.want[number]) })
	}
	c.whole()
}

// What a node holds of several shards it lists as one: records by key, and what it has kept
// with numbers that tell of which shard it is. A sync is of all that the two hold.
func TestShardsAreOne(t *testing.T) {
	c := newShardCluster(t, 2, Config{})
	c.settle(0, 1)
	for _, key := range []string{"d", "a", "f", "c", "b", "e"} {
		c.put(0, c.spaces[0].core.Home([]byte(key)), key)
	}
	var keys []string
	for r, err := range c.spaces[0].Scan(t.Context(), nil, After([]byte("a"))) {
		must(t, err)
		if keys = append(keys, string(r.Key)); len(keys) == 4 {
			break
		}
	}
	if !slices.Equal(keys, []string{"b", "c", "d", "e"}) {
		t.Errorf("it yields %q", keys)
	}
	for number := range placement.Shard(2) { // written on both sides before a sync
		c.put(0, number, "conflict")
		c.put(1, number, "conflict")
	}
	heard := 0
	report, err := c.spaces[0].Sync(t.Context(), c.nodes[1].ID(), SyncOptions{Progress: func(r reconcile.Report) { heard = max(heard, r.Applied+r.Sent) }})
	if err != nil || !report.Verified || report.Differences() != 8 || report.Applied+report.Sent != heard {
		t.Errorf("%+v, %v; it was told of %d records", report, err, heard)
	}
	at := c.spaces[0]
	if at.Info().Conflicts == 0 {
		at = c.spaces[1]
	}
	var kept []dbadapter.Kept
	for k, err := range at.Conflicts(t.Context()) {
		must(t, err)
		kept = append(kept, k)
	}
	if len(kept) != 2 || kept[0].Seq>>40 != 0 || kept[1].Seq>>40 != 1 || at.Info().Conflicts != 2 {
		t.Fatalf("kept: %+v", kept)
	}
	second, err := at.numbered(1)
	must(t, err)
	latest := second.set.Store.Latest()
	v, err := at.RestoreKept(t.Context(), kept[1])
	if err != nil || v.Clock <= latest {
		t.Errorf("restored as %s: %v", v, err)
	}
	if found, err := at.lookUp(t.Context(), []byte(c.keyIn(1, "conflict")), shards.GetOptions{}); err != nil || found.Record == nil || found.Record.Version != v {
		t.Errorf("restored as %s, and found %+v: %v", v, found, err)
	}
	must(t, at.ForgetKept(t.Context(), kept[0].Seq))
	for k := range at.Conflicts(t.Context()) {
		if k.Seq == kept[0].Seq || k.Seq == kept[1].Seq {
			t.Errorf("entry %d is still kept", k.Seq)
		}
	}
}

// A batch is of one shard, whose hosts commit it wherever it was written.
func TestBatchIsOfOneShard(t *testing.T) {
	c := newShardCluster(t, 0, Config{})
	c.kind = placement.Hash
	for range 3 {
		c.join()
	}
	c.settle(0, 1, 2)
	at, held := 0, c.numbers(0) // the node that holds the most: two shards out of eight at the least
	for i := range c.nodes {
		if of := c.numbers(i); len(of) > len(held) {
			at, held = i, of
		}
	}
	keys := map[bool]map[placement.Shard][]string{true: {}, false: {}} // by whether the node holds them
	for i := range 200 {
		key := fmt.Sprint("key ", i)
		number := c.spaces[at].core.Home([]byte(key))
		of := keys[slices.Contains(held, number)]
		of[number] = append(of[number], key)
	}
	put := func(keys ...string) error {
		return c.spaces[at].Batch(t.Context(), func(b *Batch) error {
			for _, key := range keys {
				b.Put([]byte(key), nil)
			}
			return nil
		})
	}
	var mixed []string
	for number, of := range keys[true] {
		if err := put(of...); err != nil || len(c.keys(at, number)) != len(of) {
			t.Errorf("%q of shard %d: %v", of, number, err)
		}
		mixed = append(mixed, of[0])
	}
	if err := put(mixed...); !errors.Is(err, ErrInvalid) {
		t.Errorf("of several shards: %v", err)
	}
	for number, of := range keys[false] {
		if err := put(of...); err != nil || len(c.keys(c.holders(number)[0], number)) != len(of) {
			t.Errorf("%q of shard %d, which the node does not hold: %v", of, number, err)
		}
	}
}

// A namespace is not dropped while the node holds shards that it has not handed over, unless
// that is forced; a node that may write no more hands them over, and is dropped without a loss.
func TestDropOfAHost(t *testing.T) {
	c := newShardCluster(t, 0, Config{})
	c.replicas = 1
	c.join()
	c.join()
	c.roundsUntil("the other one holds shards", func() bool { return len(c.numbers(1)) > 0 })
	c.settle(0, 1)
	mine := c.numbers(1)
	for _, number := range mine {
		c.put(1, number, fmt.Sprint("only of ", number))
	}
	if err := c.nodes[1].DropNamespace(t.Context(), "notes"); !errors.Is(err, ErrNotHandedOver) || len(mine) == 0 {
		t.Fatalf("a drop at a node that alone holds %v: %v", mine, err)
	}
	c.whole()                     // it is served on
	c.now.Add(int64(time.Second)) // the role ends after the writes
	must(t, c.spaces[0].SetRole(t.Context(), c.nodes[1].ID(), RoleRead))
	c.roundsUntil("it is dropped", func() bool {
		c.spaces[1].tend() // what it says then, the other one has not heard
		err := c.nodes[1].DropNamespace(t.Context(), "notes")
		if err != nil && !errors.Is(err, ErrNotHandedOver) {
			t.Fatal(err)
		}
		return err == nil
	})
	for number := range placement.Shard(8) { // it is still a member
		if asks := c.spaces[0].core.Holders(number); len(asks) > 0 {
			t.Errorf("the other one asks %v about shard %d", asks, number)
		}
	}
	if c.spaces = c.spaces[:1]; len(c.numbers(0)) != 8 {
		t.Fatalf("the other one holds %v", c.numbers(0))
	}
	c.whole()
	c.nodes = c.nodes[:1]
	c.join()
	if err := c.nodes[0].ForceDrop(t.Context(), "notes"); err != nil {
		t.Errorf("a drop that is forced: %v", err)
	}
}

// What a node lists as conflicts stays with it when it hands their shard over. Each member tells
// what it keeps, and what is restored is written to the shard's hosts.
func TestConflictsStayWithNode(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 2)
	const keys = 64
	for n := range keys { // written on both sides before a sync; each side loses every other one
		key := fmt.Sprint("key ", n)
		for i := range 2 {
			c.now.Add(int64(time.Millisecond))
			c.shardCluster.put((n+i)%2, c.spaces[0].core.Home([]byte(key)), key)
		}
	}
	c.round()
	for range 3 {
		c.join()
	}
	c.roundsUntil("all hold shards", func() bool {
		return !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { n := len(c.numbers(i)); return n == 0 || n == 8 })
	})
	c.settle(0, 1, 2, 3, 4)
	lists := func(i int) (all []dbadapter.Kept) {
		t.Helper()
		for k, err := range c.spaces[i].Conflicts(t.Context()) {
			c.must(err)
			all = append(all, k)
		}
		return all
	}
	if listed := len(lists(0)) + len(lists(1)); listed != keys || c.spaces[0].Info().Conflicts != len(lists(0)) {
		t.Fatalf("of %d conflicts %d are listed, %+v", keys, listed, c.spaces[0].Info())
	}
	asker := c.spaces[4]
	c.roundsUntil("both say that they keep entries", func() bool { return len(asker.Keepers()) == 2 })
	for i := range 2 {
		var there []status.KeptAt
		for more := true; more; {
			after := uint64(0)
			if n := len(there); n > 0 {
				after = there[n-1].Seq
			}
			page, m, err := asker.KeptAt(t.Context(), c.nodes[i].ID(), dbadapter.KeptConflict, after)
			c.must(err)
			there, more = append(there, page...), m
		}
		here := lists(i)
		if len(there) != len(here) {
			t.Fatalf("node %d tells of %d entries, and has %d", i, len(there), len(here))
		}
		for n, k := range here {
			if one := there[n]; one.Seq != k.Seq || string(one.Record.Key) != string(k.Record.Key) || one.Record.Version != k.Record.Version || one.By != k.By ||
				!one.At.Equal(k.At) || one.Size != int64(len(k.Record.Value)) || one.Record.Value != nil {
				t.Errorf("node %d tells %+v of %+v", i, one, k)
			}
		}
	}
	if _, _, err := asker.KeptAt(t.Context(), c.nodes[2].ID(), dbadapter.KeptSetAside, 0); err != nil {
		t.Errorf("one that keeps nothing: %v", err)
	}
	away := 0 // an entry of a shard that its node holds no longer
	for _, k := range lists(0) {
		key := string(k.Record.Key)
		hosts, _ := c.hosts(key)
		if slices.Contains(hosts, 0) {
			continue
		}
		away++
		if _, err := c.spaces[0].RestoreKept(t.Context(), k); err != nil {
			t.Fatalf("restore: %v", err)
		}
		if !slices.ContainsFunc(hosts, func(i int) bool { // one acknowledges a write
			r := c.held(i, key)
			return r != nil && string(r.Value) == string(k.Record.Value)
		}) {
			t.Errorf("no host of %q holds what was restored", key)
		}
	}
	if away == 0 {
		t.Fatal("node 0 holds each shard still of which it keeps entries")
	}
	for i := range 2 {
		for _, k := range lists(i) {
			c.must(c.spaces[i].ForgetKept(t.Context(), k.Seq))
		}
	}
	c.roundsUntil("nobody keeps entries", func() bool { return len(asker.Keepers()) == 0 })
	for i, ns := range c.spaces {
		if logs, held := len(ns.core.Logs()), len(ns.core.Sets()); logs != held {
			t.Errorf("node %d has %d logs, and holds %d shards", i, logs, held)
		}
	}
	c.must(c.nodes[1].Close(t.Context()))
	if _, _, err := asker.KeptAt(t.Context(), c.nodes[1].ID(), dbadapter.KeptConflict, 0); !errors.Is(err, ErrUnreachable) {
		t.Errorf("of a node that is down: %v", err)
	}
}

// A node without a shard has no records that a sync could prove equal.
func TestUnprovedWithoutShards(t *testing.T) {
	c := newShardCluster(t, 2, Config{NoPush: true})
	ticket, err := c.spaces[0].Invite(t.Context(), InviteOptions{Role: RoleRead})
	must(t, err)
	config := c.base
	config.Dir = t.TempDir()
	n := openForTest(t, config)
	ns, err := n.Join(t.Context(), ticket)
	must(t, err)
	c.nodes, c.spaces, c.config = append(c.nodes, n), append(c.spaces, ns), append(c.config, config)
	c.settle(0, 1)
	for range 3 {
		c.round()
	}
	for i, n := range c.nodes {
		if names := n.Unproved(time.Hour); len(names) != 0 {
			t.Errorf("node %d, with %d shards, is not proved: %q", i, len(c.numbers(i)), names)
		}
	}
}

// texts are addresses, sorted.
func texts(addrs []ma.Multiaddr) (out []string) {
	for _, a := range addrs {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return out
}

// Where a copy of the data folder has run and told the members its own addresses, the
// node tells them its own again.
func TestAddressesOfACopyAreReplaced(t *testing.T) {
	a, b := openForTest(t, Config{}), openForTest(t, Config{})
	sa := createForTest(t, a, Policy{})
	sb := joinForTest(t, sa, b, RoleWrite)
	of := func(ns *Namespace, id ID) []string {
		t.Helper()
		all, err := ns.core.Addresses()
		must(t, err)
		for _, one := range all {
			if ID(one.ID) == id {
				return texts(netio.ParseAddrs(one.Addrs))
			}
		}
		return nil
	}
	sync := func() {
		t.Helper()
		must(t, errOf(sb.Sync(t.Context(), a.ID(), SyncOptions{})))
	}
	ofCopy := []ma.Multiaddr{ma.StringCast("/ip4/192.0.2.1/tcp/1")}
	sb.announce(ofCopy)
	sync()
	if got := of(sa, b.ID()); !slices.Equal(got, texts(ofCopy)) {
		t.Fatalf("a knows %v", got)
	}
	sb.tend()
	sync()
	if got := of(sa, b.ID()); !slices.Equal(got, texts(b.host.Dialable())) {
		t.Errorf("a knows %v, b has %v", got, b.host.Dialable())
	}
}

// What a node writes right after it has joined is read at once at nodes that have not heard
// of it: they make their list of members equal with that of the host.
func TestRecordsOfANewWriterAreRead(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	c.join()
	for i := range 8 {
		key := fmt.Sprint("key ", i)
		must(t, errOf(c.put(4, key, "by the newcomer", All)))
		for at, ns := range c.spaces {
			if r, err := ns.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != "by the newcomer" {
				t.Errorf("node %d reads %q of %q: %v", at, r.Value, key, err)
			}
		}
	}
}

// A namespace of shards keeps its placement, and has a layout from the start, also after
// the node has come back.
func TestPlacement(t *testing.T) {
	dir := t.TempDir()
	want := &Placement{Kind: "prefix", Shards: 4, Replicas: 2, Prefixes: map[string]int{"de": 1, "debian/": 3}}
	for _, begun := range []bool{false, true} {
		n, err := Open(t.Context(), Config{Dir: dir})
		must(t, err)
		var ns *Namespace
		if begun {
			ns, err = n.Namespace("packages")
		} else {
			ns, err = n.CreateNamespace(t.Context(), "packages", Policy{Placement: want})
		}
		must(t, err)
		if got := ns.Policy().Placement; !reflect.DeepEqual(got, want) {
			t.Errorf("placement %+v", got)
		}
		l, err := ns.Layout()
		if err != nil || l.Epoch != 1 || len(l.Hosts) != 4 || len(l.Hosts[3]) != 1 || l.Hosts[3][0] != n.ID() {
			t.Errorf("%+v, %v", l, err)
		}
		if !begun {
			one, err := n.CreateNamespace(t.Context(), "plain", Policy{})
			must(t, err)
			if _, err := one.Layout(); !errors.Is(err, ErrInvalid) {
				t.Errorf("a layout of one shard: %v", err)
			}
			for _, bad := range []*Placement{{}, {Kind: "hash", Shards: 3, Replicas: 1}, {Kind: "hash", Shards: 4}, {Kind: "prefix", Shards: 4, Replicas: 1, Prefixes: map[string]int{"a": -1}}} {
				if _, err := n.CreateNamespace(t.Context(), "bad", Policy{Placement: bad}); !errors.Is(err, ErrInvalid) {
					t.Errorf("%+v: %v", bad, err)
				}
			}
		}
		must(t, n.Close(t.Context()))
	}
}

// A namespace that is dropped leaves nothing behind that holds its memory.
func TestDroppedNamespacesAreForgotten(t *testing.T) {
	n := openForTest(t, Config{ListenAddrs: []string{"/ip4/127.0.0.1/tcp/0"}, SyncInterval: time.Hour})
	createForTest(t, n, Policy{})
	must(t, n.DropNamespace(t.Context(), "notes"))
	n.shards.Range(func(set, _ any) bool {
		t.Errorf("%p is still there", set)
		return true
	})
}
