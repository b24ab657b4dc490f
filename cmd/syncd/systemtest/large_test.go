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

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

var (
	largeRecords = flag.Int("large-records", 70_000, "how many records differ in TestLargeCut")
	largeCuts    = flag.Int("large-cuts", 2, "how often TestLargeCut cuts a sync")
	largeShare   = flag.Int("large-share", 30, "at most how many percent of the records come between two cuts of TestLargeCut")
	largeSeed    = flag.Uint64("large-seed", 1, "when TestLargeCut kills which side")
)

// TestLargeCut kills either daemon with kill -9 at random moments of a sync that is too
// large for one stream of cells, or that fills an empty node: each attempt gets further, and
// at the end both hold the same. It logs the figures of docs/PERFORMANCE.md.
func TestLargeCut(t *testing.T) {
	for name, load := range map[string]func(a, b *daemon, n int){
		"mismatched": func(a, b *daemon, n int) { fill(a, n, 'a'); fill(b, n, 'b') },
		"missing":    func(a, b *daemon, n int) { fill(a, 1000, 'b'); fill(b, n, 'b') },
		"empty":      func(_, b *daemon, n int) { fill(b, n, 'b') },
	} {
		t.Run(name, func(t *testing.T) { cutLarge(t, load) })
	}
}

func cutLarge(t *testing.T, load func(a, b *daemon, n int)) {
	t.Logf("seed %d", *largeSeed)
	rng := rand.New(rand.NewPCG(*largeSeed, 0))
	a, b := newDaemon(t, "a", t.TempDir()), newDaemon(t, "b", t.TempDir())
	joinUnsigned(a, b)
	load(a, b, *largeRecords)

	var u [2]usage
	note := func(begun time.Time) {
		for i, d := range []*daemon{a, b} {
			u[i].add(t, d.process.Process.Pid)
			u[i].wall += time.Since(begun)
		}
	}
	u[0].start(t, a.process.Process.Pid)
	u[1].start(t, b.process.Process.Pid)
	batches := *largeRecords / 2048
	held := reached(t, a)
	for cut := range *largeCuts {
		victim := []*daemon{a, b}[rng.IntN(2)]
		begun := time.Now()
		applied := a.log.reach("apply")
		ended := begin(a, b)
		for left := 2 + rng.IntN(1+batches**largeShare/100); left > 0; left-- { // batches that are committed
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
		victim.kill()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("%s was killed; the sync did not end in %v", victim.name, patience)
		}
		victim.restart()
		u[0].start(t, a.process.Process.Pid)
		u[1].start(t, b.process.Process.Pid)
		now := reached(t, a)
		t.Logf("cut %d, of %s after %v: %d of %d sampled records have come", cut, victim.name, time.Since(begun).Round(time.Millisecond), now, samples)
		if now <= held && *largeRecords/samples < 2048 {
			t.Errorf("cut %d: %d of %d sampled records, after %d", cut, now, samples, held)
		}
		held = now
	}
	begun := time.Now()
	report, err := a.sync(b)
	if err != nil || !report.Verified {
		t.Fatalf("the last sync: %v, report %+v", err, report)
	}
	note(begun)
	t.Logf("the last sync: %s, %d parts, %d records in %v", report.Method, report.Parts, report.Applied, time.Since(begun).Round(time.Millisecond))
	for i, d := range []*daemon{a, b} {
		t.Logf("%s: at most %d MiB resident, %.0f %% of a core, %d bytes written by its process", d.name, u[i].peak>>20, 100*u[i].cpu.Seconds()/u[i].wall.Seconds(), u[i].written)
	}
	agree(t, a, b)
}

// fill imports n records whose values are that byte.
func fill(d *daemon, n int, value byte) {
	d.t.Helper()
	var lines bytes.Buffer
	for i := range n {
		fmt.Fprintf(&lines, `{"key":"key %08d","value":"%s"}`+"\n", i, strings.Repeat(string(value), 64))
		if i%10_000 == 9999 || i == n-1 {
			if _, err := d.api.Import(d.t.Context(), namespace, lines.Bytes(), 1); err != nil {
				d.t.Fatal(err)
			}
			lines.Reset()
		}
	}
}

// samples is how many keys tell how far a sync has come.
const samples = 400

// reached is how many of the sampled records a daemon holds as the other has them.
func reached(t *testing.T, d *daemon) (n int) {
	t.Helper()
	for i := range samples {
		key := fmt.Sprintf("key %08d", i**largeRecords/samples)
		if r, err := d.api.Get(t.Context(), namespace, []byte(key)); err == nil && bytes.HasPrefix(r.Bytes, []byte("b")) {
			n++
		}
	}
	return n
}

// usage is what a daemon's processes have taken, one after the other.
type usage struct {
	peak, written, before int64
	cpu, burnt            time.Duration
	wall                  time.Duration
}

func (u *usage) start(t *testing.T, pid int) {
	t.Helper()
	u.burnt, u.before, _ = taken(t, pid)
}

func (u *usage) add(t *testing.T, pid int) {
	t.Helper()
	cpu, written, peak := taken(t, pid)
	u.cpu += cpu - u.burnt
	u.written += written - u.before
	u.peak = max(u.peak, peak)
}

// taken is the processor time of a process, the bytes that it has written to files and
// sockets, and its greatest resident size.
func taken(t *testing.T, pid int) (cpu time.Duration, written, peak int64) {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	number := func(text, name string) int64 {
		_, rest, _ := strings.Cut(text, name+":")
		n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	stat := read("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")"):])
	for _, ticks := range fields[12:14] {
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		cpu += time.Duration(n) * 10 * time.Millisecond
	}
	return cpu, number(read("io"), "wchar"), number(read("status"), "VmHWM") << 10
}

// joinUnsigned is join, of a namespace without signatures.
func joinUnsigned(a, b *daemon) {
	a.t.Helper()
	if _, err := a.api.CreateNamespace(a.t.Context(), api.NewNamespace{Name: namespace, Unsigned: true}); err != nil {
		a.t.Fatal(err)
	}
	ticket, err := a.api.Invite(a.t.Context(), api.Invitation{NS: namespace, Role: "write"})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := b.api.Join(a.t.Context(), ticket); err != nil {
		a.t.Fatal(err)
	}
}
