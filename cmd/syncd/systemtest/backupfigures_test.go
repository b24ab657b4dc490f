//go:build linux

package systemtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/peer"
)

var backupRecords = flag.Int("backup-records", 20_000, "how many records TestBackupFigures backs up")

// TestBackupFigures backs up a daemon while some 1,000 puts a second arrive, then
// after 1 % of its records have changed, and restores both: the first is a prefix
// of what each writer wrote, the second is what the daemon held. It logs the
// figures of docs/PERFORMANCE.md.
func TestBackupFigures(t *testing.T) {
	n := *backupRecords
	d := newDaemon(t, "a", t.TempDir())
	if _, err := d.api.CreateNamespace(t.Context(), api.NewNamespace{Name: namespace}); err != nil {
		t.Fatal(err)
	}
	load := func(count int, key func(i int) int, value byte) {
		var lines bytes.Buffer
		for i := range count {
			fmt.Fprintf(&lines, `{"key":"key %07d","value":"%s"}`+"\n", key(i), strings.Repeat(string(value), 256))
			if i%4000 == 3999 || i == count-1 {
				if _, err := d.api.Import(t.Context(), namespace, lines.Bytes(), client.ImportOptions{}); err != nil {
					t.Fatal(err)
				}
				lines.Reset()
			}
		}
	}
	load(n, func(i int) int { return i }, 'a')
	to := filepath.Join(t.TempDir(), "backups")
	backUp := func() (api.Backup, time.Duration) {
		t.Helper()
		begun := time.Now()
		b, err := d.api.Backup(t.Context(), api.NewBackup{Dir: to}, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		return b, time.Since(begun)
	}

	const alone = 3 * time.Second
	w := startPuts(t, d, 10, 100)
	before := w.settle(t, alone)
	w.log(t, "alone", alone)
	full, took := backUp()
	w.log(t, "beside the backup", took)
	after := w.settle(t, 0)
	w.stop(t)
	t.Logf("%d records: whole backup %.1f MB in %v", n, float64(full.Bytes)/1e6, took.Round(time.Millisecond))
	if full.Base != 0 {
		t.Errorf("the first backup goes on from %d", full.Base)
	}

	backUp() // takes what was written since
	perm := rand.Perm(n)
	load(n/100, func(i int) int { return perm[i] }, 'b')
	some, took := backUp()
	ratio := float64(some.Bytes) / float64(full.Bytes)
	t.Logf("1 %% changed: increment %.2f MB in %v, %.2f %% of the whole one's bytes", float64(some.Bytes)/1e6, took.Round(time.Millisecond), 100*ratio)
	if some.Base != 2 || ratio > 0.03 {
		t.Errorf("the increment goes on from %d and has %.2f %% of the bytes", some.Base, 100*ratio)
	}
	want := d.export()
	d.kill()

	for _, generation := range []int{1, 3} {
		dir := filepath.Join(t.TempDir(), "restored")
		begun := time.Now()
		if _, err := peer.Restore(t.Context(), to, dir, peer.RestoreOptions{Generation: generation}); err != nil {
			t.Fatal(err)
		}
		t.Logf("backup %d restored, verified and opened in %v", generation, time.Since(begun).Round(time.Millisecond))
		r := newDaemon(t, "restored", dir)
		got := r.export()
		r.kill()
		if generation == 3 && got != want {
			t.Errorf("restored %d bytes of export, want %d", len(got), len(want))
		}
		if generation == 1 {
			w.check(t, got, before, after)
		}
	}
}

// puts are writers, each of which writes its keys in order.
type puts struct {
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	acked []int // by writer
	took  []time.Duration
	err   error
}

// startPuts starts so many writers with so many puts a second each. A put that ends
// late does not put off those that are due after it, and each one's time counts from
// when it was due: a load that waits for the daemon would hide what it does not bear.
func startPuts(t *testing.T, d *daemon, writers, rate int) *puts {
	ctx, cancel := context.WithCancel(t.Context())
	p := &puts{cancel: cancel, acked: make([]int, writers)}
	for w := range writers {
		p.all.Go(func() {
			due := time.Now()
			for i := 0; ; i++ {
				due = due.Add(time.Second / time.Duration(rate))
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Until(due)):
				}
				_, err := d.api.Put(t.Context(), namespace, fmt.Appendf(nil, "writer %d %07d", w, i), strings.NewReader("v"), client.PutOptions{}, client.Condition{})
				p.mu.Lock()
				p.acked[w], p.took, p.err = i+1, append(p.took, time.Since(due)), err
				p.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	return p
}

// settle lets the writers write for a while, and returns how far each has come.
func (p *puts) settle(t *testing.T, d time.Duration) []int {
	time.Sleep(d) // at a steady rate when the backup begins
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		t.Fatal(p.err)
	}
	return slices.Clone(p.acked)
}

// log says how many puts have ended since it was called last, and how late.
func (p *puts) log(t *testing.T, what string, in time.Duration) {
	p.mu.Lock()
	took := slices.Sorted(slices.Values(p.took))
	p.took = nil
	p.mu.Unlock()
	t.Logf("puts %s: %.0f/s, median %v, 99th %v, slowest %v", what,
		float64(len(took))/in.Seconds(), quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1))
}

func (p *puts) stop(t *testing.T) {
	p.cancel()
	p.all.Wait()
	if p.err != nil {
		t.Fatal(p.err)
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))].Round(time.Microsecond)
}

// check compares a backup with what the writers had acknowledged before it began
// and after it ended: it holds all of the former, a put in flight beyond the latter
// at most, and of each writer a prefix.
func (p *puts) check(t *testing.T, export string, before, after []int) {
	t.Helper()
	held := make([]int, len(before))
	for lines := bufio.NewScanner(strings.NewReader(export)); lines.Scan(); {
		var line struct{ Key string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		var w, i int
		if _, err := fmt.Sscanf(line.Key, "writer %d %d", &w, &i); err != nil {
			continue
		}
		if i != held[w] { // sorted by key
			t.Fatalf("of writer %d, put %d is there and put %d is not", w, i, held[w])
		}
		held[w]++
	}
	for w := range held {
		if held[w] < before[w] || held[w] > after[w]+1 {
			t.Errorf("of writer %d, %d puts are there; %d were acknowledged before the backup, %d after", w, held[w], before[w], after[w])
		}
	}
}
