package peer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// newLocator is three nodes of a namespace of that placement with a locator.
func newLocator(t *testing.T, kind placement.Kind) *locatedCluster {
	t.Helper()
	return newLocatedCluster(t, 3, kind)
}

// misses reads keys that there are not at all nodes, and returns how many reads asked a node.
func (c *locatedCluster) misses(keys int) (asked int) {
	c.t.Helper()
	for k := range keys {
		for at, ns := range c.spaces {
			f, err := ns.readKey(c.t.Context(), fmt.Append(nil, "none ", k), false)
			if err != nil || !f.Sure || f.Record != nil {
				c.t.Fatalf("node %d: a key that is not there: %+v, %v", at, f, err)
			}
			if f.Requests > 0 {
				asked++
			}
		}
	}
	return asked
}

// other is a node that is no host of a key.
func (c *locatedCluster) other(key string) int {
	_, others := c.hosts(key)
	return others[0]
}

// keyOf is a key that such a node is no host of.
func (c *locatedCluster) keyOf(what string, other int) string {
	for k := 0; ; k++ {
		if key := fmt.Sprint(what, " ", k); c.other(key) == other {
			return key
		}
	}
}

// With a locator a key that there is not takes no request, and one that there is no more than
// without.
func TestLocatorAnswersMisses(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Prefix} {
		t.Run(kind.String(), func(t *testing.T) {
			c := newLocator(t, kind)
			for k := range 30 {
				if done, err := c.put(k%3, fmt.Sprint("key ", k), "1", route.All); err != nil || done.Held != 2 {
					t.Fatalf("%+v, %v", done, err)
				}
			}
			c.follow()
			if asked := c.misses(100); asked > 6 { // 2^-12 of 300 is 0.07
				t.Errorf("%d of 300 misses took a request", asked)
			}
			for k := range 30 {
				for at, ns := range c.spaces {
					key := fmt.Sprint("key ", k)
					f, err := ns.readKey(t.Context(), []byte(key), false)
					if err != nil || !f.Sure || f.Record == nil || string(f.Record.Value) != "1" {
						t.Errorf("node %d: %+v, %v", at, f, err)
					}
				}
			}
			if l, err := c.spaces[0].Locate(t.Context(), []byte("none"), true); err != nil || len(l.Asked) == 0 || l.Record != nil {
				t.Errorf("all hosts are to be asked: %+v, %v", l, err)
			}
			c.reopen(2)
			if c.spaces[2].core.Nowhere(c.spaces[2].follows.locator, []byte("key 1"), c.spaces[2].follows.now()) {
				t.Error("a node that has heard nothing since it was started calls a key nowhere")
			}
			c.follow()
			if asked := c.misses(100); asked > 6 {
				t.Errorf("%d of 300 misses took a request after a restart", asked)
			}
		})
	}
}

