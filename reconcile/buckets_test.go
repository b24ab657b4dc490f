package reconcile

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/dbadapter/storetest"
	"github.com/syncd-io/syncd/iblt/rateless"
	"github.com/syncd-io/syncd/internal/keyhash"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// counting is a replica that counts how often records are read, and how many buckets.
type counting struct {
	Replica
	calls, buckets int
	bytes          int64 // most at once
}

func (c *counting) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	c.calls++
	c.buckets += len(indices)
	read, err := c.Replica.Buckets(indices)
	var size int64
	for _, records := range read {
		size += bytesOf(records)
	}
	c.bytes = max(c.bytes, size)
	return read, err
}

// countedSync holds a sync of two sides, and returns what each has read.
func countedSync(t *testing.T, a, b *side) map[string]*counting {
	t.Helper()
	va, vb := a.open(), b.open()
	defer va.Close()
	defer vb.Close()
	ra, rb := &counting{Replica: va}, &counting{Replica: vb}
	sa := Initiate(ra, a.options(b, Options{FirstCells: MaxFirstCells}))
	sb := Respond(opening(rb), b.options(a, Options{}))
	defer sa.Close()
	defer sb.Close()
	var out outcome
	carry(t, sa, sb, &out, nil)
	if sa.Err() != nil || sb.Err() != nil {
		t.Fatal(sa.Err(), sb.Err())
	}
	return map[string]*counting{"a": ra, "b": rb}
}

// The records of a difference are read some tens at a time, and once, by both sides;
// of large ones no more at once than are kept.
func TestBucketsAreReadTogether(t *testing.T) {
	const n = 300
	for _, size := range []int{10, 300 << 10} {
		a, b := newSide(t, "a", nil), newSide(t, "b", nil)
		values := map[bool]string{false: string(make([]byte, size)), true: string(make([]byte, size+1))}
		for i := range n {
			a.put(record(string(rune('a'+i)), values[false], at(0)))
			b.put(record(string(rune('a'+i)), values[true], at(time.Hour)))
			if size > 1000 && i == 30 {
				break
			}
		}
		for name, r := range countedSync(t, a, b) {
			if size > 1000 {
				if r.bytes > cacheBytes {
					t.Errorf("%s reads %d bytes at once", name, r.bytes)
				}
				continue
			}
			if r.calls > n/16 || r.buckets != n {
				t.Errorf("%s reads %d buckets in %d calls, of %d", name, r.buckets, r.calls, n)
			}
		}
	}
}

// Of more than is kept, each bucket is read again, and still some tens at a time.
func TestManyBucketsAreReadTogether(t *testing.T) {
	const n = 6000
	a, b := newSide(t, "a", nil), newSide(t, "b", nil)
	for i := range n {
		a.put(record(fmt.Sprint(i), string(make([]byte, offerAbove)), at(0)))
		b.put(record(fmt.Sprint(i), string(make([]byte, offerAbove-1)), at(time.Hour)))
	}
	for name, r := range countedSync(t, a, b) {
		if r.calls > r.buckets/16 || r.buckets > 3*n {
			t.Errorf("%s reads %d buckets in %d calls, of %d", name, r.buckets, r.calls, n)
		}
	}
}

// Records of one index pass though they are more than may wait for one another,
// whichever side holds them, and whether the other holds an older one or nothing there.
func TestLargeBucket(t *testing.T) {
	const large = 7
	hasher := storetest.Weak(testKeys.Hasher, 2)
	for _, caller := range []string{"the side that holds them", "the other side"} {
		for _, older := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s calls, an older record: %v", caller, older), func(t *testing.T) {
				full, other := newSide(t, "full", hasher), newSide(t, "other", hasher)
				held, elsewhere := 0, false
				for n := 0; held < large || !elsewhere; n++ {
					r := record(fmt.Sprint("key ", n), "", at(time.Hour))
					switch index := hasher.Index(r.Key); {
					case index == 1 && held < large:
						r.Value = make([]byte, dbadapter.MaxValue)
						full.put(r)
						if held++; older && held == 1 {
							other.put(record(string(r.Key), "old", at(0)))
						}
					case index != 1 && !elsewhere:
						elsewhere = true
						full.put(r)
						other.put(r)
					}
				}
				a, b := full, other
				if caller == "the other side" {
					a, b = other, full
				}
				out := run(t, a, b, Options{}, nil)
				if out.errA != nil || out.errB != nil || !out.a.Verified || !out.b.Verified {
					t.Errorf("%v, %v", out.errA, out.errB)
				}
				wantEqual(t, a, b)
			})
		}
	}
}

