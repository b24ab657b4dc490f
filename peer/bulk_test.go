//go:build unix

package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"runtime/pprof"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/syncd-io/syncd/dbadapter/ondisk"
)

// BenchmarkBulk compares bulk work with the least that could be done instead, in one
// run, by turns (docs/PERFORMANCE.md, "Bulk"):
//
//	import   BULK records of 24-byte keys and 100-byte values, over each kind of store; beside them, transactions
//	         of Badger of the same keys and values, 2,048 each
//	receive  an empty member fetches BULK records of 24 + 256 bytes; beside it, the same
//	         bytes over a libp2p stream into such transactions
//
// BULK is 200,000 unless the environment says otherwise; "x" is the ratio of the times, "cpu-x" that of the
// processor time.
func BenchmarkBulk(b *testing.B) {
	n := 200_000
	if s := os.Getenv("BULK"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		must(b, err)
	}
	for _, unsigned := range []bool{true, false} {
		name := map[bool]string{true: "unsigned", false: "signed"}[unsigned]
		for _, kind := range []ondisk.Kind{ondisk.Badger, ondisk.Pebble} {
			b.Run("import/"+name+"/"+string(kind), func(b *testing.B) {
				var raw, ours []bulkCost
				for b.Loop() {
					db := bulkRaw(b)
					raw = append(raw, bulkTimed(func() { bulkInto(b, db, bulkItems(n, 100)) }))
					db.Close()
					node := bulkNode(b, b.TempDir(), nil, kind)
					ns, err := node.CreateNamespace(b.Context(), "bulk", Policy{Unsigned: unsigned})
					must(b, err)
					ours = append(ours, bulkTimed(func() { bulkImport(b, ns, n, 100) }))
					benchClose(b, node)
				}
				bulkReport(b, n, ours, raw)
			})
		}
		b.Run("receive/"+name, func(b *testing.B) { bulkReceive(b, n, unsigned) })
	}
}

// bulkReceive compares an empty member with the raw stream, which runs before it and
// after it in each round: ours is held against the mean of the two. What either node does
// has the label "side" in a profile of the processor, which is sender or receiver.
func bulkReceive(b *testing.B, n int, unsigned bool) {
	dir := b.TempDir()
	filled := bulkNode(b, dir, nil, ondisk.Badger)
	at, err := filled.CreateNamespace(b.Context(), "bulk", Policy{Unsigned: unsigned})
	must(b, err)
	bulkImport(b, at, n, 256)
	benchClose(b, filled)

	var from *Node
	bulkSide(b, "sender", func() { from = bulkNode(b, dir, nil, ondisk.Badger) })
	defer benchClose(b, from)
	at, err = from.Namespace("bulk")
	must(b, err)
	from.host.SetStreamHandler(bulkProtocol, func(s network.Stream) {
		defer s.Close()
		bulkSend(s, bulkItems(n, 256))
	})
	var raw, ours []bulkCost
	for b.Loop() {
		ticket, err := at.Invite(b.Context(), InviteOptions{})
		must(b, err)
		before := bulkRawReceive(b, from)
		bulkSide(b, "receiver", func() {
			to := bulkNode(b, b.TempDir(), []string{}, ondisk.Badger)
			defer benchClose(b, to)
			must(b, to.host.Dial(b.Context(), from.self.id, from.host.Dialable()))
			ours = append(ours, bulkTimed(func() {
				ns, r, err := to.JoinSync(b.Context(), ticket, SyncOptions{})
				if err != nil || r.Applied != n {
					b.Fatalf("%+v, %v, %v", r, ns, err)
				}
			}))
		})
		after := bulkRawReceive(b, from)
		raw = append(raw, bulkCost{(before.wall + after.wall) / 2, (before.cpu + after.cpu) / 2, (before.idle + after.idle) / 2})
	}
	bulkReport(b, n, ours, raw)
}

// bulkRawReceive is what the raw stream takes.
func bulkRawReceive(b *testing.B, from *Node) bulkCost {
	to := bulkNode(b, b.TempDir(), []string{}, ondisk.Badger)
	defer benchClose(b, to)
	must(b, to.host.Dial(b.Context(), from.self.id, from.host.Dialable()))
	db := bulkRaw(b)
	defer db.Close()
	return bulkTimed(func() {
		s, err := to.host.NewStream(b.Context(), from.self.id, bulkProtocol)
		must(b, err)
		defer s.Close()
		must(b, errOf(s.Write([]byte{1})))
		bulkInto(b, db, bulkReceived(b, s))
	})
}

// bulkSide gives the goroutines that fn starts, and those that they start, a label.
func bulkSide(b *testing.B, side string, fn func()) {
	pprof.Do(b.Context(), pprof.Labels("side", side), func(context.Context) { fn() })
}

const bulkProtocol protocol.ID = "/bench/bulk"

// bulkCost is what a piece of work took, in seconds: by the clock, and of the
// processors. Other work on the machine prolongs the first. idle is how long the scheduler
// had nothing to run on a processor, since all waited for the disk or for one another.
type bulkCost struct{ wall, cpu, idle float64 }

