//go:build linux

package systemtest

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

var (
	largeRecords  = flag.Int("large-records", sizeOr(70_000), "how many records differ in TestLargeCut/mismatched; half as many, or 70,000, in the others")
	largeCuts     = flag.Int("large-cuts", largeOr(10, 2), "how often TestLargeCut cuts a sync")
	largeBaseline = flag.Int("large-baseline", largeOr(70_000, 7_000), "of how many records an uncut sync tells what a record costs in TestLargeCut")
	largeSeed     = flag.Uint64("large-seed", 1, "when TestLargeCut kills which side")
)

// largeSize, in the environment, is the size of TestLargeCut/mismatched; there are ten cuts
// then. 2000000 is that of docs/PERFORMANCE.md.
const largeSize = "LARGE_RECORDS"

func sizeOr(small int) int {
	if n, err := strconv.Atoi(os.Getenv(largeSize)); err == nil && n > 0 {
		return n
	}
	return small
}

func largeOr(large, small int) int {
	if os.Getenv(largeSize) != "" {
		return large
	}
	return small
}

// large is a shape of two sets that differ much.
type large struct {
	name string
	// load fills the two sets, of which n records differ.
	load func(a, b *daemon, n int)
	size int // n
	come int // how many of them come to a
	// bytes is how much more than an uncut sync the one that is cut may take in all; 0:
	// it is logged only, since each part that is on its way begins again.
	bytes float64
}

// larges are the shapes. Of those that are mismatched each side has the later half.
func larges() []large {
	n := *largeRecords
	half := max(n/2, min(n, 70_000))
	return []large{
		{"mismatched", func(a, b *daemon, n int) {
			fill(a, n/2, n, 'a')
			fill(b, 0, n, 'b')
			fill(a, 0, n/2, 'a')
		}, n, n - n/2, 0},
		{"missing", func(a, b *daemon, n int) { fill(a, n, n+1000, 'b'); fill(b, 0, n, 'b') }, half, half, 0},
		{"empty", func(_, b *daemon, n int) { fill(b, 0, n, 'b') }, half, half, 1.1},
	}
}

// TestLargeCut kills either daemon with kill -9 at random moments of a sync that is too
// large for one stream of cells, or that fills an empty node: each attempt gets further, and
// at the end both hold the same. It logs the figures of docs/PERFORMANCE.md.
func TestLargeCut(t *testing.T) {
	for _, l := range larges() {
		t.Run(l.name, func(t *testing.T) { cutLarge(t, l) })
	}
}

func cutLarge(t *testing.T, l large) {
	t.Logf("seed %d", *largeSeed)
	each := l.uncut(t, min(*largeBaseline, l.size))
	rng := rand.New(rand.NewPCG(*largeSeed, 0))
	a, b := l.pair(t, l.size)

	var u [2]usage
	note := func(begun time.Time) {
		for i, d := range []*daemon{a, b} {
			u[i].end(t, d, time.Since(begun))
		}
	}
	var moved float64
	batches, held := l.come/applied, l.equal(a, b)
	for cut := range *largeCuts {
		victim, other := a, b
		if rng.IntN(2) == 1 {
			victim, other = b, a
		}
		left := 2 + batches/50
		left += rng.IntN(1 + max(0, batches*8/10 / *largeCuts - left))
		before := other.wireBytes()
		u[0].start(t, a)
		u[1].start(t, b)
		begun := time.Now()
		applied := a.log.reach("apply")
		ended := begin(a, b)
		for ; left > 0; left-- { // batches that are committed
			select {
			case err := <-ended:
				t.Fatalf("sync %d was over before it was cut: %v", cut, err)
			case <-applied:
				applied = a.log.reach("apply")
			case <-time.After(patience):
				t.Fatalf("sync %d: nothing was applied in %v", cut, patience)
			}
		}
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond)))) // anywhere in a batch
		note(begun)
		took := time.Since(begun)
		victim.kill()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("%s was killed; the sync did not end in %v", victim.name, patience)
		}
		other.rested()
		bytes := other.wireBytes() - before
		moved += bytes
		victim.restart()
		now := l.equal(a, b)
		t.Logf("cut %d, of %s after %v and %.1f MB: %d of %d sampled records are equal", cut, victim.name, took.Round(time.Millisecond), bytes/1e6, now, samples)
		if now <= held {
			t.Errorf("cut %d: %d of %d sampled records, after %d", cut, now, samples, held)
		}
		held = now
	}
	u[0].start(t, a)
	u[1].start(t, b)
	begun, before := time.Now(), a.wireBytes()
	report, err := a.sync(b)
	if err != nil || !report.Verified {
		t.Fatalf("the last sync: %v, report %+v", err, report)
	}
	note(begun)
	moved += a.wireBytes() - before
	t.Logf("the last sync: %s, %d parts, %d records in %v", report.Method, report.Parts, report.Applied, time.Since(begun).Round(time.Millisecond))
	for i, d := range []*daemon{a, b} {
		t.Logf("%s: %s", d.name, &u[i])
	}
	more := moved / (each * float64(l.size))
	t.Logf("%.1f MB in all, %.3f times what one sync takes, %.0f bytes a record", moved/1e6, more, moved/float64(l.size))
	// Of few records a break costs too large a share.
	if l.bytes > 0 && l.size >= 1_000_000 && more > l.bytes {
		t.Errorf("the cut syncs took %.3f times the bytes of one; at most %.3f", more, l.bytes)
	}
	agree(t, a, b)
}

// pair is two daemons with the sets.
func (l *large) pair(t *testing.T, n int) (a, b *daemon) {
	t.Helper()
	a, b = newDaemon(t, "a", t.TempDir()), newDaemon(t, "b", t.TempDir())
	joinUnsigned(a, b)
	l.load(a, b, n)
	return a, b
}

// uncut is how many bytes travel for each of n records in a sync that is not cut.
func (l *large) uncut(t *testing.T, n int) float64 {
	t.Helper()
	a, b := l.pair(t, n)
	defer a.kill()
	defer b.kill()
	before := a.wireBytes()
	if report, err := a.sync(b); err != nil || !report.Verified {
		t.Fatalf("a sync of %d records: %v, report %+v", n, err, report)
	}
	return (a.wireBytes() - before) / float64(n)
}

// applied is about how many records a daemon commits at once.
const applied = 2048

// samples is how many keys tell how far a sync has come.
const samples = 1000

// equal is how many of the sampled records both daemons hold alike.
func (l *large) equal(a, b *daemon) (n int) {
	a.t.Helper()
	for i := range samples {
		key := keyOf(i * l.size / samples)
		left, err := a.api.Get(a.t.Context(), namespace, key, client.GetOptions{})
		if err != nil {
			continue
		}
		if right, err := b.api.Get(a.t.Context(), namespace, key, client.GetOptions{}); err == nil && bytes.Equal(left.Bytes, right.Bytes) {
			n++
		}
	}
	return n
}

func keyOf(i int) []byte { return fmt.Appendf(nil, "key %08d", i) }

// fill imports the records from one number to another, whose values are that byte.
func fill(d *daemon, from, to int, value byte) {
	d.t.Helper()
	var lines bytes.Buffer
	for i := from; i < to; i++ {
		fmt.Fprintf(&lines, `{"key":"%s","value":"%s"}`+"\n", keyOf(i), strings.Repeat(string(value), 64))
		if lines.Len() > 1<<20 || i == to-1 {
			if _, err := d.api.Import(d.t.Context(), namespace, lines.Bytes(), client.ImportOptions{}); err != nil {
				d.t.Fatal(err)
			}
			lines.Reset()
		}
	}
}
