package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
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
