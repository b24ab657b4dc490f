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
				if _, err := d.api.Import(t.Context(), namespace, lines.Bytes(), 1); err != nil {
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

	w := startPuts(t, d, 10, 100)
	before := w.settle(t, time.Second)
	w.forget()
	full, took := backUp()
	during := w.latencies()
	after := w.settle(t, 0)
	w.stop(t)
	t.Logf("%d records: whole backup %.1f MB in %v; %d puts meanwhile (%.0f/s), median %v, 99th %v, slowest %v", n,
		float64(full.Bytes)/1e6, took.Round(time.Millisecond), len(during), float64(len(during))/took.Seconds(), quantile(during, 0.5), quantile(during, 0.99), quantile(during, 1))
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

// startPuts starts so many writers with so many puts a second each.
func startPuts(t *testing.T, d *daemon, writers, rate int) *puts {
	ctx, cancel := context.WithCancel(t.Context())
	p := &puts{cancel: cancel, acked: make([]int, writers)}
	for w := range writers {
		p.all.Go(func() {
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				begun := time.Now()
				_, err := d.api.Put(t.Context(), namespace, fmt.Appendf(nil, "writer %d %07d", w, i), strings.NewReader("v"), 0, client.Condition{})
				p.mu.Lock()
				p.acked[w], p.took, p.err = i+1, append(p.took, time.Since(begun)), err
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

func (p *puts) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = nil
}

func (p *puts) latencies() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(slices.Values(p.took))
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
