//go:build linux

package peer_test

import (
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/peer"
)

var tombstones = flag.Int("tombstones", 0, "how many records TestTombstoneFigures writes, of which it deletes half; 0 skips it")

// cluster is nodes in folders that sync by themselves.
type cluster struct {
	dirs   []string
	nodes  []*peer.Node
	spaces []*peer.Namespace
	moved  []moved
}

// moved is what a node's syncs have cost that were begun by it.
type moved struct {
	last        time.Time
	syncs, sent int
	refused     int
	cells       int
	bytes       int64
}

// add opens a node, which becomes a member and fetches what there is.
func (c *cluster) add(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	n := open(t, peer.Config{Dir: dir, SyncInterval: 500 * time.Millisecond})
	var ns *peer.Namespace
	if len(c.nodes) == 0 {
		ns = create(t, n, peer.Policy{})
	} else {
		ns = join(t, c.spaces[0], n, peer.RoleWrite)
	}
	c.dirs, c.nodes, c.spaces, c.moved = append(c.dirs, dir), append(c.nodes, n), append(c.spaces, ns), append(c.moved, moved{})
}

// watch adds up the syncs that have ended since the last call.
func (c *cluster) watch() {
	for i, n := range c.nodes {
		m, syncs := &c.moved[i], n.RecentSyncs()
		for _, s := range syncs {
			if s.Incoming || !s.Time.After(m.last) {
				continue
			}
			m.syncs++
			m.sent += s.Report.Sent + s.Report.Applied
			m.refused += s.Report.Rejected
			m.cells += s.Report.Cells
			m.bytes += s.Report.WireBytesSent + s.Report.WireBytesReceived
		}
		if len(syncs) > 0 {
			m.last = syncs[0].Time
		}
	}
}

// until waits for what each node's namespace must show.
func (c *cluster) until(t *testing.T, what string, patience time.Duration, ok func(ns *peer.Namespace) bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for deadline := begun.Add(patience); ; time.Sleep(20 * time.Millisecond) {
		c.watch()
		all := true
		for _, ns := range c.spaces {
			all = all && ok(ns)
		}
		if all {
			return time.Since(begun)
		}
		if time.Now().After(deadline) {
			for i, ns := range c.spaces {
				t.Errorf("node %d: %d records; %+v", i, ns.Info().Records, ns.Collection())
			}
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func (c *cluster) log(t *testing.T, when string) {
	t.Helper()
	for i, ns := range c.spaces {
		m := &c.moved[i]
		t.Logf("%s: node %d: %d records, %.1f MB on disk; its syncs since: %d, %d records sent or applied, %d declined, %d cells, %.2f MB",
			when, i, ns.Info().Records, float64(onDisk(t, c.dirs[i]))/1e6, m.syncs, m.sent, m.refused, m.cells, float64(m.bytes)/1e6)
		*m = moved{last: m.last}
	}
}

// onDisk is how many bytes the files of a folder take.
func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // the store removes files at any time
		}
		if info, err := d.Info(); err == nil { // in blocks: the store's log is a file with holes
			bytes += 512 * info.Sys().(*syscall.Stat_t).Blocks
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// Three members hold many records, and half of them are deleted: the tombstones go
// from all, and their space comes back. It logs the figures of docs/PERFORMANCE.md.
func TestTombstoneFigures(t *testing.T) {
	n := *tombstones
	if n == 0 {
		t.Skip("it measures; -args -tombstones 1000000 takes some minutes")
	}
	patience := 5*time.Minute + time.Duration(n)*time.Millisecond
	c := &cluster{}
	c.add(t)
	value := make([]byte, 256)
	var records iter.Seq2[peer.Item, error] = func(yield func(peer.Item, error) bool) {
		for i := range n {
			if !yield(peer.Item{Key: fmt.Appendf(nil, "key %07d", i), Value: fmt.Appendf(value[:0], "%0256d", i)}, nil) {
				return
			}
		}
	}
	begun := time.Now()
	must(t, errOf(c.spaces[0].Import(t.Context(), records)))
	t.Logf("%d records imported in %v", n, time.Since(begun).Round(time.Millisecond))
	c.add(t)
	c.add(t)
	equal := func(ns *peer.Namespace) bool { return ns.Info().Digest == c.spaces[0].Info().Digest }
	t.Logf("all have them after %v more", c.until(t, "all hold the records", patience, equal).Round(time.Millisecond))
	c.log(t, "full")

	begun = time.Now()
	for i := 0; i < n; i += 2000 {
		if err := c.spaces[0].Batch(t.Context(), func(b *peer.Batch) error {
			for j := i; j < min(n, i+2000); j += 2 {
				b.Delete(fmt.Appendf(nil, "key %07d", j))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("half of them deleted in %v", time.Since(begun).Round(time.Millisecond))
	last := time.Now()
	c.until(t, "all hold the deletions", patience, func(ns *peer.Namespace) bool { return ns.Collection().Waiting == 0 || equal(ns) })
	t.Logf("all have heard of the last deletion after %v", time.Since(last).Round(time.Millisecond))
	c.log(t, "deleted")

	slowest := time.Duration(0)
	writes := 0
	c.until(t, "no tombstone is left", patience, func(ns *peer.Namespace) bool {
		begun := time.Now()
		must(t, errOf(ns.Put(t.Context(), fmt.Appendf(nil, "key %07d", 1), fmt.Append(nil, writes))))
		slowest, writes = max(slowest, time.Since(begun)), writes+1
		return ns.Info().Records == int64(n/2)
	})
	t.Logf("no tombstone is left %v after the last deletion; %d puts meanwhile, the slowest in %v", time.Since(last).Round(time.Millisecond), writes, slowest.Round(time.Millisecond))
	c.log(t, "collected")
	c.until(t, "all are equal", patience, equal)
	settled := c.settle(t)
	c.log(t, "compacted "+settled.Round(time.Second).String()+" later")
	r := sync1(t, c.spaces[1], c.nodes[2].ID())
	t.Logf("a sync of equal sets: %d cells, %d bytes of them, %d bytes in all", r.Cells, r.SketchBytes, r.WireBytesSent+r.WireBytesReceived)
	live := 0
	for _, ns := range c.spaces {
		live += len(contents(t, ns))
	}
	if live != 3*(n/2) {
		t.Errorf("%d records are left on three nodes, not %d", live, 3*(n/2))
	}
}

// settle waits until the folders do not get smaller any more.
func (c *cluster) settle(t *testing.T) time.Duration {
	t.Helper()
	begun, changed, least := time.Now(), time.Now(), int64(0)
	for time.Since(changed) < 30*time.Second { // a store compacts itself once it has been at rest for a while
		size := int64(0)
		for _, dir := range c.dirs {
			size += onDisk(t, dir)
		}
		if least == 0 || size < least-least/100 {
			least, changed = size, time.Now()
		}
		c.watch()
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begun)
}
