package pgdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/badgerdb"
	"github.com/syncd-io/syncd/dbadapter/pgdb"
	"github.com/syncd-io/syncd/internal/pgserver"
)

// benchWrite is a record of a 32-byte key and a 256-byte value.
func benchWrite(tb testing.TB, i int) dbadapter.Write {
	b := make([]byte, 32+256)
	rand.NewChaCha8([32]byte{1: 1, 2: byte(i), 3: byte(i >> 8), 4: byte(i >> 16), 5: byte(i >> 24)}).Read(b)
	r, err := dbadapter.Hash(hasher, dbadapter.Record{
		Key: b[:32:32], Value: b[32:],
		Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.UnixMilli(1_780_000_000_000 + int64(i))), Writer: 1, Incarnation: 1},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return dbadapter.Write{Record: r}
}

// beside opens a store in PostgreSQL and one on Badger, both on the same disk.
func beside(b *testing.B) [2]dbadapter.Namespace {
	server := pgserver.StartOnDisk(b, "shared_buffers=256MB", "max_wal_size=4GB")
	onBadger, err := badgerdb.Open(b.TempDir(), badgerdb.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { onBadger.Close() })
	var both [2]dbadapter.Namespace
	for i, s := range [...]dbadapter.Store{open(b, server, pgdb.Options{}), onBadger} {
		if both[i], err = s.Namespace(context.Background(), id, hasher, nil); err != nil {
			b.Fatal(err)
		}
	}
	return both
}

// turns runs a step on each store by turns, and reports how many times as long as
// Badger PostgreSQL takes, and what it takes for each of so many things.
func turns(b *testing.B, each int, step func(n dbadapter.Namespace, round int) error, both [2]dbadapter.Namespace) {
	var spent [2]time.Duration
	round := 0
	for ; b.Loop(); round++ {
		for i, n := range both {
			begun := time.Now()
			if err := step(n, round); err != nil {
				b.Fatal(err)
			}
			spent[i] += time.Since(begun)
		}
	}
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "of-badger")
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(round*each), "ns/each")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(round*each), "badger-ns/each")
}

// BenchmarkPut writes batches of new records.
func BenchmarkPut(b *testing.B) {
	for _, batch := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) {
			turns(b, batch, func(n dbadapter.Namespace, round int) error {
				writes := make([]dbadapter.Write, batch)
				for i := range writes {
					writes[i] = benchWrite(b, round*batch+i)
				}
				_, err := n.Apply(context.Background(), writes)
				return err
			}, beside(b))
		})
	}
	const writers, each = 64, 4
	b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
		turns(b, writers*each, func(n dbadapter.Namespace, round int) error {
			failed := make(chan error, writers)
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range each {
						if _, err := n.Apply(context.Background(), []dbadapter.Write{benchWrite(b, (round*writers+w)*each+i)}); err != nil {
							failed <- err
							return
						}
					}
				})
			}
			all.Wait()
			close(failed)
			return <-failed
		}, beside(b))
	})
}

// BenchmarkRead reads a namespace of 10^5 records.
func BenchmarkRead(b *testing.B) {
	const records = 100_000
	both := beside(b)
	var indices []dbadapter.Index
	for i := 0; i < records; {
		var writes []dbadapter.Write
		for ; i < records && len(writes) < 4000; i++ {
			writes = append(writes, benchWrite(b, i))
			if i%1000 == 0 {
				indices = append(indices, writes[len(writes)-1].Record.Index)
			}
		}
		for _, n := range both {
			if _, err := n.Apply(context.Background(), writes); err != nil {
				b.Fatal(err)
			}
		}
	}
	read := func(name string, each int, step func(s dbadapter.Snapshot, round int) error) {
		b.Run(name, func(b *testing.B) {
			turns(b, each, func(n dbadapter.Namespace, round int) error {
				s, err := n.Snapshot()
				if err != nil {
					return err
				}
				defer s.Close()
				return step(s, round)
			}, both)
		})
	}
	read("get", 1, func(s dbadapter.Snapshot, round int) error {
		_, err := s.Get(benchWrite(b, round*7919%records).Record.Key)
		return err
	})
	read("look up 100", 1, func(s dbadapter.Snapshot, _ int) error {
		return s.Lookup(indices, make([]dbadapter.Checksum, len(indices)))
	})
	read("pairs", records, func(s dbadapter.Snapshot, _ int) error {
		for _, err := range s.Pairs(context.Background(), 0, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	read("scan", records, func(s dbadapter.Snapshot, _ int) error {
		for _, err := range s.Scan(context.Background(), nil, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	})
}
