package kvstore

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

var salvageRecords = flag.Int("salvage.records", 10_000, "how many records of 100 bytes BenchmarkSalvage has")

// BenchmarkSalvage makes a store anew of which a bit of one table is another one.
func BenchmarkSalvage(b *testing.B) {
	dir, h := b.TempDir(), dbadapter.NewHasher(dbadapter.Secret{1})
	s, err := openEngine(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	n, err := s.Namespace(b.Context(), dbadapter.NamespaceID{1}, h, nil)
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	random := rand.NewChaCha8([32]byte{1})
	var writes []dbadapter.Write
	for i := range *salvageRecords {
		_, _ = random.Read(value) // never fails
		writes = append(writes, dbadapter.Write{Record: hashed(h, dbadapter.Record{
			Key: fmt.Appendf(nil, "key %020d", i), Value: bytes.Clone(value),
			Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000 + int64(i))), Writer: 1},
		})})
		if len(writes) == dbadapter.MaxBatch || i == *salvageRecords-1 {
			if _, err := n.Apply(b.Context(), writes); err != nil {
				b.Fatal(err)
			}
			writes = writes[:0]
		}
	}
	if err := errors.Join(s.Compact(b.Context()), s.Close()); err != nil {
		b.Fatal(err)
	}
	known := func() (map[dbadapter.NamespaceID]dbadapter.Hasher, error) {
		return map[dbadapter.NamespaceID]dbadapter.Hasher{{1}: h}, nil
	}
	harm := func(dir string) error {
		tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
		if err != nil || len(tables) == 0 {
			return errors.Join(err, errors.New("no tables"))
		}
		data, err := os.ReadFile(tables[len(tables)/2])
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		return os.WriteFile(tables[len(tables)/2], data, 0o600)
	}
	b.Run(engine.Name(), func(b *testing.B) {
		var done *dbadapter.Salvaged
		for b.Loop() {
			b.StopTimer()
			to := filepath.Join(b.TempDir(), "store")
			if err := errors.Join(os.CopyFS(to, os.DirFS(dir)), harm(to)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if done, err = Salvage(b.Context(), to, engine, Options{}, known, func(*dbadapter.Salvaged) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(*salvageRecords)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		loss := done.Lost[dbadapter.NamespaceID{1}]
		b.ReportMetric(float64(max(0, loss.Records)), "lost")
	})
}
