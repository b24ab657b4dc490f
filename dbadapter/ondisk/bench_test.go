//go:build unix

package ondisk_test

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

var importRecords = flag.Int("import-records", 200_000, "how many records BenchmarkImport writes to each store")

// BenchmarkImport writes records of 24-byte keys and 100-byte values in batches of
// 4,096 into Badger alone and, by turns, into each store, and reports the time of each,
// and its processor time ("-cpu"), as ratios to those of Badger: at most 1 is no slower.
// "-entries" are Badger and Pebble alone with the entries that a store writes of a
// record: what is beyond is hashing, deciding, and telling readers.
func BenchmarkImport(b *testing.B) {
	const batch = 4096
	h := dbadapter.NewHasher(dbadapter.Secret{1})
	ratios := map[string][]float64{}
	rawBadger := func() *badger.DB {
		raw, err := badger.Open(badger.DefaultOptions(b.TempDir()).WithSyncWrites(true).WithDetectConflicts(false).
			WithMemTableSize(32 << 20).WithNumMemtables(2).WithCompression(options.None).
			WithBlockCacheSize(0).WithMetricsEnabled(false).WithNumCompactors(2).WithLogger(nil))
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	for b.Loop() {
		raw := rawBadger()
		alone := importCost(b, batch, badgerAlone(raw, func(writes []dbadapter.Write) [][2][]byte {
			all := make([][2][]byte, len(writes))
			for i := range writes {
				all[i] = [2][]byte{writes[i].Record.Key, writes[i].Record.Value}
			}
			return all
		}), raw.Close)
		report := func(what string, c cost) {
			ratios[what] = append(ratios[what], c.wall/alone.wall)
			ratios[what+"-cpu"] = append(ratios[what+"-cpu"], c.cpu/alone.cpu)
		}
		raw = rawBadger()
		report("badger-entries", importCost(b, batch, badgerAlone(raw, entries()), raw.Close))
		write, closeAll := pebbleAlone(b, entries())
		report("pebble-entries", importCost(b, batch, write, closeAll))
		for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
			store, err := ondisk.Open(b.TempDir(), kind, ondisk.Options{})
			if err != nil {
				b.Fatal(err)
			}
			n, err := store.Namespace(b.Context(), dbadapter.NamespaceID{1}, h, nil)
			if err != nil {
				b.Fatal(err)
			}
			cost := importCost(b, batch, inFlight(func(writes []dbadapter.Write) error {
				_, err := n.Apply(b.Context(), writes)
				return err
			}, func(writes []dbadapter.Write) (err error) {
				for i := range writes { // hashing is a part of it
					if writes[i].Record, err = dbadapter.Hash(h, writes[i].Record.Record); err != nil {
						return err
					}
				}
				return nil
			}), store.Close)
			report(string(kind), cost)
		}
		ratios["raw-us"] = append(ratios["raw-us"], alone.wall*1e6/float64(*importRecords))
		ratios["raw-cpu-us"] = append(ratios["raw-cpu-us"], alone.cpu*1e6/float64(*importRecords))
	}
	for what, all := range ratios {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], what)
	}
	b.ReportMetric(0, "ns/op")
}

// inFlight prepares a batch while two others are applied, as an import of a node does.
// Called without a batch, it waits for them.
func inFlight(apply, prepare func([]dbadapter.Write) error) func([]dbadapter.Write) error {
	var applying []chan error
	next := func() error {
		done := applying[0]
		applying = applying[1:]
		return <-done
	}
	return func(writes []dbadapter.Write) error {
		for len(writes) == 0 && len(applying) > 0 {
			if err := next(); err != nil {
				return err
			}
		}
		if len(writes) == 0 {
			return nil
		}
		if err := prepare(writes); err != nil {
			return err
		}
		if len(applying) == 2 {
			if err := next(); err != nil {
				return err
			}
		}
		done := make(chan error, 1)
		applying = append(applying, done)
		go func() { done <- apply(writes) }()
		return nil
	}
}

// cost is what a piece of work took, in seconds: by the clock, and of the processors.
type cost struct{ wall, cpu float64 }

// importCost writes the records in batches and closes what they are written to, so that
// what is done in the background counts in the processor time. Time counts up to the
// last commit.
func importCost(b *testing.B, batch int, write func([]dbadapter.Write) error, closeAll func() error) (c cost) {
	b.Helper()
	random := rand.NewChaCha8([32]byte{})
	runtime.GC()
	before := cpu(b)
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
		if err := write(writes); err != nil {
			b.Fatal(err)
		}
		c.wall += time.Since(begun).Seconds()
	}
	begun := time.Now()
	if err := write(nil); err != nil { // what it has begun
		b.Fatal(err)
	}
	c.wall += time.Since(begun).Seconds()
	if err := closeAll(); err != nil {
		b.Fatal(err)
	}
	c.cpu = cpu(b) - before
	return c
}

// cpu is the processor time of the process.
func cpu(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
