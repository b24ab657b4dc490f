package directory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

func fileOf(t testing.TB, rs rows) []byte {
	t.Helper()
	data, err := appendCopy(nil, 32, 7, place{"a host", 5, 6}, rs.sum(), slices.Values(rs))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoldenCopy(t *testing.T) {
	var b strings.Builder
	fmt.Fprintln(&b, "# copies of set 7 of 32, of \"a host\", log 5, event 6; copy.go has the form")
	for _, rs := range []rows{nil, {pack(1, 0), pack(500, 31)}, {pack(1, Shared)}} {
		fmt.Fprintf(&b, "%d rows: %x\n", len(rs), fileOf(t, rs))
	}
	golden.Compare(t, "testdata/copies.txt", b.String())
}

func TestCopyOfManyBlocks(t *testing.T) {
	var rs rows
	for i := range dbadapter.Index(2*keyset.MaxKeys + 1) {
		rs = append(rs, pack(1+7*i, Code(i%32)))
	}
	for _, n := range []int{0, 1, keyset.MaxKeys, keyset.MaxKeys + 1, len(rs)} {
		back, at, sum, err := parseCopy(fileOf(t, rs[:n]), 32, 7)
		if err != nil || !slices.Equal(back, rs[:n]) || sum != rs[:n].sum() || at != (place{"a host", 5, 6}) {
			t.Errorf("%d rows: %d, %v, %v", n, len(back), at, err)
		}
	}
}

// A copy with any bit flipped, or cut, or of another set, is refused.
func TestDamagedCopy(t *testing.T) {
	data := fileOf(t, rows{pack(1, 0), pack(500, 31)})
	for bit := range 8 * len(data) {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, _, _, err := parseCopy(bad, 32, 7); !errors.Is(err, ErrCopy) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for n := range data {
		if _, _, _, err := parseCopy(data[:n], 32, 7); !errors.Is(err, ErrCopy) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, _, _, err := parseCopy(data, 32, 8); !errors.Is(err, ErrCopy) {
		t.Errorf("another set: %v", err)
	}
	if _, _, _, err := parseCopy(data, 64, 7); !errors.Is(err, ErrCopy) {
		t.Errorf("another number of shards: %v", err)
	}
}

// FuzzCopy mends the checksum, so that what is behind it is tried.
func FuzzCopy(f *testing.F) {
	f.Add(fileOf(f, rows{pack(1, 0), pack(500, 31)}))
	f.Add(fileOf(f, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= 8 {
			binary.BigEndian.PutUint64(data[len(data)-8:], xxh3.Hash(data[:len(data)-8]))
		}
		rs, at, sum, err := parseCopy(data, 32, 7)
		if err != nil {
			return
		}
		for i, x := range rs {
			if i > 0 && rs[i-1].index() >= x.index() || x.code() != Shared && x.code() >= 32 {
				t.Fatalf("row %d is %x", i, x)
			}
		}
		if _, err := appendCopy(nil, 32, 7, at, sum, slices.Values(rs)); err != nil {
			t.Error(err)
		}
	})
}

// Look-ups, messages, work and a save at once; -race watches. A key that never changes is
// always where it is once it was found, or unknown yet.
func TestAtOnce(t *testing.T) {
	const shards, id = 4, roster.ID("a host")
	h := NewHost(shards, 1)
	h.SetLayout(testLayout)
	for home := range placement.Shard(shards) {
		h.Open(home, sortedRows(map[dbadapter.Index]Code{1: 1, 2: 2, 3: 3}))
	}
	disk := &simDisk{files: map[string][]byte{}, step: func() {}}
	node, err := New(Config{Shards: shards, Seed: 1, Disk: disk, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	node.leastOver, node.leastExact = 10, 50
	for home := range placement.Shard(shards) {
		node.SetHosts(testLayout, map[placement.Shard][]roster.ID{home: {id}})
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	loop := func(do func(r *rand.Rand)) {
		all.Go(func() {
			for r := rand.New(rand.NewPCG(1, 1)); ; {
				select {
				case <-done:
					return
				default:
					do(r)
				}
			}
		})
	}
	loop(func(r *rand.Rand) {
		for home := range placement.Shard(shards) {
			if a := node.Locate(home, 2, time.Minute); a.Where != Unknown && (a.Where != In || a.Shard != 2) {
				t.Errorf("%+v", a)
			}
		}
	})
	loop(func(r *rand.Rand) {
		if run := node.Work(); run != nil {
			if err := run(); err != nil {
				t.Error(err)
			}
		}
	})
	loop(func(r *rand.Rand) {
		if err := node.Save(); err != nil {
			t.Error(err)
		}
		node.Status()
	})
	r := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		h.Set(placement.Shard(r.IntN(shards)), dbadapter.Index(4+r.IntN(100)), Code(r.IntN(shards)))
		p := node.Poll(id)
		if err := node.News(id, p, h.News(p), time.Minute); err != nil {
			t.Fatal(err)
		}
		if take := node.Take(id, time.Minute); take != nil {
			b, err := h.Block(take)
			if err != nil {
				t.Fatal(err)
			}
			if err := node.Block(id, take, b, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(done)
	all.Wait()
	if node.Damaged() > 0 {
		t.Errorf("%d copies were damaged", node.Damaged())
	}
}
