package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/shards"
)

// at is a key's record as a node reads it at a level, and how many requests that took.
func (c *routedCluster) at(i int, key string, level Level) (value string, requests int) {
	c.t.Helper()
	f, err := c.spaces[i].lookUp(c.t.Context(), []byte(key), shards.GetOptions{Level: level})
	c.must(err)
	if f.Record == nil {
		return "nothing", f.Requests
	}
	return string(f.Record.Value), f.Requests
}

// misses reads keys that there are not at all nodes, and returns how many reads asked a node.
func (c *locatedCluster) misses(keys int) (asked int) {
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

// keyOf is a key that such a node is no host of.
func (c *locatedCluster) keyOf(what string, other int) string {
	for k := 0; ; k++ {
		key := fmt.Sprint(what, " ", k)
		if _, others := c.hosts(key); others[0] == other {
			return key
		}
	}
}

// With a locator a key that there is not takes no request at level one, and the other levels ask
// all the same.
func TestLocatorAnswersMisses(t *testing.T) {
	t.Parallel()
	c := newLocatedCluster(t, 3, placement.Hash)
	for k := range 30 {
		_, err := c.put(k%3, fmt.Sprint("key ", k), "1", All)
		c.must(err)
	}
	c.follow()
	if asked := c.misses(100); asked > 6 { // 2^-12 of 300 is 0.07
		t.Errorf("%d of 300 misses took a request", asked)
	}
	for k := range 30 {
		for at := range c.spaces {
			if value, _ := c.at(at, fmt.Sprint("key ", k), One); value != "1" {
				t.Errorf("node %d: %q", at, value)
			}
		}
	}
	for at := range c.spaces {
		if value, requests := c.at(at, "none", Quorum); value != "nothing" || requests == 0 {
			t.Errorf("node %d, at quorum: %q by %d requests", at, value, requests)
		}
	}
	key := c.keyOf("written", 1)
	_, err := c.put(1, key, "1", All) // the node that has written it knows, however late the feeds are
	c.must(err)
	if value, _ := c.at(1, key, One); value != "1" {
		t.Errorf("its own write: %q", value)
	}
	c.reopen(2)
	ns := c.spaces[2]
	if ns.core.Nowhere(ns.follows.locator, []byte("none 1"), ns.follows.now()) {
		t.Error("a node that has heard nothing since it was started calls a key nowhere")
	}
	c.follow()
	if asked := c.misses(100); asked > 6 {
		t.Errorf("%d of 300 misses took a request after a restart", asked)
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
	_, others := c.hosts("none")
	if value, requests := c.at(others[0], "none", One); value != "nothing" || requests == 0 {
		t.Errorf("%q by %d requests", value, requests)
	}
}

// A host whose feed hides a key makes look-ups of its shards ask, and none wrong; once that lasts,
// the log names it.
func TestLocatorWithALyingHost(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
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
	_, err := c.put(hosts[0], key, "1", All)
	c.must(err)
	c.follow()
	for _, level := range []Level{One, Quorum} {
		if value, _ := c.at(2, key, level); value != "1" {
			t.Errorf("at level %s: %q", level, value)
		}
	}
	log := &strings.Builder{}
	ns.node.log = slog.New(slog.NewTextHandler(log, nil))
	status := &directory.Status{Host: liar, Sets: 2, Apart: 1}
	for range 3 {
		c.pass(apartFor / 2)
		status.Heard = c.time
		ns.follows.tell(ns, status)
	}
	if got := log.String(); strings.Count(got, ID(liar).String()) != 1 || !strings.Contains(got, "hides keys") {
		t.Errorf("the log: %q", got)
	}
}

// Where a host of a key's shard is cut off, a miss takes a request again.
func TestLocatorWithoutAHost(t *testing.T) {
	c := newLocatedCluster(t, 3, placement.Hash)
	key := c.keyOf("cut", 2)
	hosts, _ := c.hosts(key)
	ns := c.spaces[2]
	nowhere := func() bool { return ns.core.Nowhere(ns.follows.locator, []byte(key), c.time) }
	if !nowhere() {
		t.Fatal("not known to be nowhere")
	}
	c.part(hosts[1]) // and the other one takes a write
	_, err := c.put(hosts[0], key, "1", One)
	c.must(err)
	for range 2 {
		c.pass(3 * time.Second)
		c.followFrom(ns)
	}
	if nowhere() {
		t.Error("a key is nowhere, of which a host was not heard for 6 s")
	}
	if value, _ := c.at(2, key, One); value != "1" {
		t.Errorf("%q", value)
	}
	if _, err := ns.Get(t.Context(), []byte(key)); !errors.Is(err, ErrTooFew) {
		t.Errorf("at quorum, of two hosts one: %v", err)
	}
	c.heal()
	c.follow()
	if value, _ := c.at(2, key, Quorum); value != "1" || nowhere() {
		t.Errorf("%q", value)
	}
}
