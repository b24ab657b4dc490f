package badgerdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
)

const benchValue = 256

// benchWrite is a record of a 32-byte key and a 256-byte value.
func benchWrite(i int) dbadapter.Write {
	b := make([]byte, 32+benchValue)
	r := rand.NewChaCha8([32]byte{1: 1, 2: byte(i), 3: byte(i >> 8), 4: byte(i >> 16), 5: byte(i >> 24)})
	r.Read(b)
	return dbadapter.Write{Record: hashed(benchHasher(), dbadapter.Record{
		Key: b[:32:32], Value: b[32:],
		Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000 + int64(i))), Writer: 1, Incarnation: 1},
	})}
}

func benchHasher() dbadapter.Hasher { return dbadapter.NewHasher(dbadapter.Secret{1}) }

// hashed is a record that is fit to be stored.
func hashed(h dbadapter.Hasher, r dbadapter.Record) dbadapter.Hashed {
	out, err := dbadapter.Hash(h, r)
	if err != nil {
		panic(err)
	}
	return out
}

func benchOpen(tb testing.TB, dir string) (dbadapter.Backuper, dbadapter.Namespace) {
	s, err := badgerdb.Open(dir, badgerdb.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, benchHasher(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s, n
}

func benchRaw(tb testing.TB, dir string) *badger.DB {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithDetectConflicts(false).
		WithMemTableSize(32 << 20).WithNumMemtables(2).WithCompression(options.None).
		WithBlockCacheSize(0).WithMetricsEnabled(false).WithNumCompactors(2).WithLogger(nil))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	return db
}

// BenchmarkPut writes batches of new records through the store, and the same
// keys and values into Badger alone with the same settings, by turns, and
// reports the ratio of their rates: 1 is as fast as Badger.
func BenchmarkPut(b *testing.B) {
	for _, batch := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			_, n := benchOpen(b, b.TempDir())
			db := benchRaw(b, b.TempDir())
			var ours, raw time.Duration
			next := 0
			for b.Loop() {
				writes := make([]dbadapter.Write, batch)
				for i := range writes {
					writes[i] = benchWrite(next)
					next++
				}
				start := time.Now()
				txn := db.NewTransaction(true)
				for i := range writes {
					if err := txn.Set(writes[i].Record.Key, writes[i].Record.Value); err != nil {
						b.Fatal(err)
					}
				}
				if err := txn.Commit(); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				if _, err := n.Apply(context.Background(), writes); err != nil {
					b.Fatal(err)
				}
				raw += middle.Sub(start)
				ours += time.Since(middle)
			}
			b.ReportMetric(float64(raw)/float64(ours), "of-raw")
			b.ReportMetric(float64(ours.Nanoseconds())/float64(next), "ns/put")
			b.ReportMetric(float64(raw.Nanoseconds())/float64(next), "raw-ns/put")
		})
	}
}

func fill(tb testing.TB, n dbadapter.Namespace, records int) {
	for i := 0; i < records; {
		var writes []dbadapter.Write
		for ; i < records && len(writes) < 4000; i++ {
			writes = append(writes, benchWrite(i))
		}
		if _, err := n.Apply(context.Background(), writes); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkRead times opening a store, look-ups of 100 random indices, opening a
// snapshot, and scans of all pairs, of all records and of a prefix, at two sizes.
func BenchmarkRead(b *testing.B) {
	for _, records := range []int{10_000, 1_000_000} {
		dir := b.TempDir()
		s, n := benchOpen(b, dir)
		fill(b, n, records)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprint("/records=", records)
		b.Run("Open"+name, func(b *testing.B) {
			for b.Loop() {
				s, err := badgerdb.Open(dir, badgerdb.Options{})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
		_, n = benchOpen(b, dir)
		snapshot, err := n.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		b.Run("Snapshot"+name, func(b *testing.B) {
			for b.Loop() {
				s, err := n.Snapshot()
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
		benchLookups(b, snapshot, records, name)
		benchScans(b, snapshot, name)
	}
}

func benchLookups(b *testing.B, snapshot dbadapter.Snapshot, records int, name string) {
	indices := make([]dbadapter.Index, 1<<16)
	for i := range indices {
		indices[i] = benchWrite(rand.IntN(records)).Record.Index
	}
	sums := make([]dbadapter.Checksum, 100)
	b.Run("Lookup100"+name, func(b *testing.B) {
		b.ReportAllocs()
		at := 0
		for b.Loop() {
			at = (at + 100) % (len(indices) - 100)
			if err := snapshot.Lookup(indices[at:at+100], sums); err != nil || sums[7] == 0 {
				b.Fatal(err, sums)
			}
		}
	})
	b.Run("Lookup100Absent"+name, func(b *testing.B) {
		absent := make([]dbadapter.Index, 100)
		for b.Loop() {
			for i := range absent {
				absent[i] = dbadapter.Index(rand.Uint64N(1<<42-12) + 1)
			}
			if err := snapshot.Lookup(absent, sums); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get"+name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := benchWrite(rand.IntN(records))
			if _, err := snapshot.Get(w.Record.Key); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchScans(b *testing.B, snapshot dbadapter.Snapshot, name string) {
	b.Run("Pairs"+name, func(b *testing.B) {
		count := 0
		for b.Loop() {
			for _, err := range snapshot.Pairs(context.Background(), 0, 0) {
				if err != nil {
					b.Fatal(err)
				}
				count++
			}
		}
		b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "pairs/s")
	})
	for what, prefix := range map[string][]byte{"Scan": nil, "ScanPrefix": {0}} {
		b.Run(what+name, func(b *testing.B) {
			count := 0
			for b.Loop() {
				for _, err := range snapshot.Scan(context.Background(), prefix, nil) {
					if err != nil {
						b.Fatal(err)
					}
					count++
				}
			}
			b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkLookupScales looks 100 random indices up in a store of 10^4 records
// and in one of 10^6, by turns, and reports the ratio of the median times.
func BenchmarkLookupScales(b *testing.B) {
	sizes := [2]int{10_000, 1_000_000}
	var snapshots [2]dbadapter.Snapshot
	for i, records := range sizes {
		dir := b.TempDir()
		s, n := benchOpen(b, dir)
		fill(b, n, records)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		_, n = benchOpen(b, dir)
		v, err := n.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		snapshots[i] = v
	}
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	var times [2][]time.Duration
	indices, sums := make([]dbadapter.Index, 100), make([]dbadapter.Checksum, 100)
	for b.Loop() {
		for i, v := range snapshots {
			for j := range indices {
				w := benchWrite(rand.IntN(sizes[i]))
				indices[j] = h.Index(w.Record.Key)
			}
			start := time.Now()
			if err := v.Lookup(indices, sums); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	var medians [2]float64
	for i := range times {
		slices.Sort(times[i])
		medians[i] = float64(times[i][len(times[i])/2].Microseconds())
		b.ReportMetric(medians[i], fmt.Sprintf("µs/100@%d", sizes[i]))
	}
	b.ReportMetric(medians[1]/medians[0], "growth")
}
