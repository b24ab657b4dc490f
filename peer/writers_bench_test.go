//go:build unix

package peer

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"golang.org/x/sys/unix"
)

const (
	benchWriters = 64
	benchPuts    = 4096 // of all writers, a turn
)

// rawGroups is Badger with a group committer and nothing else: what is queued while a
// transaction is written to the disk goes into the next one.
type rawGroups struct {
	db    *badger.DB
	queue chan rawPut
	done  chan struct{}
}

type rawPut struct {
	key, value []byte
	done       chan error
}

func openRaw(b *testing.B) *rawGroups {
	db, err := badger.Open(badger.DefaultOptions(b.TempDir()).WithSyncWrites(true).WithDetectConflicts(false).
		WithMemTableSize(32 << 20).WithNumMemtables(2).WithCompression(options.None).
		WithBlockCacheSize(0).WithMetricsEnabled(false).WithNumCompactors(2).WithLogger(nil))
	must(b, err)
	r := &rawGroups{db, make(chan rawPut, 1024), make(chan struct{})}
	go r.loop()
	return r
}

func (r *rawGroups) loop() {
	defer close(r.done)
	for first := range r.queue {
		group := append(make([]rawPut, 0, benchWriters), first)
		for more := true; more; {
			select {
			case next, ok := <-r.queue:
				if more = ok; ok {
					group = append(group, next)
				}
			default:
				more = false
			}
		}
		txn := r.db.NewTransaction(true)
		var err error
		for _, put := range group {
			if err == nil {
				err = txn.Set(put.key, put.value)
			}
		}
		if err == nil {
			err = txn.Commit()
		}
		txn.Discard()
		for _, put := range group {
			put.done <- err
		}
	}
}

func (r *rawGroups) put(_ context.Context, key, value []byte) error {
	done := make(chan error, 1)
	r.queue <- rawPut{key, value, done}
	return <-done
}

func (r *rawGroups) close(b *testing.B) {
	close(r.queue)
	<-r.done
	must(b, r.db.Close())
}

// processors is the time of all processors that this process has taken.
func processors(b *testing.B) time.Duration {
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWriters has 64 writers put records of 32-byte keys and 256-byte values, each
// durable before its writer goes on, into a namespace of a node with a folder, unsigned
// and signed, and into Badger with a group committer, by turns, and reports the ratios
// of the rates: 1 is as fast as Badger. A put's processor time says more on a machine
// that others use.
func BenchmarkWriters(b *testing.B) {
	n, err := Open(b.Context(), Config{Dir: b.TempDir(), ListenAddrs: []string{}})
	must(b, err)
	defer benchClose(b, n)
	raw := openRaw(b)
	defer raw.close(b)
	sinks := map[string]func(context.Context, []byte, []byte) error{"raw": raw.put}
	for name, policy := range map[string]Policy{"unsigned": {Unsigned: true}, "signed": {}} {
		ns, err := n.CreateNamespace(b.Context(), name, policy)
		must(b, err)
		sinks[name] = func(ctx context.Context, key, value []byte) error {
			_, err := ns.Put(ctx, key, value)
			return err
		}
	}
	names := []string{"raw", "unsigned", "signed"}
	ratios := map[string][]float64{}
	var next atomic.Uint64
	for b.Loop() {
		rate := map[string]float64{}
		for _, name := range names {
			start, used := time.Now(), processors(b)
			var writers sync.WaitGroup
			for range benchWriters {
				writers.Go(func() {
					record := make([]byte, 32+256)
					for range benchPuts / benchWriters {
						binary.LittleEndian.PutUint64(record, rand.Uint64())
						binary.LittleEndian.PutUint64(record[8:], next.Add(1))
						if err := sinks[name](b.Context(), slices.Clone(record[:32]), slices.Clone(record[32:])); err != nil {
							b.Error(err)
						}
					}
				})
			}
			writers.Wait()
			rate[name] = benchPuts / time.Since(start).Seconds()
			ratios[name+"-cpu-µs/put"] = append(ratios[name+"-cpu-µs/put"], (processors(b)-used).Seconds()*1e6/benchPuts)
			ratios[name+"-puts/s"] = append(ratios[name+"-puts/s"], rate[name])
		}
		ratios["unsigned/raw"] = append(ratios["unsigned/raw"], rate["unsigned"]/rate["raw"])
		ratios["signed/raw"] = append(ratios["signed/raw"], rate["signed"]/rate["raw"])
	}
	for name, all := range ratios {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name)
	}
	b.ReportMetric(0, "ns/op")
}
