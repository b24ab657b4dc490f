package badgerdb_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

const (
	collectRecords = 1_000_000
	collectBatch   = 2048
)

// inBatches applies the writes from first up to end, and returns how long the store
// took.
func inBatches(b *testing.B, n dbadapter.Namespace, first, end int, write func(i int) dbadapter.Write) (took time.Duration) {
	b.Helper()
	for i := first; i < end; {
		var writes []dbadapter.Write
		for ; i < end && len(writes) < collectBatch; i++ {
			writes = append(writes, write(i))
		}
		start := time.Now()
		if _, err := n.Apply(context.Background(), writes); err != nil {
			b.Fatal(err)
		}
		took += time.Since(start)
	}
	return took
}

func tombstone(i int) dbadapter.Write {
	w := benchWrite(i)
	w.Record = hashed(benchHasher(), dbadapter.Record{Key: w.Record.Key, Deleted: true, Version: w.Record.Version})
	return w
}

func later(w dbadapter.Write) dbadapter.Write {
	r := w.Record.Record
	r.Version.Clock += 1 << 40
	return dbadapter.Write{Record: hashed(benchHasher(), r)}
}

func collected(w dbadapter.Write) dbadapter.Write {
	w.Action = dbadapter.Collect
	return w
}

// allocated is how many bytes the files of a folder take on the disk; the files of
// Badger are sparse.
func allocated(b *testing.B, dir string) (bytes int64) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			continue // a compaction was faster
		}
		bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	return bytes
}

// BenchmarkCollect writes 10^6 tombstones in batches of 2,048, to new keys and over
// records, and collects them in such batches as a scan finds them. It reports the
// times, and the ratio of collecting to writing: at most 1 is no slower.
func BenchmarkCollect(b *testing.B) {
	for name, over := range map[string]bool{"new": false, "over": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, n := benchOpen(b, b.TempDir())
				write := tombstone
				if over {
					inBatches(b, n, 0, collectRecords, benchWrite)
					write = func(i int) dbadapter.Write { return later(tombstone(i)) }
				}
				wrote := inBatches(b, n, 0, collectRecords, write)
				took := collectAll(b, n)
				b.ReportMetric(float64(wrote.Nanoseconds())/collectRecords, "ns/write")
				b.ReportMetric(float64(took.Nanoseconds())/collectRecords, "ns/collect")
				b.ReportMetric(float64(took)/float64(wrote), "of-writing")
			}
		})
	}
}

// collectAll collects what a scan finds, and returns how long the store took.
func collectAll(b *testing.B, n dbadapter.Namespace) (took time.Duration) {
	b.Helper()
	snap, err := n.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer snap.Close()
	var batch []dbadapter.Write
	apply := func() {
		start := time.Now()
		if _, err := n.Apply(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
		took, batch = took+time.Since(start), batch[:0]
	}
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		if err != nil {
			b.Fatal(err)
		}
		if batch = append(batch, dbadapter.Write{Record: r, Action: dbadapter.Collect}); len(batch) == collectBatch {
			apply()
		}
	}
	apply()
	return took
}

// BenchmarkCompact writes 10^6 records, deletes half of them, collects the
// tombstones and compacts, and reports the megabytes on disk after each step.
func BenchmarkCompact(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		s, n := benchOpen(b, dir)
		report := func(what string) { b.ReportMetric(float64(allocated(b, dir))/1e6, "MB-"+what) }
		inBatches(b, n, 0, collectRecords, benchWrite)
		report("written")
		inBatches(b, n, 0, collectRecords/2, func(i int) dbadapter.Write { return later(tombstone(i)) })
		report("deleted")
		inBatches(b, n, 0, collectRecords/2, func(i int) dbadapter.Write { return collected(later(tombstone(i))) })
		report("collected")
		start := time.Now()
		if err := s.Compact(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/compact")
		report("compacted")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		report("closed")

		half := b.TempDir()
		s, n = benchOpen(b, half)
		inBatches(b, n, collectRecords/2, collectRecords, benchWrite)
		if err := s.Compact(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(allocated(b, half))/1e6, "MB-half-only")
	}
}
