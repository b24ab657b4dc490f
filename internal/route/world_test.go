package route

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

// The hosts of the tests, and their clock. What a host does is drawn from a seed, which a
// failure prints.

var errHost = errors.New("the host has failed")

// event is something that happens at a time.
type event struct {
	at time.Duration
	do func()
}

// world is a clock, and what is to happen.
type world struct {
	now    time.Duration
	events []event
}

func (w *world) after(d time.Duration, do func()) { w.events = append(w.events, event{w.now + d, do}) }

// next goes on to the first event until a time, and reports whether there was one.
func (w *world) next(until time.Duration) bool {
	first := -1
	for i, e := range w.events {
		if e.at <= until && (first < 0 || e.at < w.events[first].at) {
			first = i
		}
	}
	if first < 0 {
		w.now = max(w.now, until)
		return false
	}
	e := w.events[first]
	w.events = slices.Delete(w.events, first, first+1)
	w.now = max(w.now, e.at)
	e.do()
	return true
}

func peerID(n int) ID { return ID(fmt.Sprint("peer", n)) }

// version is a record of a key, by its number; 0: none.
func version(n int) *dbadapter.Record {
	if n == 0 {
		return nil
	}
	return &dbadapter.Record{Key: []byte("k"), Version: dbadapter.Version{Clock: dbadapter.Timestamp(n)}}
}

func number(r *dbadapter.Record) int {
	if r == nil {
		return 0
	}
	return int(r.Version.Clock)
}

// delay is mostly short, sometimes long, and rarely without end.
func delay(r *rand.Rand) time.Duration {
	switch r.IntN(10) {
	case 0:
		return time.Hour
	case 1, 2:
		return time.Duration(r.IntN(3000)) * time.Millisecond
	}
	return time.Duration(1+r.IntN(20)) * time.Millisecond
}

// each runs a test for many seeds, up to the first one that fails, and names that.
func each(t *testing.T, seeds int, run func(t *testing.T, r *rand.Rand)) {
	t.Helper()
	for seed := range seeds {
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			run(t, rand.New(rand.NewPCG(uint64(seed), 13)))
		}()
		if t.Failed() {
			return
		}
	}
}
