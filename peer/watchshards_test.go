package peer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
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
