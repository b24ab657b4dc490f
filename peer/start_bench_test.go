//go:build unix

package peer

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
	"github.com/syncd-io/syncd/internal/child"
)

var (
	startRecords = flag.Int("start-records", 100_000, "how many records the node of BenchmarkStart holds")
	startDir     = flag.String("start-dir", "", "where BenchmarkStart keeps its node, to be used again; empty: a new folder")
	startStore   = flag.String("start-store", string(ondisk.Badger), "the store of its node: badger or pebble")
)

const startName = "start"

// startWrites is how many records are written behind the summary before kill -9.
const startWrites = 100_000

// startChild, in the environment, makes the benchmark's own process the one that is
// killed: it names the folder.
const startChild = "SYNCD_START"

// BenchmarkStart opens a node with one unsigned namespace, after an orderly close and
// after kill -9 with startWrites records written since its summary, and reports the
// medians of time and processor time. Both must go by its summary.
func BenchmarkStart(b *testing.B) {
	dir := *startDir
	if dir == "" {
		dir = b.TempDir()
	}
	if entries, err := os.ReadDir(dir); errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		n, _ := startOpen(b, dir)
		ns, err := n.CreateNamespace(b.Context(), startName, Policy{Unsigned: true})
		must(b, err)
		bulkImport(b, ns, *startRecords, 100)
		benchClose(b, n)
	}
	var clean, killed []bulkCost
	start := func(costs *[]bulkCost) {
		n, cost := startOpen(b, dir)
		*costs = append(*costs, cost)
		benchClose(b, n)
	}
	for b.Loop() {
		start(&clean)
		c := child.Start(b, "TestStartWrites", startChild+"="+dir)
		c.Expect("written")
		c.Kill()
		start(&killed) // its close keeps a summary
	}
	for name, all := range map[string][]bulkCost{"clean": clean, "killed": killed} {
		half := len(all) / 2
		slices.SortFunc(all, func(a, b bulkCost) int { return int(1e9 * (a.wall - b.wall)) })
		b.ReportMetric(all[half].wall, name+"-s")
		slices.SortFunc(all, func(a, b bulkCost) int { return int(1e9 * (a.cpu - b.cpu)) })
		b.ReportMetric(all[half].cpu, name+"-cpu-s")
	}
	b.ReportMetric(0, "ns/op")
}

// startOpen opens the node. Where its namespace is there, it must be brought up to date
// by its summary.
func startOpen(b *testing.B, dir string) (*Node, bulkCost) {
	b.Helper()
	var log bytes.Buffer
	var n *Node
	cost := bulkTimed(func() {
		var err error
		n, err = Open(b.Context(), Config{Dir: dir, StoreKind: ondisk.Kind(*startStore), ListenAddrs: []string{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		must(b, err)
	})
	if scanned := "they were scanned"; bytes.Contains(log.Bytes(), []byte(scanned)) {
		b.Errorf("the start went without the summary:\n%s", &log)
	}
	return n, cost
}

// TestStartWrites is the process that BenchmarkStart kills: it writes, and waits.
func TestStartWrites(t *testing.T) {
	dir := os.Getenv(startChild)
	if dir == "" {
		return
	}
	n, err := Open(t.Context(), Config{Dir: dir, ListenAddrs: []string{}})
	must(t, err)
	ns, err := n.Namespace(startName)
	must(t, err)
	now := time.Now().UnixNano() // other keys each time
	r, err := ns.Import(context.Background(), func(yield func(Item, error) bool) {
		for i := range startWrites {
			if !yield(Item{Key: fmt.Appendf(nil, "%016x%08d", now, i), Value: make([]byte, 100)}, nil) {
				return
			}
		}
	})
	if err != nil || r.Written != int64(startWrites) {
		t.Fatalf("%+v, %v", r, err)
	}
	fmt.Println("written")
	child.Hold()
}
