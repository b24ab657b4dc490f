package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
)

// leaving is the n-th of some keys whose shard leaves a node by the layout that node 0 knows
// and the node itself does not.
func (c *locatedCluster) leaving(x, n int) string {
	c.t.Helper()
	is, was, self := c.spaces[0].core, c.spaces[x].core, node.ID(c.nodes[x].ID())
	for i := range 10_000 {
		key := fmt.Sprint("leaves ", i)
		before, err := was.Remote([]byte(key)).Hosts()
		c.must(err)
		after, err := is.Remote([]byte(key)).Hosts()
		c.must(err)
		if slices.Contains(before, self) && !slices.Contains(after, self) {
			if n--; n < 0 {
				return key
			}
		}
	}
	c.t.Fatal("no set leaves the node: choose other identities")
	return ""
}

// newOutdated is a cluster in which a node has not heard of the layout, nor of keys, which are put where it was a
// host: longer ago than a locator promises to have heard of.
func newOutdated(t *testing.T) (c *locatedCluster, outdated int, keys []string) {
	c, outdated, _ = newStaleCluster(t)
	c.part(outdated)
	for i := range 4 {
		key := c.leaving(outdated, i)
		_, err := c.put(0, key, "by all hosts", 2)
		c.must(err)
		keys = append(keys, key)
	}
	c.pass(2 * directory.Fresh)
	c.cut.Clear()
	return c, outdated, keys
}

// A node that was cut off while a layout was stated by which it is no host any more is told so at its first
// read: what it took itself to be says nothing then.
func TestReadIsToldOfALayout(t *testing.T) {
	t.Parallel()
	c, x, keys := newOutdated(t)
	for _, key := range keys {
		if got, err := c.get(x, key); err != nil || got != "by all hosts" {
			t.Errorf("it reads %q, %v", got, err)
		}
	}
	_, here, err := c.spaces[x].core.Layout()
	c.must(err)
	if _, there, err := c.spaces[0].core.Layout(); err != nil || here.Epoch != there.Epoch {
		t.Errorf("it has read by the layout of epoch %d, and %d counts: %v", here.Epoch, there.Epoch, err)
	}
}

// A former host does not say *no such key* of a write that it has acknowledged and not handed over yet.
func TestHolderOfBeforeReads(t *testing.T) {
	t.Parallel()
	c, x, _ := newStaleCluster(t)
	c.part(x)
	key := ""
	for i := 0; key == ""; i++ {
		some := c.leaving(x, i)
		if _, err := c.put(x, some, "taken alone", 1); err == nil {
			key = some
		} else if i == 50 {
			t.Fatalf("it takes none: %v", err)
		}
	}
	elsewhere := c.leaving(x, 60)
	_, err := c.put(0, elsewhere, "at the hosts", 2)
	c.must(err)
	c.pass(2 * directory.Fresh)
	c.cut.Clear()
	_, err = c.spaces[x].sync(t.Context(), nil, c.nodes[0].ID(), SyncOptions{})
	if _, here, err := c.spaces[x].core.Layout(); err != nil || here.Epoch < 2 {
		t.Fatalf("it has not heard of the layout: %v", err)
	}
	t.Logf("the sync that brings the list: %v", err)
	found, err := c.spaces[x].lookUp(t.Context(), []byte(key), false)
	if err != nil || found.Record == nil || found.Here {
		t.Errorf("it finds %+v, %v", found, err)
	}
	if r, err := c.spaces[x].Get(t.Context(), []byte(key)); errors.Is(err, ErrNotFound) || errors.Is(err, ErrDeleted) || err == nil && string(r.Value) != "taken alone" {
		t.Errorf("it reads %q, %v", r.Value, err)
	}
	// A copy there that cannot be read leaves open what it holds, and fails no read.
	for _, set := range c.spaces[x].core.Sets() {
		set.Store = noSnapshot{set.Store}
	}
	if r, err := c.spaces[x].Get(t.Context(), []byte(elsewhere)); string(r.Value) != "at the hosts" || err != nil && !errors.Is(err, ErrUnsure) {
		t.Errorf("its own copy cannot be read: it reads %q, %v", r.Value, err)
	}
	if r, err := c.spaces[x].Get(t.Context(), []byte(key)); !errors.Is(err, ErrUnsure) {
		t.Errorf("its own copy cannot be read: of what that alone holds it says %q, %v", r.Value, err)
	}
}

// noSnapshot is a store that cannot be read.
type noSnapshot struct{ dbadapter.Namespace }

func (noSnapshot) Snapshot() (dbadapter.Snapshot, error) { return nil, errors.New("a bad block") }
