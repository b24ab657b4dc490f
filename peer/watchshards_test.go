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
	"github.com/syncd-io/syncd/reconcile/wire"
)

// shardsSeen is what a watch over shards has told.
type shardsSeen struct {
	values map[string]string // of the keys that are there
	last   Cursor
	at     int // events of EventAt
}

// follow watches until enough says so.
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
// that is written; it goes on from its cursor after its node and a host were started again.
func TestWatchShards(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 3)
	want := map[string]string{}
	put := func(i int, key, value string) {
		t.Helper()
		want[key] = value
		_, err := c.put(i, key, value, All)
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
	_, err = c.spaces[1].Delete(t.Context(), []byte("key 7"), Ack(All))
	c.must(err)
	delete(want, "key 7")
	c.must(c.follow(0, s, same))
	for _, bad := range []Cursor{"s1,start", "s2", Cursor(fmt.Sprint("s1", ",start,start,start,start,start,start,start,x")), "0000000000000001.5"} {
		for _, err := range c.spaces[0].Watch(t.Context(), bad) {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v", bad, err)
			}
			break
		}
	}
}

// When the host that tells dies, another one tells again what it holds, with what was written
// meanwhile, and goes on.
func TestWatchShardsWithoutHost(t *testing.T) {
	t.Parallel()
	c := newReplicatedCluster(t, placement.Hash, 4, 3, Config{NoPush: true})
	key := []byte("key")
	number := c.spaces[0].core.Home(key)
	asker := -1 // the node that is no host of the key
	for i, n := range c.nodes {
		if !c.spaces[0].core.Row(number).IsHost(node.ID(n.ID())) {
			asker = i
		}
	}
	_, err := c.spaces[asker].Put(t.Context(), key, []byte("first"), Ack(All))
	c.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := make(chan toldOf)
	s := newShardWatch(c.spaces[asker], number, shardPlace{cursor: node.FromStart})
	s.out, s.room = out, newWatchRoom(0)
	var told ID // the host that tells
	ended := make(chan struct{})
	go func() { defer close(ended); s.run(ctx) }()
	for stage := 0; stage < 2; {
		o := <-out
		c.must(o.err)
		for i := range o.events {
			switch e := &o.events[i]; {
			case e.Kind == node.AtKind && stage == 0:
				stage, told = 1, s.host // the watch waits until its events are taken
				for i, n := range c.nodes {
					if n.ID() == told {
						c.must(c.nodes[i].Close(context.Background()))
					}
				}
				_, err := c.spaces[asker].Put(t.Context(), key, []byte("second"))
				c.must(err)
			case e.Kind == node.PutKind && string(e.Record.Value) == "second":
				stage = 2
			}
		}
	}
	cancel()
	<-ended
	if s.host == told {
		t.Error("the host that was closed has told")
	}
}

// A host that leads a watch on without telling anything is not asked without a pause; one
// that leads it nowhere, or ends a listing that it has not begun, is not believed.
func TestWatchShardsWithALyingHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	_, err := c.put(0, "key", "value", All)
	c.must(err)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	var asked atomic.Int64
	next := func() []byte { return fmt.Appendf(nil, "0000000000000001.%d", asked.Load()+7) }
	for name, answer := range map[string]func(q *wire.AskChanges) *wire.ChangesAnswer{
		"leads on": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, More: true, Next: next()}
		},
		"leads nowhere": func(q *wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, More: true, Next: q.Cursor}
		},
		"ends no listing": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, Changes: []wire.Change{{}}, Next: next()}
		},
		"repeats": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, Changes: []wire.Change{{Key: []byte("key")}}, Next: next()}
		},
		"turns back": func(*wire.AskChanges) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, Changes: []wire.Change{{Key: []byte("key")}}, Next: []byte("start")}
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

// What a watch of a shard makes of pages: that all is told is said once, and another host with
// another log tells anew, unless the watch was behind for long.
func TestWatchShardsByPages(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 4)
	hosts, others := c.hosts("key")
	asker := c.spaces[others[0]]
	number := asker.core.Home([]byte("key"))
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
	for _, host := range hosts {
		c.lies(c.nodes[host], asker, func(*wire.Ask) wire.Answering { return &wire.ChangesAnswer{Whole: true, Expired: true} })
	}
	asker.node.routing.close()
	for name, test := range map[string]struct {
		host  ID
		level time.Duration
		more  bool
	}{
		"another host":           {c.nodes[others[1]].ID(), 0, true},
		"another one, long ago":  {c.nodes[others[1]].ID(), -2 * watchGap, false},
		"a watch that is begun":  {"", 0, false},
		"a cursor that is older": {"", -2 * watchGap, false},
	} {
		s := newShardWatch(asker, number, shardPlace{cursor: "0000000000000001.3"})
		s.told, s.host, s.level = test.host != "", test.host, test.level
		if more, err := s.turn(t.Context()); more != test.more || errors.Is(err, ErrCursorExpired) == test.more || s.place.all != test.more {
			t.Errorf("%s: %v, %v, %+v", name, more, err, s.place)
		}
	}
}
