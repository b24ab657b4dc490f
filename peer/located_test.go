package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/folder"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/peer/offline"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// newLocatedCluster is so many nodes of one namespace of eight shards with a locator, each of which two of
// them hold.
func newLocatedCluster(t *testing.T, size int) *routedCluster {
	t.Helper()
	c := &routedCluster{shardCluster: newShardCluster(t, 0, Config{NoPush: true})}
	c.locator = true
	var all []int
	for i := range size {
		c.metrics = append(c.metrics, prometheus.NewRegistry())
		c.base.Registerer = c.metrics[len(c.nodes)]
		c.join()
		all = append(all, i)
	}
	c.settle(all...)
	c.roundsUntil("each node has heard which shards the others have handed over", func() bool {
		for _, ns := range c.spaces {
			for s := range placement.Shard(8) {
				if n := len(ns.core.Holders(s)); n > 2 || n == 2 && ns.core.WholeHere(s) != nil {
					return false
				}
			}
		}
		return true
	})
	return c
}

// at is a key's record as a node reads it at a level, and how many requests that took.
func (c *routedCluster) at(i int, key string, level Level) (value string, requests int) {
	c.t.Helper()
	f, err := c.spaces[i].lookUp(c.t.Context(), []byte(key), shards.GetOptions{Level: quorum.Level(level)})
	c.must(err)
	if f.Record == nil {
		return "nothing", f.Requests
	}
	return string(f.Record.Value), f.Requests
}

// misses reads keys that there are not at all nodes, and returns how many reads asked a node.
func (c *routedCluster) misses(keys int) (asked int) {
	c.t.Helper()
	for k := range keys {
		for at := range c.spaces {
			value, requests := c.at(at, fmt.Sprint("none ", k), One)
			if value != "nothing" {
				c.t.Fatalf("node %d: a key that is not there: %q", at, value)
			}
			if requests > 0 {
				asked++
			}
		}
	}
	return asked
}

// heard waits until each node has heard all shards of late.
func (c *routedCluster) heard() {
	c.t.Helper()
	eventually(c.t.(*testing.T), "misses take no request", func() bool { return c.misses(100) <= 6 }) // 2^-12 of 300 is 0.07
}

// With a locator a key that there is not takes no request at level one, and the other levels ask
// all the same. A node reads what it has written, however late it hears of it, and locate says what rests on what.
func TestLocatorAnswersMisses(t *testing.T) {
	t.Parallel()
	c := newLocatedCluster(t, 3)
	for k := range 30 {
		_, err := c.put(k%3, fmt.Sprint("key ", k), "1", All)
		c.must(err)
	}
	eventually(t, "all keys are read at all nodes", func() bool { // what was said before the writes counts for some seconds
		for k := range 30 {
			for at := range c.spaces {
				if value, _ := c.at(at, fmt.Sprint("key ", k), One); value != "1" {
					return false
				}
			}
		}
		return true
	})
	c.heard()
	for at := range c.spaces {
		if value, requests := c.at(at, "none", Quorum); value != "nothing" || requests == 0 {
			t.Errorf("node %d, at quorum: %q by %d requests", at, value, requests)
		}
	}
	for k := range 50 {
		key := fmt.Sprint("written ", k)
		_, others := c.hosts(key)
		_, err := c.put(others[0], key, "1", Quorum)
		c.must(err)
		if value, _ := c.at(others[0], key, One); value != "1" {
			t.Errorf("its own write: %q", value)
		}
	}
	hosts, others := c.hosts("none 1")
	var l status.Located
	eventually(t, "locate says what was heard", func() (so bool) {
		var err error
		l, err = c.spaces[others[0]].Locate(t.Context(), []byte("none 1"), Read(One))
		c.must(err)
		return l.Locator.Where == locator.Nowhere.String() && len(l.Asked) == 0
	})
	if s := l.Locator; !s.Fresh || s.Age < 0 || s.Age > locator.Fresh || s.Host != c.nodes[hosts[0]].ID() && s.Host != c.nodes[hosts[1]].ID() {
		t.Errorf("%+v, of the hosts %v", s, hosts)
	}
	if l, err := c.spaces[hosts[0]].Locate(t.Context(), []byte("none 1"), Read(One)); err != nil || l.Locator.Where != "here" {
		t.Errorf("at a host: %+v, %v", l.Locator, err)
	}
	c.reopen(2)
	restarted, key := c.spaces[2].hosts, []byte(c.keyOf("none", 2))
	where, _ := restarted.Locate(key)
	if heard := restarted.Locator.Status(c.spaces[2].core.Home(key), restarted.Net.Now()).Fresh; where == locator.Nowhere && !heard {
		t.Error("a node that has heard nothing since it was started calls a key nowhere")
	}
	c.heard()
}

// keyOf is a key that such a node is no host of.
func (c *routedCluster) keyOf(what string, other int) string {
	for k := 0; ; k++ {
		key := fmt.Sprint(what, " ", k)
		if _, others := c.hosts(key); others[0] == other {
			return key
		}
	}
}

// Without a locator each miss takes a request, and no node answers questions of the feed.
func TestNoLocatorUnlessChosen(t *testing.T) {
	c := newRoutedCluster(t, 3)
	for at, ns := range c.spaces {
		if ns.hosts.Locator != nil || ns.Policy().Placement.Locator {
			t.Errorf("node %d has a locator", at)
		}
	}
	_, others := c.hosts("none")
	if value, requests := c.at(others[0], "none", One); value != "nothing" || requests == 0 {
		t.Errorf("%q by %d requests", value, requests)
	}
	poll, err := locator.Append(nil, &locator.Poll{}, c.spaces[0].core.Rule().Shards)
	c.must(err)
	to := c.nodes[1].ID()
	_, m, _, err := c.spaces[0].hosts.Net.Ask(t.Context(), node.ID(to), &wire.AskFeed{Message: poll})
	if refusal, ok := m.(*wire.Refuse); err == nil && (!ok || !strings.Contains(refusal.Text, "has no locator")) {
		t.Errorf("node 1 says which keys it has: %v", m)
	}
}