// What comes out of cells that do not suffice yet is the share of the differences that
// the last aim is corrected by.
func TestComeOut(t *testing.T) {
	const differences, decodes = 1000, 60
	rng := seeded(t, 16)
	for _, cells := range []int{850, 900, 1000} {
		share := 0.0
		for range decodes {
			d := partly(t, rng, differences, cells)
			share += float64(d.Found()) / differences / decodes
		}
		want := comeOut * math.Exp(comeOutSlope*(float64(cells)/differences-1))
		t.Logf("%d cells: %.4f of %d differences came out, want %.4f", cells, share, differences, want)
		if share < 0.75*want || share > 1.3*want {
			t.Errorf("%d cells: %.4f of the differences came out, want %.4f", cells, share, want)
		}
	}
	for _, c := range []struct {
		have, found int
		want        float64 // of an estimate of 1,000
	}{{1000, 102, 1000}, {1000, 0, 1000}, {600, 102, 1000}, {1200, 500, 1000}, {1000, 1000, 860.7}, {900, 1, 1161.8}} {
		if got := corrected(1000, c.have, c.found); math.Abs(got-c.want) > 1 {
			t.Errorf("%d of 1,000 out of %d cells: corrected to %.1f, want %.1f", c.found, c.have, got, c.want)
		}
	}
}

// partly has decoded differences from too few cells.
func partly(t *testing.T, rng *rand.Rand, differences, cells int) *rateless.Decoder {
	t.Helper()
	theirs, ours := missingAll(rng, differences, cells)
	d := rateless.NewDecoder(ours, holdsNothing)
	if err := d.AddCells(theirs); err != nil {
		t.Fatal(err)
	}
	return d
}

// missingAll are the cells of a set of random pairs, under a random key, and the sketch
// of an empty one.
func missingAll(rng *rand.Rand, pairs, cells int) (theirs []rateless.Cell, ours *rateless.Sketch) {
	var key rateless.Key
	for i := range key {
		key[i] = byte(rng.Uint32())
	}
	s := rateless.NewSketch(key, cells)
	for range pairs {
		k := rateless.Index(1 + rng.Uint64N(keyhash.P-1))
		s.Add(rateless.Pair{Index: k, Checksum: rateless.Seal(k, rng.Uint64N(1<<34))})
	}
	return s.Prefix(cells), rateless.NewSketch(key, cells)
}

func holdsNothing(_ []rateless.Index, sums []rateless.Checksum) error {
	clear(sums)
	return nil
}

// Two contents of one checksum in a range that is too full to be listed stay there, and
// the syncs say so and move everything else; a sync by the method all makes them equal.
func TestRangeTooFullToBeListed(t *testing.T) {
	h := coarse{dbadapter.NewHasher(testSecret)}
	a, b := newSide(t, "a", h), newSide(t, "b", h)
	a.put(record("k", "one", at(0)))
	b.put(record("k", "two", at(time.Second)))
	index := h.Index([]byte("k"))
	open := func(s *side) Replica {
		r, _ := openSpoilt(s, wire.Span{}, func(s *spoilt) {
			s.ranges.Add(index, dbadapter.Sum{Records: maxMarks}) // as if it held so many beside
		})
		return r
	}
	for round := range 3 {
		a.put(record(fmt.Sprint("of a ", round), "", at(0)))
		b.put(record(fmt.Sprint("of b ", round), "", at(0)))
		out := between(t, a, b, open(a), open(b), Options{}, nil)
		if !errors.Is(out.errA, ErrNotVerified) || !errors.Is(out.errB, ErrNotVerified) || out.a.Repair.Left != 1 {
			t.Fatalf("%v, %v, %+v", out.errA, out.errB, out.a.Repair)
		}
		if !strings.Contains(out.errA.Error(), "sync once by the method all") {
			t.Errorf("it says %q", out.errA)
		}
		if na, nb := len(a.dump()), len(b.dump()); na != 3+2*round || nb != na {
			t.Errorf("round %d: %d and %d records", round, na, nb)
		}
	}
	if out := run(t, a, b, Options{Method: wire.MethodAll}, nil); out.errA != nil || out.errB != nil {
		t.Errorf("by the method all: %v, %v", out.errA, out.errB)
	}
	wantEqual(t, a, b)
}
