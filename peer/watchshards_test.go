package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// shardsSeen is what a watch over shards has told.
type shardsSeen struct {
	values map[string]string // of the keys that are there
	last   Cursor
	at     int // events of EventAt
}

// follow watches until enough says so, or a minute is over.
func (c *routedCluster) follow(i int, s *shardsSeen, enough func() bool) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	for e, err := range c.spaces[i].Watch(ctx, s.last) {
		if err != nil {
			return err
		}
		s.last = e.Cursor
		switch e.Kind {
		case EventPut:
			s.values[string(e.Key)] = string(e.Record.Value)
		case EventAt:
			s.at++
		default:
			delete(s.values, string(e.Key))
		}
		if enough() {
			return nil
		}
	}
	return nil
}

// A watch at any node tells all that is held, and then what becomes of it, at whatever node
// that is written; it goes on from its cursor after its node and a host were started again,
// and when a host dies another one tells.
func TestWatchShards(t *testing.T) {
	t.Parallel()
	for _, kind := range []placement.Kind{placement.Hash, placement.Prefix} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			c := newClusterOf(t, kind, 3, Config{NoPush: true})
			want := map[string]string{}
			put := func(i int, key, value string) {
				t.Helper()
				want[key] = value
				_, err := c.put(i, key, value, route.All)
				c.must(err)
			}
			for i := range 60 {
				put(i%3, fmt.Sprint("key ", i), "first")
			}
			for i := range c.spaces {
				s := &shardsSeen{values: map[string]string{}, last: FromStart}
				if err := c.follow(i, s, func() bool { return s.at > 0 }); err != nil || !maps.Equal(s.values, want) || s.at != 1 {
					t.Fatalf("node %d: %d of %d keys, %v", i, len(s.values), len(want), err)
				}
			}
			now, err := c.spaces[0].Cursor()
			c.must(err)
			s := &shardsSeen{values: maps.Clone(want), last: now}
			same := func() bool { return maps.Equal(s.values, want) }
			for i := range 20 {
				put(i%3, fmt.Sprint("key ", i), "second")
			}
			put(2, "last", "x")
			c.must(c.follow(0, s, same))
			c.reopen(1)
			c.reopen(0)
			for i := range 20 {
				put(i%3, fmt.Sprint("key ", 2*i), "third")
			}
			_, err = c.spaces[1].Delete(t.Context(), []byte("key 7"), Acks(AckAll))
			c.must(err)
			delete(want, "key 7")
			c.must(c.follow(0, s, same))
			if _, err := c.spaces[0].Cursor(); err != nil {
				t.Error(err)
			}
			for _, bad := range []Cursor{"s1,start", "s2", Cursor(fmt.Sprint("s1", ",start,start,start,start,start,start,start,x")), "0000000000000001.5"} {
				for _, err := range c.spaces[0].Watch(t.Context(), bad) {
					if !errors.Is(err, ErrInvalid) {
						t.Errorf("%q: %v", bad, err)
					}
					break
				}
			}
		})
	}
}

// When the host that tells dies, another one tells again what it holds, with what was deleted
// meanwhile, and goes on.
func TestWatchShardsWithoutHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 3)
	hosts, others := c.hosts("key")
	for i := range 30 {
		_, err := c.put(0, fmt.Sprint("key ", i), "first", route.All)
		c.must(err)
	}
	_, err := c.put(0, "key", "first", route.All)
	c.must(err)
	s := &shardsSeen{values: map[string]string{}, last: FromStart}
	stage := 0
	c.must(c.follow(others[0], s, func() bool {
		switch {
		case stage == 0 && s.at == 1:
			if stage = 1; s.values["key"] != "first" {
				t.Errorf("it tells %v", s.values)
			}
			told := c.teller(others[0], "key")
			c.must(c.nodes[told].Close(context.Background()))
			other := hosts[0] + hosts[1] - told
			_, err := c.spaces[other].Delete(t.Context(), []byte("key"))
			c.must(err)
			_, err = c.spaces[other].Put(t.Context(), []byte("key"), []byte("second"))
			c.must(err)
		case stage == 1 && s.values["key"] == "second":
			return true
		}
		return false
	}))
}

// teller is the host of a key of which a watch would be told first.
func (c *routedCluster) teller(asker int, key string) int {
	remote := c.spaces[asker].core.Remote([]byte(key))
	named, err := remote.Hosts()
	c.must(err)
	for i, n := range c.nodes {
		if string(n.ID()) == string(named[0]) {
			return i
		}
	}
	c.t.Fatal("no host")
	return 0
}

