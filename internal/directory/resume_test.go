package directory

import (
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// A node that starts goes on from the oldest of its copies, and skips what the others have; a
// set whose host it is told of later does not take the log back.
func TestResume(t *testing.T) {
	const id = roster.ID("a host")
	disk := &simDisk{files: map[string][]byte{}, step: func() {}}
	start := func() *Locator {
		node, err := New(Config{Shards: 2, Seed: 1, Disk: disk, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	h := NewHost(2, 5)
	h.SetLayout(testLayout)
	h.Open(0, sortedRows(map[dbadapter.Index]Code{1: 1, 2: 0}))
	h.Open(1, sortedRows(map[dbadapter.Index]Code{3: 1}))
	catchUp := func(node *Locator) (taken int) {
		for more := true; more; {
			p := node.Poll(id)
			n := h.News(p)
			if err := node.News(id, p, n, time.Minute); err != nil {
				t.Fatal(err)
			}
			for take := node.Take(id, time.Minute); take != nil; take = node.Take(id, time.Minute) {
				taken++
				b, err := h.Block(take)
				if err != nil {
					t.Fatal(err)
				}
				if err := node.Block(id, take, b, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			more = n.More
		}
		for run := node.Work(); run != nil; run = node.Work() {
			if err := run(); err != nil {
				t.Fatal(err)
			}
		}
		return taken
	}
	node := start()
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {id}})
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: {id}})
	catchUp(node)
	h.Set(0, 10, 1)
	catchUp(node)
	if err := node.Save(); err != nil { // of set 0: it alone has changed
		t.Fatal(err)
	}
	for i := range dbadapter.Index(5) {
		h.Set(0, 20+i, 1)
		h.Set(1, 20+i, 0)
	}
	h.most = 1
	node = start()
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {id}})
	for range 3 {
		p := node.Poll(id)
		if err := node.News(id, p, h.News(p), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: {id}})
	catchUp(node)
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: {id}}) // again, to no effect
	if a := node.Locate(0, 24, time.Minute); a.Where != In || a.Shard != 1 {
		t.Errorf("%+v", a)
	}

	// All sets at once: nothing is fetched.
	node = start()
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{0: {id}})
	node.SetHosts(testLayout, map[placement.Shard][]roster.ID{1: {id}})
	if n := catchUp(node); n > 0 {
		t.Errorf("%d blocks were fetched", n)
	}
	if a := node.Locate(1, 24, time.Minute); a.Where != In || a.Shard != 0 {
		t.Errorf("%+v", a)
	}
	if a := node.Locate(1, 25, time.Minute); a.Where != Nowhere {
		t.Errorf("%+v", a)
	}
}
