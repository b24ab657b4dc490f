package peer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// A write on the condition that the key is free fails with ErrConflict at each node, also where no feed has
// told of the record that all hosts hold: what the hosts of the directory tell of it then is not replaced.
func TestWriterIfAbsentAtUnheard(t *testing.T) {
	c := newWriterCluster(t, 4)
	_, err := c.spaces[0].PutIf(t.Context(), []byte("key"), []byte("first"), dbadapter.Version{}, Acks(AckAll))
	c.must(err)
	for _, i := range []int{1, 2, 3} {
		v, err := c.spaces[i].PutIf(t.Context(), []byte("key"), fmt.Append(nil, i), dbadapter.Version{}, Acks(AckAll))
		if !errors.Is(err, ErrConflict) {
			t.Errorf("node %d writes %s where it is free: %v", i, v, err)
		}
	}
	c.round()
	c.follow()
	c.readEverywhere("key", "first")
}

// A tombstone is what a condition is about until it is collected, also where the locator says that the key is
// nowhere: its version is replaced, and a key that has one is not free.
func TestWriterConditionOverATombstone(t *testing.T) {
	c := newWriterCluster(t, 3)
	_, err := c.put(0, "key", "1", route.All)
	c.must(err)
	c.follow()
	deleted, err := c.spaces[1].Delete(t.Context(), []byte("key"), Acks(AckAll))
	c.must(err)
	c.follow()
	if _, err := c.spaces[2].PutIf(t.Context(), []byte("key"), []byte("2"), dbadapter.Version{}); !errors.Is(err, ErrConflict) {
		t.Errorf("where it is free: %v", err)
	} else if conflict, ok := errors.AsType[*ConflictError](err); !ok || conflict.Held != deleted {
		t.Errorf("the conflict names %+v", conflict)
	}
	if _, err := c.spaces[2].PutIf(t.Context(), []byte("key"), []byte("2"), deleted); err != nil {
		t.Errorf("over the version of the tombstone: %v", err)
	}
	if got, err := c.get(2, "key"); err != nil || got != "2" {
		t.Errorf("it reads %q, %v", got, err)
	}
}

// overwritten is a key of which one host of its shard holds the second version, and another one, which is
// sure, still the first. The entry is of the second version, unless that is only made.
func (c *writerCluster) overwritten(held bool) (key string, asker int, first dbadapter.Version, shard placement.Shard, second *dbadapter.Record) {
	c.t.Helper()
	for i := 0; key == ""; i++ {
		if k := fmt.Sprint("key ", i); !slices.Contains(c.holding(k, c.spaces[0].core.Entries([]byte(k))), 0) {
			key = k
		}
	}
	ns := c.spaces[0]
	shard = ns.core.OwnShard([]byte(key))
	at := c.holding(key, shard)
	other := at[0] + at[1]
	for asker = 1; asker == other; asker++ {
	}
	done, err := c.put(0, key, "first", route.All)
	c.must(err)
	c.follow()
	sh, err := c.spaces[other].numbered(shard)
	c.must(err)
	_, err = sh.sync(c.t.Context(), c.nodes[0].ID(), SyncOptions{})
	c.must(err)
	mine, err := ns.numbered(shard)
	c.must(err)
	was, err := mine.set.Held([]byte(key))
	c.must(err)
	remote := ns.core.RemoteIn([]byte(key), shard)
	second, err = remote.Make(node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("second")}, Seen: []*dbadapter.Record{was}})
	c.must(err)
	entries := ns.core.RemoteIn([]byte(key), ns.core.Entries([]byte(key)))
	entry, err := entries.Entry(second, shard)
	c.must(err)
	_, err = ns.follows.byWriter.HandOver(c.t.Context(), entries, entry, route.All)
	c.must(err)
	if held {
		_, err = ns.follows.byWriter.HandOver(c.t.Context(), remote, second, 1)
		c.must(err)
	}
	c.nearest(c.spaces[asker], other, 0)
	return key, asker, done.Version, shard, second
}

// A write on the condition that the key has its first version fails with ErrConflict where a host holds the
// second one, of which the entry tells, also if the host that is asked first has not heard of it.
func TestWriterConditionBehindTheEntry(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, asker, first, _, _ := c.overwritten(true)
	v, err := c.spaces[asker].PutIf(t.Context(), []byte(key), []byte("mine"), first, Acks(AckAll))
	if !errors.Is(err, ErrConflict) {
		t.Errorf("over version %s it is written as %s: %v", first, v, err)
	}
	c.round()
	c.follow()
	c.readEverywhere(key, "second")
}

// A write on a condition is not sure while an entry is later than the record, which may be about to be
// written. Once it is taken to be none, the condition counts, and a record that comes later all the same
// is refused: it was not seen.
func TestWriterConditionWhileARecordComes(t *testing.T) {
	c := newWriterCluster(t, 4)
	key, asker, first, shard, second := c.overwritten(false)
	ns := c.spaces[asker]
	write := func() error {
		_, err := ns.PutIf(t.Context(), []byte(key), []byte("mine"), first, Acks(AckAll))
		return err
	}
	if err := write(); !errors.Is(err, ErrUnsure) {
		t.Fatalf("while it may come: %v", err)
	}
	c.pass(node.ComingFor)
	c.follow()
	c.must(write())
	author := c.spaces[0]
	_, err := author.follows.byWriter.HandOver(t.Context(), author.core.RemoteIn([]byte(key), shard), second, route.All)
	if !errors.Is(err, route.ErrOvertaken) {
		t.Errorf("what comes later: %v", err)
	}
	if got, err := c.get(asker, key); err != nil || got != "mine" {
		t.Errorf("it reads %q, %v", got, err)
	}
}