// Without a locator each miss takes a request, and no node asks for feeds.
func TestNoLocatorUnlessChosen(t *testing.T) {
	c := newRoutedCluster(t, 3)
	for at, ns := range c.spaces {
		if ns.follows != nil || ns.Info().Policy.Placement.Locator {
			t.Errorf("node %d has a locator", at)
		}
		if _, err := ns.core.Tell(t.Context(), &directory.Poll{All: true}, nil); err == nil {
			t.Errorf("node %d tells which keys it has", at)
		}
	}
	ns := c.spaces[c.hosted("none")]
	if f, err := ns.readKey(t.Context(), []byte("none"), false); err != nil || f.Requests == 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// hosted is a node that is no host of a key.
func (c *routedCluster) hosted(key string) int {
	_, others := c.hosts(key)
	return append(others, 0)[0]
}

// A key that a node has written is not nowhere there, however late the feeds are; to another node
// it is not once directory.Fresh has passed, polled or not.
func TestLocatorKnowsWrites(t *testing.T) {
	c := newLocator(t, placement.Hash)
	writer := 1
	key := c.keyOf("late", writer)
	ns := c.spaces[writer]
	if f, err := ns.readKey(t.Context(), []byte(key), false); err != nil || f.Requests != 0 {
		t.Fatalf("before the write: %+v, %v", f, err)
	}
	_, err := c.put(writer, key, "1", 1)
	c.must(err)
	hosts, _ := c.hosts(key)
	for step := range 2 * directory.Fresh / time.Second {
		for _, at := range append(hosts, writer) {
			// The feeds are those of before the write for longer than they count; the writer and
			// the hosts that hold the key find it all the same.
			r, err := c.get(at, key)
			if at != writer && c.held(at, key) == nil && errors.Is(err, ErrNotFound) && step*time.Second < directory.Fresh {
				continue
			}
			if err != nil || r != "1" {
				t.Fatalf("%s after the write: node %d: %q, %v", step*time.Second, at, r, err)
			}
		}
		c.pass(time.Second)
	}
	// Another one that is no host, between the write and the news of it.
	for other := range c.nodes {
		key := c.keyOf("far", other)
		c.follow()
		hosts, _ := c.hosts(key)
		_, err := c.put(hosts[0], key, "1", route.All)
		c.must(err)
		at := c.spaces[other]
		if !at.core.Nowhere(at.follows.locator, []byte(key), c.time) {
			t.Fatalf("node %d has heard of a write that no poll has told", other)
		}
		c.pass(directory.Fresh)
		if at.core.Nowhere(at.follows.locator, []byte(key), c.time) {
			t.Errorf("node %d calls a key nowhere that was acknowledged %s ago", other, directory.Fresh)
		}
		if r, err := c.get(other, key); err != nil || r != "1" {
			t.Errorf("node %d: %q, %v", other, r, err)
		}
	}
}

// What a node has read at a host is not nowhere there later, though no poll tells of it yet.
func TestLocatorKnowsReads(t *testing.T) {
	c := newLocator(t, placement.Hash)
	key := c.keyOf("read", 2)
	hosts, _ := c.hosts(key)
	_, err := c.put(hosts[0], key, "1", route.All)
	c.must(err)
	ns := c.spaces[2]
	if _, err := ns.readKey(t.Context(), []byte(key), true); err != nil { // at all hosts
		t.Fatal(err)
	}
	if r, err := c.get(2, key); err != nil || r != "1" {
		t.Errorf("%q, %v", r, err)
	}
}

// An import's keys are not nowhere for the node that imports, before any poll.
func TestLocatorKnowsImports(t *testing.T) {
	c := newLocator(t, placement.Hash)
	items := func(yield func(Item, error) bool) {
		for k := range 40 {
			if !yield(Item{Key: fmt.Append(nil, "item ", k), Value: []byte("1")}, nil) {
				return
			}
		}
	}
	if _, err := c.spaces[0].Import(t.Context(), iter.Seq2[Item, error](items)); err != nil {
		t.Fatal(err)
	}
	for k := range 40 {
		if r, err := c.get(0, fmt.Sprint("item ", k)); err != nil || r != "1" {
			t.Errorf("%d: %q, %v", k, r, err)
		}
	}
}

// Where a host of a key's shard is cut off, or is behind another one, the key is asked for.
func TestLocatorWithoutAHost(t *testing.T) {
	c := newLocator(t, placement.Hash)
	key, none := c.keyOf("cut", 2), c.keyOf("none", 2)
	hosts, _ := c.hosts(key)
	for _, of := range hosts {
		if other, _ := c.hosts(none); other[0] != hosts[0] || other[1] != hosts[1] {
			t.Fatalf("other hosts: %d", of)
		}
	}
	ns := c.spaces[2]
	nowhere := func(key string) bool {
		return ns.core.Nowhere(ns.follows.locator, []byte(key), c.time)
	}
	if !nowhere(key) || !nowhere(none) {
		t.Fatal("not known to be nowhere")
	}
	c.part(hosts[1]) // and the other one takes a write
	_, err := c.put(hosts[0], key, "1", 1)
	c.must(err)
	for range 2 {
		c.pass(3 * time.Second)
		c.followFrom(ns)
	}
	if nowhere(none) {
		t.Error("a key is nowhere, of which a host was not heard for 6 s")
	}
	if f, err := ns.readKey(t.Context(), []byte(none), false); f.Sure && f.Requests == 0 || err != nil && !errors.Is(err, ErrUnsure) {
		t.Errorf("%+v, %v", f, err)
	}
	if r, err := c.get(2, key); r != "1" {
		t.Errorf("%q, %v", r, err)
	}
	c.heal() // the host that was cut off lacks the key, and both are heard
	c.follow()
	if nowhere(key) {
		t.Error("a key is nowhere that one of two hosts tells of")
	}
	if !nowhere(none) {
		t.Error("both hosts are heard, and a key that there is not is not nowhere")
	}
	if r, err := c.get(2, key); err != nil || r != "1" {
		t.Errorf("%q, %v", r, err)
	}
	c.round()
	c.round()
	c.follow()
	if r, err := c.get(2, key); err != nil || r != "1" {
		t.Errorf("%q, %v", r, err)
	}
}

// A host whose feed hides a key makes look-ups of its shards ask, and none wrong.
func TestLocatorWithALyingHost(t *testing.T) {
	c := newLocator(t, placement.Hash)
	ns, key := c.spaces[2], c.keyOf("hidden", 2)
	hosts, _ := c.hosts(key)
	liar := node.ID(c.nodes[hosts[0]].ID())
	ask := ns.follows.ask
	ns.follows.ask = func(ctx context.Context, id node.ID, m directory.Message) (directory.Message, error) {
		answer, err := ask(ctx, id, m)
		if news, ok := answer.(*directory.News); ok && id == liar {
			news.Events, news.Sums = nil, nil // it has nothing new, it says
		}
		return answer, err
	}
	_, err := c.put(hosts[0], key, "1", route.All)
	c.must(err)
	c.follow()
	if r, err := c.get(2, key); err != nil || r != "1" {
		t.Errorf("%q, %v", r, err)
	}
}

// A deletion reads as it does without a locator: as one, with its version. Written anew, the key
// is there.
func TestLocatorAndDeletions(t *testing.T) {
	c := newLocator(t, placement.Hash)
	key := c.keyOf("gone", 2)
	_, err := c.put(2, key, "1", route.All)
	c.must(err)
	c.follow()
	deleted, err := c.spaces[0].Delete(t.Context(), []byte(key), Acks(AckAll))
	c.must(err)
	for range 2 {
		for at, ns := range c.spaces {
			r, err := ns.Get(t.Context(), []byte(key))
			if !errors.Is(err, ErrDeleted) || r.Version != deleted {
				t.Errorf("node %d reads a key that was deleted: %+v, %v", at, r, err)
			}
		}
		c.follow()
	}
	if _, err := c.spaces[2].PutIf(t.Context(), []byte(key), []byte("2"), dbadapter.Version{}); !errors.Is(err, ErrConflict) {
		t.Errorf("it holds a tombstone: %v", err)
	}
	if _, err := c.spaces[2].PutIf(t.Context(), []byte(key), []byte("2"), deleted); err != nil {
		t.Error(err)
	}
	for range 2 {
		for at := range c.nodes {
			if r, err := c.get(at, key); err == nil && r != "2" || err != nil && !errors.Is(err, ErrDeleted) && !errors.Is(err, ErrUnsure) {
				t.Errorf("node %d: %q, %v", at, r, err)
			}
		}
		c.round()
		c.follow()
	}
	if r, err := c.get(1, key); err != nil || r != "2" {
		t.Errorf("%q, %v", r, err)
	}
}

// A record that has expired reads as one.
func TestLocatorAndExpiry(t *testing.T) {
	c := newLocator(t, placement.Hash)
	_, err := c.spaces[0].Put(t.Context(), []byte("brief"), []byte("1"), TTL(time.Minute), Acks(AckAll))
	c.must(err)
	c.follow()
	for at := range c.nodes {
		if r, err := c.get(at, "brief"); err != nil || r != "1" {
			t.Errorf("node %d: %q, %v", at, r, err)
		}
	}
	c.now.Add(int64(2 * time.Minute))
	c.follow()
	for at := range c.nodes {
		if _, err := c.get(at, "brief"); !errors.Is(err, ErrExpired) {
			t.Errorf("node %d: %v", at, err)
		}
	}
}

// While shards move no read is wrong, and behind it misses take no request again, at the node
// that came, too.
func TestLocatorAndLayouts(t *testing.T) {
	t.Parallel()
	c := newLocator(t, placement.Hash)
	var keys []string
	write := func(by int) {
		key := fmt.Sprint("key ", len(keys))
		if _, err := c.put(by, key, "1", route.All); err == nil { // else a host lacks it, rightly for 5 s
			keys = append(keys, key)
		}
	}
	read := func() {
		for _, key := range keys {
			for at := range c.spaces {
				if r, err := c.get(at, key); (err != nil || r != "1") && !errors.Is(err, ErrUnsure) {
					t.Fatalf("node %d: %q: %q, %v", at, key, r, err)
				}
			}
		}
	}
	for range 20 {
		write(len(keys) % 3)
	}
	c.follow()
	read()
	c.base.Registerer, c.base.Identity, c.base.Dialed = nil, nil, nil
	c.join()
	for step := range 12 {
		write(step % 4)
		c.follow()
		read()
		c.round()
	}
	c.settle(0, 1, 2, 3)
	for tries := 0; !c.told(); tries++ {
		if tries == 60 {
			t.Fatal("a node takes another one for a holder of what that has handed over")
		}
		c.round()
	}
	c.follow()
	read()
	if asked := c.misses(50); asked > 4 {
		t.Errorf("%d of 200 misses took a request", asked)
	}
}
