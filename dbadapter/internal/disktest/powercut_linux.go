package disktest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/child"
	"github.com/syncd-io/syncd/internal/powercut"
)

var (
	powerCuts    = flag.Int("powercuts", 5, "how often TestPowerCut cuts the power")
	powerCutSeed = flag.Uint64("powercut-seed", uint64(time.Now().UnixNano()), "when TestPowerCut does so")
)

// The writers of a power cut. Each has keys of its own, which it writes in turn, one
// batch after another. So what a store holds must be exactly the state after some
// number of whole batches. Each batch also puts a record of its own and removes that of
// the batch before. After an even batch it sets that aside, after an odd one it removes
// it for good.
const (
	cutWriters = 4
	cutBatch   = 64
	cutKeys    = 512 // of each writer
	cutEnv     = "SYNCD_POWERCUT"
)

// progress is how many batches of each writer are in a store, or acknowledged.
type progress [cutWriters]int

// TestPowerCut writes from another process and cuts the power of its disk in the
// middle. It opens the store on what the disk held, and goes on from there. No
// acknowledged write may be lost, and no batch may be there in part.
func TestPowerCut(t *testing.T, h Harness) {
	if what := os.Getenv(cutEnv); what != "" {
		h.writeUntilCut(t, strings.Fields(what))
		return
	}
	r := rand.New(rand.NewPCG(*powerCutSeed, 1))
	disk := powercut.New(t, 512<<20)
	var written progress
	total := 0
	for cut := range *powerCuts {
		acknowledged := cutPower(t, disk, Options{}, written, 1+r.IntN(300))
		found, err := h.readBack(disk)
		if err != nil {
			t.Fatalf("after cut %d (-powercut-seed=%d): %v", cut+1, *powerCutSeed, err)
		}
		t.Logf("cut %d: acknowledged %v, found %v", cut+1, acknowledged, found)
		for w := range found {
			if found[w] < acknowledged[w] {
				t.Errorf("cut %d (-powercut-seed=%d): writer %d: %d batches were acknowledged, %d are there",
					cut+1, *powerCutSeed, w, acknowledged[w], found[w])
			}
			total += acknowledged[w] - written[w]
		}
		written = found
	}
	t.Logf("%d cuts, %d acknowledged batches of %d writes", *powerCuts, total, cutBatch)
}

// TestPowerCutUnsynced is the same without syncing, where writes must be lost:
// if they were not, TestPowerCut would prove nothing. A database syncs its files now
// and then all the same, and a cut right behind that loses nothing; so there are some.
func TestPowerCutUnsynced(t *testing.T, h Harness) {
	disk := powercut.New(t, 512<<20)
	var at progress
	for range 20 {
		acknowledged := cutPower(t, disk, Options{NoSync: true}, at, 300)
		found, err := h.readBack(disk)
		if err != nil {
			t.Fatalf("the store does not open: %v", err)
		}
		t.Logf("acknowledged %v, found %v", acknowledged, found)
		for w := range found {
			if found[w] < acknowledged[w] {
				return
			}
		}
		at = found
	}
	t.Error("no unsynced write was lost: the cuts are no cuts")
}

