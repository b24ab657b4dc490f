package peer

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/route"
)

// A scan tells no record of a key of which a read is sure that it was deleted: of two first writes the one
// that stood was deleted, before the other one was looked at.
func TestScanOfADeletedFirstWrite(t *testing.T) {
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters()
	c.part(b)
	c.follow()
	c.pass(3 * directory.Fresh)
	for _, i := range []int{a, b} {
		_, err := c.put(i, key, fmt.Sprint("by ", i), 1)
		c.must(err)
		c.now.Add(int64(time.Second))
	}
	c.heal()
	c.round()
	c.follow()
	if got := c.scanned(a, key); len(got) != 1 || got[0] != fmt.Sprint("by ", b) {
		t.Fatalf("scanned %q, want the later one", got)
	}
	_, err := c.spaces[b].Delete(t.Context(), []byte(key), Acks(AckAll))
	c.must(err)
	for range 3 {
		c.round()
		c.follow()
	}
	sure := 0
	for i := range c.nodes {
		_, err := c.get(i, key)
		if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) {
			continue
		}
		sure++
		if got := c.scanned(i, key); len(got) > 0 {
			t.Errorf("node %d is sure that there is no such key (%v), and scans %q", i, err, got)
		}
	}
	if sure == 0 {
		t.Fatal("no node is sure: the test shows nothing")
	}
}

// A tombstone in one shard hides no record that stands in another one, however late it is: a host that takes
// out what has lost gives its tombstone a later version than all that it has promised to hold.
func TestScanBesideALateTombstone(t *testing.T) {
	c := newWriterCluster(t, 3)
	_, err := c.put(0, "key", "stands", route.All)
	c.must(err)
	c.follow()
	for i, ns := range c.spaces {
		found, err := ns.lookUp(t.Context(), []byte("key"), true)
		c.must(err)
		var of ofKey
		of.add(dbadapter.Hashed{Record: *found.Record})
		late := dbadapter.Record{Key: []byte("key"), Deleted: true, Version: found.Record.Version}
		late.Version.Clock++
		of.add(dbadapter.Hashed{Record: late})
		if got := ns.stands(t.Context(), &of); got.Deleted {
			t.Errorf("node %d: the tombstone hides the record", i)
		}
	}
}

// A scan that ends with an error gives no record of a key of which another shard may have a later one, whichever shard comes
// first: the next scan goes on behind the last key that was given.
func TestScanEndsBeforeAKeyThatIsNotWhole(t *testing.T) {
	var ns *Namespace // the later record needs no look-up
	broken := errors.New("no host that is sure")
	record := func(key, value string, clock dbadapter.Timestamp) dbadapter.Hashed {
		return dbadapter.Hashed{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value), Version: dbadapter.Version{Clock: clock, Writer: 1}}}
	}
	lost := func(yield func(dbadapter.Hashed, error) bool) {
		if yield(record("a", "before", 1), nil) && yield(record("key", "lost", 1), nil) {
			yield(dbadapter.Hashed{}, broken)
		}
	}
	won := func(yield func(dbadapter.Hashed, error) bool) {
		if yield(record("key", "won", 2), nil) {
			yield(record("z", "behind", 3), nil)
		}
	}
	for _, all := range [][]iter.Seq2[dbadapter.Hashed, error]{{lost, won}, {won, lost}} {
		var got []string
		var end error
		for r, err := range ns.oneOfKey(t.Context(), byKey(func(r *dbadapter.Hashed) []byte { return r.Key }, all)) {
			if end = err; err == nil {
				got = append(got, string(r.Value))
			}
		}
		if !errors.Is(end, broken) || !slices.Equal(got, []string{"before"}) {
			t.Errorf("it gives %q, and ends with %v", got, end)
		}
	}
}