// A host that leads a watch on without telling anything is not asked without a pause; one
// that leads it nowhere, or ends a listing that it has not begun, is not believed, and the
// watch goes on at the other hosts.
func TestWatchShardsWithALyingHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	_, err := c.put(0, "key", "value", route.All)
	c.must(err)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	var asked atomic.Int64
	for name, answer := range map[string]func(q *wire.AskChanges) *wire.ChangesAnswer{
		"leads on": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Settled: true, More: true, Next: fmt.Appendf(nil, "0000000000000001.%d", asked.Load())}
		},
		"leads nowhere": func(q *wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Settled: true, More: true, Next: q.Cursor}
		},
		"ends no listing": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Settled: true, Changes: []wire.Change{{}}, Next: []byte("0000000000000001.7")}
		},
		"repeats": func(q *wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Settled: true, Changes: []wire.Change{{Key: []byte("key")}}, Next: fmt.Appendf(nil, "0000000000000001.%d", asked.Load()+7)}
		},
		"turns back": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Settled: true, Changes: []wire.Change{{Key: []byte("key")}}, Next: []byte("start")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			for _, host := range hosts {
				c.lies(c.nodes[host], asker, func(ask *wire.Ask) wire.Answering {
					q, ok := ask.Question.(*wire.AskChanges)
					if !ok || asker.core.Home([]byte("key")) != placement.Shard(q.Shard) {
						return nil
					}
					asked.Add(1)
					return answer(q)
				})
			}
			asker.node.routing.close() // streams of before the lie
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			out := make(chan toldOf)
			s := newShardWatch(asker, asker.core.Home([]byte("key")), shardPlace{cursor: "0000000000000001.3"})
			s.out = out
			var events atomic.Int64
			go func() {
				for {
					select {
					case o := <-out:
						events.Add(int64(len(o.events)))
					case <-ctx.Done():
						return
					}
				}
			}()
			s.run(ctx)
			if n := asked.Load(); n == 0 || n > 200 || events.Load() > 0 && name != "repeats" {
				t.Errorf("%d pages were asked for in three seconds, and %d events told", n, events.Load())
			}
		})
	}
}

// A cursor of now is asked for with pauses where the hosts are not sure.
func TestWatchShardsFromNowWithoutHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	var asked atomic.Int64
	for _, host := range hosts {
		c.lies(c.nodes[host], asker, func(*wire.Ask) wire.Answering {
			asked.Add(1)
			return &wire.ChangesAnswer{}
		})
	}
	asker.node.routing.close() // streams of before the lie
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := asker.nowShards(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if n := asked.Load(); n == 0 || n > 500 {
		t.Errorf("%d pages were asked for in a second", n)
	}
}

// What a watch of a shard makes of what its host does, page by page.
func TestWatchShardsByPages(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	_, others := c.hosts("key")
	asker := c.spaces[others[0]]
	number := asker.core.Home([]byte("key"))
	other := []ID{c.nodes[0].ID()}
	made := func(told bool, level time.Duration) *shardWatch {
		s := newShardWatch(asker, number, shardPlace{cursor: "0000000000000001.3"})
		s.told, s.level, s.host = told, level, asker.node.self.id
		return s
	}
	for _, old := range []bool{false, true} { // the watch is far behind, although a host has told just now
		s := made(true, 0)
		if old {
			s.level = -watchGap
		}
		if more, err := s.without(map[ID]error{}, other); err != nil || more == old || s.place.all == old {
			t.Errorf("old %v: %v, %v, %+v", old, more, err, s.place)
		}
	}
	at := func() *node.WatchPage {
		return &node.WatchPage{Told: []node.Watched{{Kind: node.AtKind}}, Next: "0000000000000001.9", More: true}
	}
	for start, want := range map[Cursor]int{"start": 1, "0000000000000001.3": 0, "0000000000000001.3.YQ": 1} {
		s := newShardWatch(asker, number, shardPlace{cursor: node.Cursor(start), all: true})
		out := make(chan toldOf, 4)
		s.out = out
		s.take(t.Context(), at())
		s.place = shardPlace{node.FromStart, true} // a second host tells anew
		s.take(t.Context(), at())
		if n := len((<-out).events) + len((<-out).events); n != want || s.place.all {
			t.Errorf("from %s: %d times that all is told", start, n)
		}
	}
}

// A watch ends where the host that has told says that its cursor has expired.
func TestWatchShardsExpires(t *testing.T) {
	c := newRoutedCluster(t, 4)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	told := c.nodes[hosts[0]]
	c.lies(told, asker, func(*wire.Ask) wire.Answering { return &wire.ChangesAnswer{Settled: true, Expired: true} })
	asker.node.routing.close()
	s := newShardWatch(asker, asker.core.Home([]byte("key")), shardPlace{cursor: "0000000000000001.3"})
	s.told, s.host, s.level = true, told.ID(), 0
	for range 2 {
		if _, err := s.turn(t.Context()); !errors.Is(err, ErrCursorExpired) {
			t.Error(err)
		}
	}
}
