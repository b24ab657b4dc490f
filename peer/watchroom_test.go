package peer

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// The shards of a watch hold pages as the room allows: a page that does not fit is dropped, and has its
// room when it is asked for again.
func TestWatchRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newWatchRoom(1000)
		one, other := &shardWatch{room: room}, &shardWatch{room: room}
		fits := func(s *shardWatch, size int) bool {
			page := &node.WatchPage{Told: []node.Watched{{Kind: node.PutKind, Record: &dbadapter.Record{Value: make([]byte, size)}}}}
			ok, err := s.fits(t.Context(), page)
			if err != nil || ok != (page.Told != nil) {
				t.Errorf("%d bytes fit: %v, %v, and %d events are held", size, ok, err, len(page.Told))
			}
			return ok
		}
		if !fits(one, 5000) {
			t.Fatal("a page is larger than the room, and the watch cannot go on")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if ok, err := other.fits(ctx, &node.WatchPage{Told: make([]node.Watched, 1)}); ok || err == nil {
			t.Errorf("a page beside one that takes all the room: %v, %v", ok, err)
		}
		again := make(chan bool)
		go func() { again <- fits(other, 100) }()
		synctest.Wait()
		one.leaveRoom()
		if <-again {
			t.Error("a page without room is held while it waits")
		}
		if !fits(other, 100) {
			t.Error("the page that was dropped has no room when it is asked for again")
		}
		other.leaveRoom()
		if !fits(one, 5000) {
			t.Error("what was told takes room")
		}
	})
}

// A watch that has hardly any room tells all that one with room does.
func TestWatchWithoutRoom(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 5)
	want := map[string]string{}
	for i := range 60 {
		key := fmt.Sprint("key ", i)
		want[key] = fmt.Sprint("value ", i)
		_, err := c.put(i%5, key, want[key], All)
		c.must(err)
	}
	got := map[string]string{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range c.spaces[0].Watch(ctx, FromStart, func(w *watch) { w.room = 1 }) {
		if err != nil {
			t.Errorf("%d of %d keys, %v", len(got), len(want), err)
			break
		}
		if e.Kind == EventAt {
			break
		}
		got[string(e.Key)] = string(e.Record.Value)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d of %d keys", len(got), len(want))
	}
}
