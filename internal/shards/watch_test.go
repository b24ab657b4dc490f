package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// told is what a watch has told.
type told struct {
	values map[string]string // of the keys that are there
	cursor changes.Cursor
	events []changes.Event
	at     int // how often all that was held was told
}

// watch watches until enough says so, or for so long.
func (h *host) watch(t *told, d time.Duration, room int64, enough func() bool) error {
	ctx, cut := context.WithTimeout(h.c.ctx, d)
	defer cut()
	if t.values == nil {
		t.values = map[string]string{}
	}
	return h.shards.Watch(ctx, t.cursor, WatchOptions{Room: room}, func(e *changes.Event) bool {
		t.cursor, t.events = e.Cursor, append(t.events, *e)
		switch e.Kind {
		case changes.At:
			t.at++
		case changes.Put:
			t.values[string(e.Key)] = string(e.Record.Value)
		default:
			delete(t.values, string(e.Key))
		}
		return !enough()
	})
}

// outside is a node that is no host of the shard of keys that begin with a.
func (c *cluster) outside() *host {
	return c.hosts[slices.IndexFunc(c.hosts, func(h *host) bool { return !h.ns.Row(0).IsHost(h.ID) })]
}

// teller is the host that has made what a cursor says of the shard of keys that begin with a.
func (c *cluster) teller(cursor changes.Cursor) int {
	place := changes.Cursor(strings.Split(string(cursor), ",")[1])
	return slices.IndexFunc(c.hosts, func(h *host) bool { set := h.ns.WholeHere(0); return set != nil && place.MadeBy(set.Store.Log()) })
}

// A watch tells what is held, and then what becomes of it. Where the host that tells has died, it goes on at
// another one, with repeats; but from a cursor only where that host is there.
func TestWatchGoesOnAtAnotherHost(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		asker := c.outside()
		want := map[string]string{}
		put := func(key, value string) {
			t.Helper()
			asker.puts(key, value, quorum.Quorum)
			if want[key] = value; value == "" {
				delete(want, key)
			}
		}
		for i := range 9 {
			put(fmt.Sprint("a", i), "first")
			put(fmt.Sprint("b", i), "first")
		}
		put("a0", "")
		c.quiet()
		seen := &told{cursor: changes.FromStart}
		for room := range int64(2) {
			*seen = told{cursor: changes.FromStart}
			err := asker.watch(seen, time.Hour, room, func() bool { return seen.at > 0 })
			if err != nil || !maps.Equal(seen.values, want) || len(seen.events) != len(want)+1 {
				t.Fatalf("%d of %d keys in %d events, %v", len(seen.values), len(want), len(seen.events), err)
			}
		}
		before, first := seen.cursor, c.teller(seen.cursor)
		put("a1", "second")
		err := asker.watch(seen, time.Hour, 1<<20, func() bool {
			if c.hosts[first].fate == up { // it has told the second value
				c.set(down, first)
				put("a2", "third")
				put("a3", "")
			}
			return maps.Equal(seen.values, want)
		})
		if err != nil || !maps.Equal(seen.values, want) {
			t.Errorf("a host has died: %d of %d keys, %v", len(seen.values), len(want), err)
		}
		again := &told{cursor: before}
		if err := asker.watch(again, time.Hour, 1<<20, func() bool { return true }); !errors.Is(err, changes.ErrCursorExpired) {
			t.Errorf("from a cursor of the host that has died: %v", err)
		}
		c.set(up, first)
		c.round()
		again.values = map[string]string{"a2": "first"}
		if err := asker.watch(again, time.Hour, 1<<20, func() bool { return again.values["a2"] == "third" }); err != nil {
			t.Errorf("from a cursor of the host, which is back: %v", err)
		}
	})
}

// A watch whose hosts are away goes on within a minute at the host that has told; at another one only within half
// a minute, since what was deleted may be collected there.
func TestWatchWithoutHosts(t *testing.T) {
	for name, test := range map[string]struct {
		away  time.Duration
		first bool // the one that has told is back, too
		want  error
	}{
		"the host is back":                {40 * time.Second, true, context.DeadlineExceeded},
		"another one is, soon":            {10 * time.Second, false, context.DeadlineExceeded},
		"another one is, and not so soon": {40 * time.Second, false, changes.ErrCursorExpired},
		"none is":                         {time.Hour, false, ErrTooFew},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 4, func(t *testing.T, c *cluster) {
				c.outside().puts("a", "value", quorum.All)
				seen := &told{cursor: changes.FromStart}
				err := c.outside().watch(seen, 5*time.Minute, 1<<20, func() bool {
					if seen.at == 1 && len(seen.events) == 2 {
						c.set(down, 0, 1, 2, 3)
						c.running.Go(func() {
							first := c.teller(seen.cursor)
							if (&host{c: c}).Sleep(c.ctx, test.away) == nil {
								c.set(up, 0, 1, 2, 3)
								if !test.first {
									c.set(down, first)
								}
							}
						})
					}
					return false
				})
				if !errors.Is(err, test.want) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// A host that leads a watch on without telling anything is not asked without a pause; one
// that leads it nowhere, or ends a listing that it has not begun, is not believed.
func TestWatchOfALyingHost(t *testing.T) {
	for name, answer := range map[string]func(q *wire.AskChanges, n int) *wire.ChangesAnswer{
		"leads on": func(_ *wire.AskChanges, n int) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, More: true, Next: fmt.Appendf(nil, "0000000000000001.%d", n+7)}
		},
		"leads nowhere": func(q *wire.AskChanges, _ int) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, More: true, Next: q.Cursor}
		},
		"ends no listing": func(*wire.AskChanges, int) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, Changes: []wire.Change{{}}, Next: []byte("0000000000000001.7")}
		},
		"repeats": func(*wire.AskChanges, int) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, Changes: []wire.Change{{Key: []byte("a")}}, Next: []byte("0000000000000001.7")}
		},
		"turns back": func(*wire.AskChanges, int) *wire.ChangesAnswer {
			return &wire.ChangesAnswer{Whole: true, Changes: []wire.Change{{Key: []byte("a")}}, Next: []byte("start")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 4, func(t *testing.T, c *cluster) {
				var asked atomic.Int64
				for _, h := range c.hosts {
					h.answers = func(q wire.Question) wire.Answering {
						if ask, ok := q.(*wire.AskChanges); ok && ask.Shard == 0 {
							return answer(ask, int(asked.Add(1)))
						}
						return nil
					}
				}
				seen := &told{cursor: "s1,0000000000000001.3,start"}
				_ = c.outside().watch(seen, 3*time.Second, 1<<20, func() bool { return false })
				told := slices.ContainsFunc(seen.events, func(e changes.Event) bool { return e.Kind == changes.Gone })
				if n := asked.Load(); n == 0 || n > 100 || told != (name == "repeats") {
					t.Errorf("%d pages were asked for in three seconds, and told: %t", n, told)
				}
			})
		})
	}
}
