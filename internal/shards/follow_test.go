package shards

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/quorum"
)

func (c *cluster) found(h *host, key string) Found {
	c.t.Helper()
	f, err := h.shards.Get(c.ctx, []byte(key), GetOptions{Level: quorum.One})
	c.must(err)
	return f
}

// A node that is no host follows the shards: a key that there is not takes no request, whatever one host does.
func TestFollow(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		h := c.hosts[3]
		index, err := locator.Open(locator.Config{Shards: 2, Disk: &locator.Memory{}})
		c.must(err)
		h.shards.Locator = NewFollower(h.ns, index, nil)
		c.running.Go(func() { h.shards.Follow(c.ctx, func(err error) { t.Error(err) }) })
		write := func(by *host, key string) {
			_, err := by.put(key, "v", quorum.All)
			c.must(err)
		}
		write(c.hosts[0], "a held")
		if c.found(h, "a none").Nowhere {
			t.Error("nowhere, of which nothing was heard")
		}
		time.Sleep(5 * time.Second)
		if !c.found(h, "a none").Nowhere || c.found(h, "a held").Record == nil {
			t.Error("a key that there is not is not nowhere, or one is that there is")
		}
		at := h.shards.Locator.Status(0, h.Now()).Host
		write(c.hosts[1], "a new")
		write(h, "b its own")
		if c.found(h, "b its own").Record == nil {
			t.Error("what it has written is nowhere")
		}
		for i, o := range c.hosts {
			if o.ID == at {
				c.set(down, i)
			}
		}
		time.Sleep(8 * time.Second)
		c.found(h, "a none")
		time.Sleep(2 * time.Second)
		if s := h.shards.Locator.Status(0, h.Now()); s.Host == at || !s.Fresh || c.found(h, "a new").Record == nil || !c.found(h, "a none").Nowhere {
			t.Errorf("once a host is down: %+v", s)
		}
		c.set(up, 0, 1, 2)
	})
}
