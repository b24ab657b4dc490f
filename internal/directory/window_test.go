package directory

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// A set that opens without entries while a base is being built of others gets its first
// entries before the index begins to keep what changes beside the build.
func TestSetOpensWhileBuilding(t *testing.T) {
	for _, moment := range []string{"between", "read"} {
		const id = roster.ID("a host")
		disk := &simDisk{files: map[string][]byte{}, step: func() {}}
		node, err := New(Config{Shards: 4, Seed: 1, Disk: disk, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		h := NewHost(4, 1)
		h.SetLayout(testLayout)
		h.Open(0, sortedRows(map[dbadapter.Index]Code{1: 1}))
		node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {id}})
		node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: {id}})
		now := time.Minute
		poll := func() {
			now += time.Second
			p := node.Poll(id)
			if err := node.News(id, p, h.News(p), now); err != nil {
				t.Fatal(err)
			}
		}
		poll()
		for take := node.Take(id, now); take != nil; take = node.Take(id, now) {
			b, err := h.Block(take)
			if err != nil {
				t.Fatal(err)
			}
			if err := node.Block(id, take, b, now); err != nil {
				t.Fatal(err)
			}
		}
		opens := func() {
			node.chosen, disk.step = func() {}, func() {}
			h.Open(1, sortedRows(nil))
			poll()
			h.Set(1, 7, 2)
			poll()
		}
		if moment == "between" {
			node.chosen = opens
		} else {
			node.chosen = func() { disk.step = opens }
		}
		for range 20 {
			for run := node.Work(); run != nil; run = node.Work() {
				if err := run(); err != nil {
					t.Fatal(err)
				}
			}
			poll()
		}
		if a := node.Locate(1, 7, now); a.Where != In || a.Shard != 2 {
			t.Errorf("%s: %+v", moment, a)
		}
	}
}
