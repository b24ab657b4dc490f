package ondisk_test

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

var importRecords = flag.Int("import-records", 200_000, "how many records BenchmarkImport writes to each store")

// BenchmarkImport writes records of 24-byte keys and 100-byte values in batches of
// 4,096 into each store and, by turns, into Badger alone, and reports the times of each
// as ratios to that of Badger: at most 1 is no slower.
func BenchmarkImport(b *testing.B) {
	const batch = 4096
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	times := map[string][]float64{}
	for b.Loop() {
		raw, err := badger.Open(badger.DefaultOptions(b.TempDir()).WithSyncWrites(true).WithDetectConflicts(false).
			WithMemTableSize(32 << 20).WithNumMemtables(2).WithCompression(options.None).
			WithBlockCacheSize(0).WithMetricsEnabled(false).WithNumCompactors(2).WithLogger(nil))
		if err != nil {
			b.Fatal(err)
		}
		stores, namespaces := map[ondisk.Kind]dbadapter.Store{}, map[ondisk.Kind]dbadapter.Namespace{}
		kinds := []ondisk.Kind{ondisk.Badger, ondisk.Pebble}
		for _, kind := range kinds {
			if stores[kind], err = ondisk.Open(b.TempDir(), kind, ondisk.Options{}); err != nil {
				b.Fatal(err)
			}
			if namespaces[kind], err = stores[kind].Namespace(b.Context(), dbadapter.NamespaceID{1}, h, nil); err != nil {
				b.Fatal(err)
			}
		}
		var alone time.Duration
		ours := map[ondisk.Kind]time.Duration{}
		random := rand.NewChaCha8([32]byte{})
		for written := 0; written < *importRecords; written += batch {
			writes := make([]dbadapter.Write, batch)
			for i := range writes {
				bytes := make([]byte, 124)
				random.Read(bytes)
				binary.BigEndian.PutUint64(bytes, uint64(written+i)) // in order, as exports are
				writes[i].Record.Record = dbadapter.Record{
					Key: bytes[:24:24], Value: bytes[24:],
					Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000)), Writer: 1, Incarnation: 1},
				}
			}
			begun := time.Now()
			txn := raw.NewTransaction(true)
			for i := range writes {
				if err := txn.Set(writes[i].Record.Key, writes[i].Record.Value); err != nil {
					b.Fatal(err)
				}
			}
			if err := txn.Commit(); err != nil {
				b.Fatal(err)
			}
			alone += time.Since(begun)
			for _, kind := range kinds {
				begun := time.Now()
				for i := range writes { // hashing is a part of it
					if writes[i].Record, err = dbadapter.Hash(h, writes[i].Record.Record); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := namespaces[kind].Apply(b.Context(), writes); err != nil {
					b.Fatal(err)
				}
				ours[kind] += time.Since(begun)
			}
		}
		for _, kind := range kinds {
			times[string(kind)] = append(times[string(kind)], float64(ours[kind])/float64(alone))
			if err := stores[kind].Close(); err != nil {
				b.Fatal(err)
			}
		}
		times["raw-us"] = append(times["raw-us"], alone.Seconds()*1e6/float64(*importRecords))
		if err := raw.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for what, all := range times {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], what)
	}
	b.ReportMetric(0, "ns/op")
}
