package ondisk_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

const benchValue = 256

// benchWrite is a record of a 32-byte key and a 256-byte value.
func benchWrite(i int) dbadapter.Write {
	b := make([]byte, 32+benchValue)
	r := rand.NewChaCha8([32]byte{1: 1, 2: byte(i), 3: byte(i >> 8), 4: byte(i >> 16), 5: byte(i >> 24)})
	r.Read(b)
	record, err := dbadapter.Hash(benchHasher(), dbadapter.Record{
		Key: b[:32:32], Value: b[32:],
		Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000 + int64(i))), Writer: 1, Incarnation: 1},
	})
	if err != nil {
		panic(err)
	}
	return dbadapter.Write{Record: record}
}

func benchHasher() dbadapter.Hasher { return dbadapter.NewHasher(dbadapter.Secret{1}) }

func benchOpen(tb testing.TB, dir string) dbadapter.Namespace {
	s, err := ondisk.Open(dir, ondisk.Badger, ondisk.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	n, err := s.Namespace(context.Background(), dbadapter.NamespaceID{1}, benchHasher(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return n
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
			n := benchOpen(b, b.TempDir())
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