// cutPower starts the writers on the disk and cuts its power after that many
// acknowledged batches. It returns what had been acknowledged by the time that the
// process stood.
func cutPower(t *testing.T, disk *powercut.Disk, o Options, from progress, batches int) progress {
	t.Helper()
	writer := child.Start(t, strings.Replace(t.Name(), "Unsynced", "", 1), fmt.Sprintf("%s=%s %t %s", cutEnv, disk.Dir(), o.NoSync, strings.Trim(fmt.Sprint(from), "[]")))
	acknowledged := from
	for range batches {
		if err := acknowledged.next(writer.Lines); err != nil {
			t.Fatal(err)
		}
	}
	err := disk.Cut(writer.Pid())
	writer.Kill()
	// What stands in the pipe was acknowledged before the process stood.
	for err == nil {
		err = acknowledged.next(writer.Lines)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := disk.Restore(); err != nil {
		t.Fatal(err)
	}
	return acknowledged
}

// next reads one acknowledgement: the writer, and its number of batches.
func (p *progress) next(lines *bufio.Scanner) error {
	if !lines.Scan() {
		return cmp.Or(lines.Err(), io.EOF)
	}
	var w, n int
	if _, err := fmt.Sscanf(lines.Text(), "%d %d.", &w, &n); err != nil {
		return fmt.Errorf("the writer said %q: %w", lines.Text(), err)
	}
	p[w] = n
	return nil
}

// readBack opens the store and returns how many batches of each writer are in
// it. It is an error if the records, or the pairs that stand for them, are not
// exactly those after that many whole batches.
func (h Harness) readBack(disk *powercut.Disk) (found progress, err error) {
	store, n, err := h.openCut(disk.Dir(), Options{})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	view, err := n.Snapshot()
	if err != nil {
		return found, err
	}
	defer view.Close()
	held := map[string]dbadapter.Record{}
	var last [cutWriters]int // the number of the writer's newest record, from 1
	for record, err := range view.Scan(context.Background(), nil, nil) {
		if err != nil {
			return found, err
		}
		held[string(record.Key)] = record.Record
		w := record.Version.Writer - 1
		last[w] = max(last[w], int(record.Version.Clock-dbadapter.TimestampAt(dbadapter.Epoch))+1)
	}
	hasher := dbadapter.NewHasher(dbadapter.Secret{})
	count := 0
	aside, err := readKeptBack(n)
	if err != nil {
		return found, err
	}
	for w := range found {
		if last[w]%cutBatch != 0 {
			return found, fmt.Errorf("writer %d: batch %d is there in part", w, last[w]/cutBatch)
		}
		found[w] = last[w] / cutBatch
		if found[w] > 0 {
			own := cutOwn(w, found[w]-1)
			if got, ok := held[string(own.Key)]; !ok || got.Compare(&own) != 0 {
				return found, fmt.Errorf("key %s of the last batch is not held", own.Key)
			}
			count++
		}
		if aside[w] != found[w]/2 {
			return found, fmt.Errorf("writer %d: %d records are set aside after %d batches", w, aside[w], found[w])
		}
		for i := max(0, last[w]-cutKeys); i < last[w]; i++ {
			want := cutRecord(w, i)
			if got := held[string(want.Key)]; got.Compare(&want) != 0 {
				return found, fmt.Errorf("key %s holds version %v, not %v", want.Key, got.Version, want.Version)
			}
			sums := make([]dbadapter.Checksum, 1)
			if err := view.Lookup([]dbadapter.Index{hasher.Index(want.Key)}, sums); err != nil {
				return found, err
			}
			alone := hashed(hasher, want)
			if sum := dbadapter.PairOf(hasher, &alone).Checksum; sums[0] != sum {
				return found, fmt.Errorf("key %s: the pair has checksum %d, not %d", want.Key, sums[0], sum)
			}
			count++
		}
	}
	if count != len(held) {
		return found, fmt.Errorf("%d records are there, not %d", len(held), count)
	}
	return found, nil
}

// readKeptBack counts what each writer has set aside. It is an error if a record is
// not the next one.
func readKeptBack(n dbadapter.Namespace) (aside [cutWriters]int, err error) {
	for k, err := range n.Kept(context.Background()) {
		if err != nil {
			return aside, err
		}
		w := int(k.Record.Version.Writer) - 1
		if want := cutOwn(w, 2*aside[w]); k.Record.Compare(&want) != 0 || string(k.Record.Key) != string(want.Key) {
			return aside, fmt.Errorf("the kept log has %s %v, not %s", k.Record.Key, k.Record.Version, want.Key)
		}
		aside[w]++
	}
	return aside, nil
}

// writeUntilCut is the process that writes; it ends by being killed. It is told
// the folder, whether to sync, and each writer's first batch.
func (h Harness) writeUntilCut(t *testing.T, what []string) {
	store, n, err := h.openCut(what[0], Options{NoSync: what[1] == "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	hasher := dbadapter.NewHasher(dbadapter.Secret{})
	var running sync.WaitGroup
	for w := range cutWriters {
		from, err := strconv.Atoi(what[2+w])
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			for batch := from; ; batch++ {
				writes := make([]dbadapter.Write, cutBatch)
				for i := range writes {
					writes[i].Record = hashed(hasher, cutRecord(w, batch*cutBatch+i))
				}
				writes = append(writes, dbadapter.Write{Record: hashed(hasher, cutOwn(w, batch))})
				if batch > 0 {
					action := dbadapter.Collect
					if batch%2 == 1 {
						action = dbadapter.SetAside
					}
					writes = append(writes, dbadapter.Write{Record: hashed(hasher, cutOwn(w, batch-1)), Action: action})
				}
				if _, err := n.Apply(t.Context(), writes); err != nil {
					t.Errorf("writer %d, batch %d: %v", w, batch, err)
					return
				}
				fmt.Printf("%d %d.\n", w, batch+1) // one write to the pipe
			}
		})
	}
	running.Go(func() {
		for { // the cut may come while the tables are merged
			if err := store.Compact(t.Context()); err != nil {
				t.Errorf("compact: %v", err)
				return
			}
		}
	})
	running.Wait()
}

func (h Harness) openCut(dir string, o Options) (dbadapter.Backuper, dbadapter.Namespace, error) {
	store, err := h.Open(dir+"/store", o)
	if err != nil {
		return nil, nil, err
	}
	var secret dbadapter.Secret
	n, err := store.Namespace(context.Background(), dbadapter.NamespaceIDOf(secret, nil), dbadapter.NewHasher(secret), nil)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, n, nil
}

// cutRecord is the i-th record of a writer.
func cutRecord(w, i int) dbadapter.Record {
	var value []byte
	for r := rand.NewPCG(uint64(w), uint64(i)); len(value) < 700; {
		value = binary.LittleEndian.AppendUint64(value, r.Uint64())
	}
	return dbadapter.Record{
		Key:     fmt.Appendf(nil, "%d/%d", w, i%cutKeys),
		Value:   value,
		Version: dbadapter.Version{Clock: dbadapter.TimestampAt(dbadapter.Epoch) + dbadapter.Timestamp(i), Writer: dbadapter.WriterID(w + 1)},
	}
}

// cutOwn is the record that only one batch of a writer holds.
func cutOwn(w, batch int) dbadapter.Record {
	r := cutRecord(w, (batch+1)*cutBatch-1)
	r.Key = fmt.Appendf(nil, "own/%d/%d", w, batch)
	return r
}
