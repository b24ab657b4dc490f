package peer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
)

// shardItems are so many items of an import: every fifth one is dated, every seventh expires.
func shardItems(from, to int, value string) []Item {
	var all []Item
	for i := from; i < to; i++ {
		item := Item{Key: fmt.Appendf(nil, "key %d", i), Value: fmt.Append(nil, value, i)}
		if i%5 == 0 {
			item.Time = time.UnixMilli(1_700_000_000_000)
		}
		if i%7 == 0 {
			item.Expires = time.Now().Add(time.Hour).Truncate(time.Millisecond)
		}
		all = append(all, item)
	}
	return all
}

func sequence(all []Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, item := range all {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// conflicts counts those that nodes list.
func (c *routedCluster) conflicts() (n int) {
	for _, ns := range c.spaces {
		for _, sh := range ns.shards() {
			n += sh.set.Store.KeptCount(dbadapter.KeptConflict)
		}
	}
	return n
}

// What is imported at any node is at all hosts of its shard; imported again, also by another
// node, it is unchanged; what has another value is replaced, without a conflict.
func TestImportShards(t *testing.T) {
	c := newRoutedCluster(t, 4)
	items := shardItems(0, 500, "first ")
	got, err := c.spaces[3].Import(t.Context(), sequence(items), Acks(AckAll))
	if want := (ImportResult{Items: 500, Written: 500}); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, ns := range c.spaces {
		again, err := ns.Import(t.Context(), sequence(items), Acks(AckAll))
		if err != nil || again.Items != 500 || again.Unchanged != 500 {
			t.Errorf("again at node %d: %+v, %v", i, again, err)
		}
	}
	for _, item := range items {
		hosts, _ := c.hosts(string(item.Key))
		for _, i := range hosts {
			if r := c.held(i, string(item.Key)); r == nil || string(r.Value) != string(item.Value) || r.Expires != 0 && item.Expires.IsZero() {
				t.Fatalf("the host %d of %q holds %+v", i, item.Key, r)
			}
		}
	}
	over := shardItems(0, 600, "second ")
	over = append(over, Item{Key: []byte("key 1"), Value: []byte("last")}, Item{Key: []byte("key 2"), Deleted: true}, Item{Key: []byte("none"), Deleted: true})
	for i := range over {
		over[i].Time = time.Time{}
	}
	if got, err = c.spaces[1].Import(t.Context(), sequence(over), Acks(AckAll)); err != nil || got != (ImportResult{Items: 603, Written: 602, Unchanged: 1}) {
		t.Errorf("over it: %+v, %v", got, err)
	}
	for i, ns := range c.spaces {
		for key, want := range map[string]string{"key 0": "second 0", "key 1": "last", "key 599": "second 599"} {
			if r, err := ns.Get(t.Context(), []byte(key)); err != nil || string(r.Value) != want {
				t.Errorf("node %d reads %q of %q: %v", i, r.Value, key, err)
			}
		}
		if _, err := ns.Get(t.Context(), []byte("key 2")); !errors.Is(err, ErrDeleted) {
			t.Errorf("node %d: %v", i, err)
		}
	}
	if n := c.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
	bad := append(shardItems(600, 610, "third "), Item{})
	if got, err = c.spaces[2].Import(t.Context(), sequence(bad)); err == nil || got.Items != 10 || got.Written+got.Stale != 10 {
		t.Errorf("an item without a key: %+v, %v", got, err)
	}
	if _, err := c.spaces[2].Import(t.Context(), sequence(items), Acks(3)); !errors.Is(err, ErrInvalid) {
		t.Errorf("three of two hosts: %v", err)
	}
}

// While one host of a shard is away an import goes on, and what it was told to be written is
// at the other one; all hosts cannot hold it then, and the first item is named that they do
// not. Afterwards the same import ends.
func TestImportShardsWithoutHost(t *testing.T) {
	t.Parallel()
	c := newRoutedCluster(t, 3)
	items := shardItems(0, 300, "v")
	c.must(c.nodes[2].Close(context.Background()))
	got, err := c.spaces[0].Import(t.Context(), sequence(items))
	if err != nil || got.Items != 300 || got.Written != 300 {
		t.Fatalf("one of three is away: %+v, %v", got, err)
	}
	for _, item := range items {
		if c.held(0, string(item.Key)) == nil && c.held(1, string(item.Key)) == nil {
			t.Fatalf("%q is nowhere", item.Key)
		}
	}
	begun := time.Now()
	got, err = c.spaces[0].Import(t.Context(), sequence(items), Acks(AckAll))
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("the hosts were asked over and over within %s: one that restarts needs longer", took)
	}
	if !errors.Is(err, ErrUnconfirmed) || got.Items >= 300 || !strings.Contains(err.Error(), fmt.Sprintf("item %d: ", got.Items+1)) {
		t.Errorf("at all hosts: %+v, %v", got, err)
	}
	c.nodes[2] = openForTest(t, c.config[2])
	c.spaces[2], err = c.nodes[2].Namespace("notes")
	c.must(err)
	for _, i := range []int{0, 1} {
		_, err := c.nodes[2].Connect(t.Context(), c.nodes[i].Addrs()[0])
		c.must(err)
	}
	got, err = c.spaces[0].Import(t.Context(), sequence(items), Acks(AckAll))
	if err != nil || got.Items != 300 {
		t.Errorf("all are there: %+v, %v", got, err)
	}
	for _, item := range items {
		hosts, _ := c.hosts(string(item.Key))
		for _, i := range hosts {
			if c.held(i, string(item.Key)) == nil {
				t.Fatalf("the host %d lacks %q", i, item.Key)
			}
		}
	}
	if n := c.conflicts(); n != 0 {
		t.Errorf("%d conflicts", n)
	}
}

// An import asks a host that is busy again until its time is over, and one that refuses otherwise, or
// is away, a few times.
func TestImportWaitsForABusyHost(t *testing.T) {
	one, two := ID("one"), ID("two")
	for name, c := range map[string]struct {
		tries int
		why   map[ID]error
		late  bool
		want  bool
	}{
		"a host is away":                 {1, map[ID]error{one: ErrUnreachable}, false, true},
		"a host is away for long":        {node.OfferTries, map[ID]error{one: ErrUnreachable}, false, false},
		"overtaken for long":             {node.OfferTries, nil, false, false},
		"a host is busy for long":        {50 * node.OfferTries, map[ID]error{one: ErrUnreachable, two: fmt.Errorf("it is %w", ErrBusy)}, false, true},
		"a host is busy for longer":      {50 * node.OfferTries, map[ID]error{two: ErrBusy}, true, false},
		"a host is away, and it is late": {1, map[ID]error{one: ErrUnreachable}, true, false},
	} {
		pause, again := importAgain(c.tries, c.why, c.late)
		if again != c.want || pause <= 0 || pause > time.Second {
			t.Errorf("%s: again %t, after %v", name, again, pause)
		}
	}
}
