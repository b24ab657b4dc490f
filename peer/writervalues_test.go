package peer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
)

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
