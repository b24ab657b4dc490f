//go:build linux

package systemtest

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

var (
	floodPuts  = flag.Int("flood-puts", 1000, "how many puts a daemon is given in each turn of TestFlood, as fast as it takes them")
	floodTurns = flag.Int("flood-turns", 1, "how many turns there are in TestFlood with pushes, and as many without")
)

// TestFlood gives a daemon puts as fast as it takes them, from 64 writers, in turns with
// pushes and without. One of its two members takes no more than 1 MiB in a second. It
// measures what pushes cost the writers, and the memory of all; all hold the same in the
// end.
func TestFlood(t *testing.T) {
	a := newDaemonEvery(t, "writer", t.TempDir(), liveInterval)
	b := newDaemonEvery(t, "receiver", t.TempDir(), liveInterval)
	slow := newDaemonEvery(t, "slow receiver", t.TempDir(), liveInterval, "--limit-receive", "1MiB")
	join(a, b)
	invited(a, slow)
	all := []*daemon{a, b, slow}
	var rates [2][]float64
	var peaks [2]int64
	for n := range 2 * *floodTurns {
		push := n % 2
		a.stop()
		a.flags = []string{[]string{"--no-push", "--push"}[push]}
		a.restart()
		for _, d := range all[1:] { // it is connected then
			if _, err := a.sync(d); err != nil {
				t.Fatalf("with %s: %v", d.name, err)
			}
		}
		rates[push] = append(rates[push], flood(a, n, *floodPuts))
		untilWithin(t, patience+time.Duration(*floodPuts)*5*time.Millisecond, "all are equal", func() bool {
			if push == 0 { // they hear of it at the next interval
				for _, d := range all[1:] {
					_, _ = a.sync(d)
				}
			}
			export := a.digest()
			return b.digest() == export && slow.digest() == export
		}, all...)
		peaks[push] = max(peaks[push], taken(t, a.process.Process.Pid).peak>>20)
	}
	for _, r := range rates {
		slices.Sort(r)
	}
	off, on := rates[0][*floodTurns/2], rates[1][*floodTurns/2]
	t.Logf("%d puts a turn: %.0f a second without pushes, %.0f with, medians of %d: %.2f", *floodPuts, off, on, *floodTurns, on/off)
	t.Logf("most resident: the writer %d MiB without pushes, %d MiB with; the receiver %d, the slow one %d",
		peaks[0], peaks[1], taken(t, b.process.Process.Pid).peak>>20, taken(t, slow.process.Process.Pid).peak>>20)
	export := a.export()
	for _, d := range all[1:] {
		if d.export() != export {
			t.Errorf("%s holds other records", d.name)
		}
	}
}

// flood puts records from 64 writers, and returns how many a second.
func flood(d *daemon, turn, puts int) float64 {
	const writers = 64
	began := time.Now()
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := w; i < puts; i += writers {
				key, value := fmt.Appendf(nil, "turn %d/%d", turn, i), fmt.Sprintf("%0*d", liveValueSize, i)
				if _, err := d.api.Put(d.t.Context(), namespace, key, strings.NewReader(value), client.PutOptions{}, client.Condition{}); err != nil {
					d.t.Errorf("%s: %v", d.name, err)
					return
				}
			}
		})
	}
	running.Wait()
	return float64(puts) / time.Since(began).Seconds()
}

// digest is that of what the daemon holds.
func (d *daemon) digest() string {
	d.t.Helper()
	status, err := d.api.NamespaceStatus(d.t.Context(), namespace)
	if err != nil {
		d.t.Fatal(err)
	}
	return status.Digest
}
