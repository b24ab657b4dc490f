//go:build linux

package systemtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/peer"
)

// writer writes to one daemon, again and again to keys of its own, and
// remembers what was acknowledged. While the daemon is down it goes on trying.
//
// It has several lanes, each with keys of its own. A lane makes one write after
// the other, so that of two numbers under a key the greater was written later:
// of two writes on their way at once the smaller number may well win.
type writer struct {
	d      *daemon
	prefix string
	again  bool // a write that says that the database is away is tried again

	mu           sync.Mutex     // guards what follows
	acknowledged map[string]int // the number last acknowledged, by key
	next         int            // no number is written twice
	total        int            // acknowledged writes
	more         chan struct{}  // closed and replaced with each acknowledgement
}

// laneKeys is how many keys a lane writes to, in turn.
const laneKeys = 1000

// Lanes: two for single records, one for batches.
var singles = []string{"left", "right"}

const batches = "batch"

func newWriter(d *daemon) *writer {
	return &writer{d: d, prefix: "by " + d.name + "/", acknowledged: map[string]int{}, more: make(chan struct{})}
}

// valueOf holds the number, and enough more that records fill frames.
func valueOf(n int) string { return fmt.Sprintf("%d %s", n, strings.Repeat("filling ", 60)) }

func numberOf(value string) (n int, err error) {
	if _, err = fmt.Sscan(value, &n); err == nil && value != valueOf(n) {
		err = fmt.Errorf("the value of number %d was written by no writer: %.40q", n, value)
	}
	return n, err
}

// take reserves count numbers.
func (w *writer) take(count int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next += count
	return w.next - count
}

func (w *writer) key(lane string, n int) string {
	return fmt.Sprintf("%s%s/%d", w.prefix, lane, n%laneKeys)
}

func (w *writer) note(lane string, first, count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := first; n < first+count; n++ {
		key := w.key(lane, n)
		w.acknowledged[key] = max(w.acknowledged[key], n)
	}
	w.total += count
	close(w.more)
	w.more = make(chan struct{})
}

// run writes single records of a lane until stop is closed. It does not cut a write off:
// the daemon would commit it all the same, at a time that the test cannot know.
func (w *writer) run(t *testing.T, lane string, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		n := w.take(1)
		_, err := w.d.api.Put(t.Context(), api.PutParams{RecordParams: api.Record(namespace, []byte(w.key(lane, n)))}, strings.NewReader(valueOf(n)))
		switch {
		case err == nil:
			w.note(lane, n, 1)
		case errors.Is(err, problem.ErrNoDaemon), w.again && errors.Is(err, peer.ErrAway):
			select {
			case <-stop:
			case <-time.After(5 * time.Millisecond):
			}
		default:
			t.Errorf("%s refused a write: %v", w.d.name, err)
			return
		}
	}
}

// batch imports count records at once, at most laneKeys.
func (w *writer) batch(t *testing.T, count int) {
	t.Helper()
	first := w.take(count)
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for n := first; n < first+count; n++ {
		if err := encoder.Encode(map[string]string{"key": w.key(batches, n), "value": valueOf(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.d.api.Import(t.Context(), api.ImportParams{NSParams: api.OfNS(namespace)}, lines.Bytes()); err != nil {
		t.Fatalf("%s: import: %v", w.d.name, err)
	}
	w.note(batches, first, count)
}

// wait returns once count more writes have been acknowledged.
func (w *writer) wait(t *testing.T, count int) {
	t.Helper()
	deadline := time.After(patience)
	w.mu.Lock()
	for goal := w.total + count; w.total < goal; {
		more := w.more
		w.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%s acknowledged less than %d writes in %v; its log ends with:\n%s", w.d.name, count, patience, w.d.log.tail())
		}
		w.mu.Lock()
	}
	w.mu.Unlock()
}

// acks is a copy of what was acknowledged up to now.
func (w *writer) acks() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.acknowledged)
}

// missing tells which of the acknowledged writes an export lacks: each key
// must hold the number acknowledged last, or one written after it.
func missing(t *testing.T, export string, acks map[string]int) (lost []string) {
	t.Helper()
	held := map[string]int{}
	for _, record := range recordsOf(t, export) {
		n, err := numberOf(record.Value)
		if err != nil {
			t.Fatalf("key %q: %v", record.Key, err)
		}
		held[record.Key] = n
	}
	for key, n := range acks {
		if got, ok := held[key]; !ok || got < n {
			lost = append(lost, fmt.Sprintf("%s: acknowledged %d, found %d (present: %v)", key, n, got, ok))
		}
	}
	return lost
}

// agreed waits until two daemons are equal, and returns what was acknowledged to the writers
// and is lost.
func agreed(t *testing.T, a, b *daemon, writers ...*writer) (lost []string) {
	t.Helper()
	agree(t, a, b)
	export := a.export()
	for _, w := range writers {
		lost = append(lost, missing(t, export, w.acks())...)
	}
	for _, l := range lost {
		t.Error(l)
	}
	return lost
}

// start runs the lanes of single records of each writer at once, until the
// returned function is called.
func start(t *testing.T, writers ...*writer) (stop func()) {
	t.Helper()
	var lanes []func(stop <-chan struct{})
	for _, w := range writers {
		for _, lane := range singles {
			lanes = append(lanes, func(stop <-chan struct{}) { w.run(t, lane, stop) })
		}
	}
	return beginAll(t, lanes...)
}

// beginAll runs all at once, until the returned function is called or the test ends.
func beginAll(t *testing.T, all ...func(stop <-chan struct{})) (stop func()) {
	ending := make(chan struct{})
	var running sync.WaitGroup
	for _, run := range all {
		running.Go(func() { run(ending) })
	}
	stop = sync.OnceFunc(func() {
		close(ending)
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}
