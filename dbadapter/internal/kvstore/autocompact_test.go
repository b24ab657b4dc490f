package kvstore

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

func TestPulse(t *testing.T) {
	start := time.Unix(1_780_000_000, 0)
	var p pulse
	var commits int64
	second := 0
	// run lets time pass with so many commits a second and returns after how many
	// seconds the store is looked at, 0 if it is not.
	run := func(perSecond, seconds int) int {
		for i := 1; i <= seconds; i++ {
			second++
			commits += int64(perSecond)
			now := start.Add(time.Duration(second) * restTick)
			if p.due(now, commits) {
				commits += 70 // a compaction commits, too
				p.checked(now, commits)
				return i
			}
		}
		return 0
	}
	if at := run(0, 3600); at != 0 {
		t.Errorf("a store without a commit is looked at after %d s", at)
	}
	if at := run(100, 5); at != 0 {
		t.Errorf("a busy store is looked at after %d s", at)
	}
	if at := run(0, 60); at != 10 {
		t.Errorf("a store at rest is looked at after %d s", at)
	}
	if at := run(0, 3600); at != 0 {
		t.Errorf("a store that was looked at is looked at again after %d s", at)
	}
	run(1, 1)
	if at := run(1, 60); at > 10 || at == 0 {
		t.Errorf("a store with few commits is looked at after %d s", at)
	}
	if at := run(100, 3600); at != 600 {
		t.Errorf("a store that is never at rest is looked at after %d s", at)
	}
}

// overwrite writes all of so many records anew, 1,000 bytes each.
func overwrite(t testing.TB, n *namespace, records, round int) {
	t.Helper()
	for i := 0; i < records; {
		var batch []dbadapter.Write
		for ; i < records && len(batch) < 1000; i++ {
			w := write(fmt.Sprintf("key %08d", i), round*records+i)[0]
			w.Record.Value = bytes.Repeat([]byte{byte(round)}, 1000)
			w.Record = hashed(n.Hasher, w.Record.Record)
			batch = append(batch, w)
		}
		apply(t, n, batch)
	}
}

// ticked runs the rest of a store by a clock of the test's: ticks is what it is told, from
// now on, and stop ends it.
func ticked(t *testing.T, s *Store) (ticks chan<- time.Time, now time.Time, stop func()) {
	s.compactor.close()
	ctx, cancel := context.WithCancel(t.Context())
	c, done := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(done)
		s.compactor.loop(ctx, c)
	}()
	return c, time.Unix(1_780_000_000, 0), func() {
		cancel()
		<-done
	}
}

// TestRest: a store that is at rest after it was overwritten compacts itself, and one
// that has nothing stale does not.
func TestRest(t *testing.T) {
	const records = 30_000
	s, n := openTest(t, t.TempDir(), Options{}, nil)
	ticks, now, stop := ticked(t, s)
	pass := func() {
		for range 30 { // unbuffered: the work of the last but one is done
			now = now.Add(restTick)
			ticks <- now
		}
	}
	share := func() float64 {
		stale, size, err := s.db.Stale(t.Context(), commits{s})
		if err != nil {
			t.Fatal(err)
		}
		return float64(stale) / float64(size)
	}
	overwrite(t, n, records, 0)
	if share := share(); share > 0.02 {
		t.Errorf("%.2f of a fresh store is stale", share)
	}
	before := s.committer.transactions.Load()
	pass()
	if s.committer.transactions.Load() != before {
		t.Error("a fresh store is compacted")
	}
	for round := range 3 {
		overwrite(t, n, records, round+1)
	}
	if share := share(); share < 0.3 {
		t.Errorf("%.2f of a store that was overwritten is stale", share)
	}
	pass()
	if size, most := s.db.Size(), int64(records*1600); size > most {
		t.Errorf("at rest the store takes %d bytes, more than %d", size, most)
	}
	if share := share(); share > 0.05 {
		t.Errorf("%.2f of a compacted store is stale", share)
	}
	stop()
	v := snapshotOf(t, n)
	for _, err := range v.Scan(t.Context(), nil, nil) { // compares with the head's sum
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An engine that gives back memory at rest is told of it, once for each time that
// something was written.
func TestEngineIsToldOfRest(t *testing.T) {
	told := make(chan struct{}, 10)
	s, n := openHooked(t, &hooks{rest: func() { told <- struct{}{} }})
	ticks, now, stop := ticked(t, s)
	for round := range 2 {
		apply(t, n, write("k", round))
		for range 60 {
			now = now.Add(restTick)
			ticks <- now
		}
		if len(told) != round+1 {
			t.Errorf("it was told %d times after %d writes", len(told), round+1)
		}
	}
	stop()
}