func bulkTimed(fn func()) bulkCost {
	cpu := func() float64 {
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
			return 0
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	idle := func() float64 {
		runtime.GC() // which brings the figure up to date
		s := []runtimemetrics.Sample{{Name: "/cpu/classes/idle:cpu-seconds"}}
		runtimemetrics.Read(s)
		return s[0].Value.Float64()
	}
	rested := idle()
	start, before := time.Now(), cpu()
	fn()
	cost := bulkCost{wall: time.Since(start).Seconds(), cpu: cpu() - before}
	cost.idle = idle() - rested
	return cost
}

func bulkReport(b *testing.B, n int, ours, raw []bulkCost) {
	median := func(of func(i int) float64) float64 {
		all := make([]float64, len(ours))
		for i := range all {
			all[i] = of(i)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	b.ReportMetric(median(func(i int) float64 { return ours[i].wall / raw[i].wall }), "x")
	b.ReportMetric(median(func(i int) float64 { return ours[i].cpu / raw[i].cpu }), "cpu-x")
	b.ReportMetric(median(func(i int) float64 { return ours[i].cpu / float64(n) * 1e6 }), "cpu-us/record")
	b.ReportMetric(median(func(i int) float64 { return ours[i].idle / float64(n) * 1e6 }), "idle-us/record")
	b.ReportMetric(median(func(i int) float64 { return raw[i].idle / float64(n) * 1e6 }), "raw-idle-us/record")
	b.ReportMetric(median(func(i int) float64 { return raw[i].cpu / float64(n) * 1e6 }), "raw-cpu-us/record")
	b.ReportMetric(median(func(i int) float64 { return ours[i].wall / float64(n) * 1e6 }), "us/record")
	b.ReportMetric(median(func(i int) float64 { return raw[i].wall / float64(n) * 1e6 }), "raw-us/record")
	b.ReportMetric(0, "ns/op")
}

func bulkNode(b *testing.B, dir string, listen []string, kind ondisk.Kind) *Node {
	b.Helper()
	n, err := Open(b.Context(), Config{Dir: dir, StoreKind: kind, ListenAddrs: listen})
	must(b, err)
	return n
}

// bulkItems are n records, the same ones each time.
func bulkItems(n, size int) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		random := rand.NewChaCha8([32]byte{7})
		both := make([]byte, 24+size)
		for i := range n {
			random.Read(both)
			binary.BigEndian.PutUint32(both, uint32(i)*2654435761)
			if !yield(both[:24], both[24:]) {
				return
			}
		}
	}
}

func bulkImport(b *testing.B, ns *Namespace, n, size int) {
	b.Helper()
	r, err := ns.Import(context.Background(), func(yield func(Item, error) bool) {
		for k, v := range bulkItems(n, size) {
			if !yield(Item{Key: k, Value: v}, nil) {
				return
			}
		}
	})
	if err != nil || r.Written != int64(n) {
		b.Fatalf("%+v, %v", r, err)
	}
}

func bulkRaw(b *testing.B) *badger.DB {
	b.Helper()
	db, err := badger.Open(badger.DefaultOptions(b.TempDir()).WithSyncWrites(true).WithDetectConflicts(false).
		WithMemTableSize(32 << 20).WithNumMemtables(2).WithCompression(options.None).WithBlockCacheSize(0).
		WithMetricsEnabled(false).WithNumCompactors(2).WithLogger(nil))
	must(b, err)
	return db
}

// bulkInto writes records into Badger.
func bulkInto(b *testing.B, db *badger.DB, items iter.Seq2[[]byte, []byte]) {
	b.Helper()
	txn, held := db.NewTransaction(true), 0
	commit := func() {
		must(b, txn.Commit())
		txn, held = db.NewTransaction(true), 0
	}
	for k, v := range items {
		must(b, txn.Set(slices.Clone(k), slices.Clone(v)))
		if held++; held == 2048 {
			commit()
		}
	}
	commit()
	txn.Discard()
}

// bulkSend writes records behind the lengths of key and value.
func bulkSend(s network.Stream, items iter.Seq2[[]byte, []byte]) {
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		return
	}
	out := bufio.NewWriterSize(s, 64<<10)
	defer out.Flush()
	for k, v := range items {
		head := binary.BigEndian.AppendUint16(nil, uint16(len(k)))
		out.Write(binary.BigEndian.AppendUint16(head, uint16(len(v))))
		out.Write(k)
		out.Write(v)
	}
}

// bulkReceived reads what bulkSend wrote.
func bulkReceived(b *testing.B, s network.Stream) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		in := bufio.NewReaderSize(s, 64<<10)
		var head [4]byte
		for {
			if _, err := io.ReadFull(in, head[:]); err == io.EOF {
				return
			} else if err != nil {
				b.Fatal(fmt.Errorf("read the raw stream: %w", err))
			}
			both := make([]byte, int(binary.BigEndian.Uint16(head[:]))+int(binary.BigEndian.Uint16(head[2:])))
			must(b, errOf(io.ReadFull(in, both)))
			at := binary.BigEndian.Uint16(head[:])
			if !yield(both[:at], both[at:]) {
				return
			}
		}
	}
}
