package peer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/route"
)

// together are keys of one shard.
func (c *routedCluster) together(n int) (keys []string) {
	home := c.spaces[0].core.Home([]byte("key"))
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("key ", i); c.spaces[0].core.Home([]byte(key)) == home {
			keys = append(keys, key)
		}
	}
	return keys
}

// The conditions of a batch are about what all hosts hold, also at a host that has not heard of the others' writes:
// one that does not hold fails the batch, and names what is held. What another host holds can be replaced, and is
// no conflict.
func TestBatchConditionsAtAnUnsureHost(t *testing.T) {
	for name, unsure := range map[string]func(c *routedCluster, host int){
		"unsettled": func(c *routedCluster, host int) { c.must(c.spaces[host].core.MayLack()) },
		"stale":     func(c *routedCluster, _ int) { c.now.Add(int64(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			keys := c.together(20)
			hosts, _ := c.hosts(keys[0])
			first := map[string]dbadapter.Version{}
			for _, key := range keys {
				done, err := c.put(hosts[0], key, "first", route.All)
				c.must(err)
				first[key] = done.Version
			}
			last := len(keys) - 1
			second := c.write(hosts[1], keys[last], "second")
			unsure(c, hosts[0])
			write := func() error {
				return c.spaces[hosts[0]].Batch(t.Context(), func(b *Batch) error {
					for _, key := range keys {
						b.PutIf([]byte(key), []byte("mine"), first[key])
					}
					return nil
				})
			}
			err := write()
			if item, ok := errors.AsType[*BatchError](err); !ok || !errors.Is(err, ErrConflict) || item.Item != last || item.Held != second {
				t.Errorf("over what was replaced: %v", err)
			}
			if got := string(c.held(hosts[0], keys[0]).Value); got != "first" {
				t.Errorf("a batch that failed has written %q", got)
			}
			first[keys[last]] = second
			c.must(write())
			for range 3 {
				c.round()
			}
			for _, host := range hosts {
				for _, key := range keys {
					if got := string(c.held(host, key).Value); got != "mine" {
						t.Errorf("host %d holds %q of %q", host, got, key)
					}
				}
			}
			if n := c.conflicts(); n != 0 {
				t.Errorf("%d conflicts", n)
			}
		})
	}
}

// Where no host is sure that a key is free, a batch on that condition fails with ErrUnsure.
func TestBatchConditionsOfNoSureHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	hosts, _ := c.hosts("key")
	for _, host := range hosts {
		c.must(c.spaces[host].core.MayLack())
	}
	err := c.spaces[hosts[0]].Batch(t.Context(), func(b *Batch) error {
		b.PutIf([]byte("key"), []byte("mine"), dbadapter.Version{})
		return nil
	})
	if item, ok := errors.AsType[*BatchError](err); !ok || !errors.Is(err, ErrUnsure) || item.Item != 0 {
		t.Errorf("it has ended with %v", err)
	}
	if r := c.held(hosts[0], "key"); r != nil {
		t.Errorf("it is written: %q", r.Value)
	}
}

// A node that is no host of the shard refuses a batch, and says where to go.
func TestBatchAtANodeThatIsNoHost(t *testing.T) {
	c := newRoutedCluster(t, 4)
	_, others := c.hosts("key")
	err := c.spaces[others[0]].Batch(t.Context(), func(b *Batch) error {
		b.Put([]byte("key"), []byte("value"))
		return nil
	})
	if !errors.Is(err, ErrNotHost) || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `"key": write the batch at one of its hosts`) {
		t.Errorf("it has ended with %v", err)
	}
}

// A batch that writes a key on a condition, and then once more, has seen its own first write: it is no conflict, also at a
// host that has looked the condition up.
func TestBatchWritesAKeyAgain(t *testing.T) {
	t.Parallel()
	for name, unsure := range map[string]bool{"current": false, "stale": true} {
		t.Run(name, func(t *testing.T) {
			c := newRoutedCluster(t, 4)
			hosts, _ := c.hosts("key")
			first, err := c.put(hosts[0], "key", "first", route.All)
			c.must(err)
			c.current(hosts[0], hosts[1], "key")
			if unsure {
				c.now.Add(int64(time.Hour))
			}
			c.must(c.spaces[hosts[0]].Batch(t.Context(), func(b *Batch) error {
				b.PutIf([]byte("key"), []byte("second"), first.Version)
				b.Put([]byte("key"), []byte("third"))
				return nil
			}))
			for range 3 {
				c.round()
			}
			for _, host := range hosts {
				if got := string(c.held(host, "key").Value); got != "third" {
					t.Errorf("host %d holds %q", host, got)
				}
			}
			if n := c.conflicts(); n != 0 {
				t.Errorf("%d conflicts", n)
			}
		})
	}
}
