package peer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Of puts of one new key by several nodes at one moment, by placement writer and for all hosts, each ends with a record,
// acknowledged or not: their entries would else lead to none.
func TestPutsThatMeetAreWritten(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	there := func(round int) bool {
		return slices.ContainsFunc(c.spaces, func(ns *Namespace) bool {
			got, _ := ns.Get(t.Context(), []byte(fmt.Sprint("meets ", round)))
			return got.Value != nil
		})
	}
	gone := map[int][]error{}
	for round := range 60 { // 3 in 100 had none
		var all sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			all.Go(func() {
				_, errs[i] = c.spaces[i].Put(t.Context(), []byte(fmt.Sprint("meets ", round)), fmt.Append(nil, "by ", i), Acks(AckAll))
			})
		}
		all.Wait()
		if !there(round) {
			gone[round] = errs
		}
	}
	for range 3 {
		c.round()
		c.follow()
	}
	for round, errs := range gone {
		if !there(round) {
			t.Errorf("round %d: no node finds any of three records: %v", round, errs)
		}
	}
}

// While a host of the record's shard is no member any more and no layout names another one, a put for two hosts is refused before
// its entry is there.
func TestPutWithTooFewHostsLeavesNoEntry(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	ns, key, gone := c.spaces[0], "", -1
	for i := range 1000 {
		k := fmt.Sprint("few ", i)
		in, entries := c.holding(k, ns.core.OwnShard([]byte(k))), c.holding(k, ns.core.Entries([]byte(k)))
		if at := slices.IndexFunc(in, func(h int) bool { return h != 0 && !slices.Contains(entries, h) }); at >= 0 {
			key, gone = k, in[at]
			break
		}
	}
	if gone < 0 {
		t.Fatal("the hosts of each entry are those of its record: choose other idsOfWriters")
	}
	c.must(ns.Remove(t.Context(), c.nodes[gone].ID()))
	if _, err := ns.Put(t.Context(), []byte(key), []byte("value"), Acks(AckAll)); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnconfirmed) {
		t.Errorf("a put for two hosts, of which one is removed: %v", err)
	}
	for _, i := range c.holding(key, ns.core.Entries([]byte(key))) {
		sh, err := c.spaces[i].numbered(ns.core.Entries([]byte(key)))
		c.must(err)
		entry, err := sh.set.Held([]byte(key))
		c.must(err)
		if entry != nil {
			t.Errorf("node %d holds the entry %v", i, entry)
		}
	}
}