// A node starts though a copy of what hosts tell cannot be read, which is fetched anew. A backup leaves the
// copies out.
func TestCopiesOfTheLocator(t *testing.T) {
	c := newLocatedCluster(t, 3)
	c.heard()
	c.must(c.nodes[2].Close(t.Context()))
	folder := folder.Path(c.config[2].Dir, c.spaces[2].id)
	copies := func(dir string) (names []string) {
		c.must(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if locator.IsCopy(filepath.Base(path)) {
				names = append(names, path)
			}
			return err
		}))
		return names
	}
	had := copies(folder)
	if len(had) == 0 {
		t.Fatal("no copies")
	}
	c.must(os.Remove(had[0]))
	c.must(os.Mkdir(had[0], 0o700)) // it cannot be read as a file
	config := c.config[2]
	config.Registerer = nil
	n, err := Open(t.Context(), config)
	c.must(err)
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	_, err = n.Backup(t.Context(), dir, offline.BackupOptions{})
	c.must(err)
	c.must(n.Close(t.Context()))
	_, err = offline.Restore(t.Context(), dir, to, offline.RestoreOptions{})
	c.must(err)
	if names := copies(to); len(names) > 0 {
		t.Errorf("a backup has %s", strings.Join(names, ", "))
	}
}

// By placement writer values of all sizes are read at each node, and scans give them.
func TestValuesByPlacementWriter(t *testing.T) {
	c := newReplicatedCluster(t, placement.Writer, 4, 3, Config{NoPush: true})
	for i := range c.nodes {
		key, value := fmt.Sprint("key ", i), strings.Repeat("v", 64<<10*i)
		_, err := c.put(i, key, value, All) // a scan reads one host of each shard
		c.must(err)
		for j := range c.nodes {
			if r, err := c.spaces[j].Get(t.Context(), []byte(key)); err != nil || string(r.Value) != value {
				t.Errorf("%s of %d bytes, read at %d: %d bytes, %v", key, len(value), j, len(r.Value), err)
			}
		}
	}
	for j := range c.nodes {
		records := 0
		for r, err := range c.spaces[j].Scan(t.Context(), nil) {
			c.must(err)
			if want := fmt.Sprint("key ", records); string(r.Key) != want || len(r.Value) != 64<<10*records {
				t.Errorf("a scan at %d: %q with %d bytes", j, r.Key, len(r.Value))
			}
			records++
		}
		if records != len(c.nodes) {
			t.Errorf("a scan at %d gives %d records", j, records)
		}
		if why, err := c.spaces[j].Why(t.Context(), []byte("\x00k")); !errors.Is(err, ErrInvalid) {
			t.Errorf("of a key that no user has: %v, %v", why, err)
		}
	}
}

// An entry of a kept log holds its value, which is shown and restored though nothing else names it.
func TestConflictsOfLargeValues(t *testing.T) {
	t.Parallel()
	c := newReplicatedCluster(t, placement.Writer, 3, 3, Config{NoPush: true})
	value := strings.Repeat("v", 64<<10)
	_, err := c.put(0, "key", value, All)
	c.must(err)
	sh, err := c.spaces[1].shardOf([]byte("key"))
	c.must(err)
	lost, err := sh.set.Held([]byte("key"))
	c.must(err)
	other := node.Draft{Record: dbadapter.Record{Key: []byte("key"), Value: []byte("\x00small")}} // of a writer that has not seen it
	a, err := shards.NewAsker(c.spaces[1].core, sh.set.Shard())
	c.must(err)
	other.If = &dbadapter.Version{}
	records, err := a.Make([]node.Draft{other}, [][]*dbadapter.Record{{{Version: dbadapter.Version{Clock: lost.Version.Clock}}}})
	c.must(err)
	hashed, err := dbadapter.Hash(sh.set.Keys.Hasher, records[0])
	c.must(err)
	_, err = sh.set.Store.Apply(t.Context(), []dbadapter.Write{{Record: hashed}})
	c.must(err)
	c.round()
	found := false
	for k, err := range c.spaces[1].Conflicts(t.Context()) {
		c.must(err)
		found = true
		got, err := c.spaces[1].KeptValue(t.Context(), &k)
		if err != nil || string(got) != value || c.spaces[1].KeptSize(&k) != len(value) {
			t.Errorf("the entry has %d bytes of %d, %v", len(got), c.spaces[1].KeptSize(&k), err)
		}
		if _, err := c.spaces[1].RestoreKept(t.Context(), k); err != nil {
			t.Error(err)
		}
	}
	if !found {
		t.Fatal("no conflict is listed")
	}
	if r, err := c.spaces[2].Get(t.Context(), []byte("key")); err != nil || string(r.Value) != value {
		t.Errorf("restored, it reads as %d bytes, %v", len(r.Value), err)
	}
	c.round() // a list is of one host, which may lack what a majority has taken
	size := 0
	for r, err := range c.spaces[0].Scan(t.Context(), nil, Sizes(&size)) {
		c.must(err)
		if size != len(value) || len(r.Value) > 0 {
			t.Errorf("a list of sizes: %d bytes, and a value of %d", size, len(r.Value))
		}
	}
	v, err := c.spaces[0].Verify(t.Context())
	if err != nil || v.Missing != nil {
		t.Errorf("verified: %+v, %v", v, err)
	}
}
