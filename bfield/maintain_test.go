package bfield

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// TestBackground: an insertion is repaired within the delay, many at once, and
// after Close no goroutine is left.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := shapes["four bits"] // one key in four is indeterminate
		c.Keys = 4000
		log := &listLog{}
		m := open(t, c, log, time.Minute)
		for i := range uint64(200) {
			if err := m.Insert(keyed.Number(i), i); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := m.Stats(); s.Repaired || s.Fresh != 200 {
			t.Errorf("before the delay: %+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := m.Stats(); !s.Repaired || s.Fresh != 0 {
			t.Errorf("after the delay: %+v", s)
		}
		// A sixteenth of the keys planned does not wait.
		for i := range uint64(300) {
			if err := m.Insert(keyed.Number(1000+i), i); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := m.Stats(); s.Fresh > 250 {
			t.Errorf("after many insertions: %+v", s)
		}
		// A damaged log: the background says so at Close, and look-ups go on.
		log.mu.Lock()
		log.damaged = errors.New("a bad sector")
		log.mu.Unlock()
		if err := m.Insert(keyed.Number(5000), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if _, a := m.Lookup(keyed.Number(5000)); a == Absent {
			t.Error("an inserted key is absent")
		}
		if err := m.Close(); !errors.Is(err, log.damaged) {
			t.Errorf("closing after a scan that failed: %v", err)
		}
		if err := m.Insert(keyed.Number(1), 1); !errors.Is(err, ErrClosed) {
			t.Errorf("inserting after Close: %v", err)
		}
		if err := m.Close(); !errors.Is(err, log.damaged) {
			t.Errorf("closing twice: %v", err)
		}
	})
}

// TestTrickle: two insertions a second in a field whose log takes a second to scan.
// Scans take a sixteenth of the time, and an insertion after a rest waits for the
// delay alone.
func TestTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := shapes["four bits"], &listLog{}
		c.Keys = 1 << 20
		var scans atomic.Int64
		log.reading = func(i int) {
			if i == 0 {
				scans.Add(1)
				time.Sleep(time.Second)
			}
		}
		m := open(t, c, log, time.Second)
		insert := func(k uint64) {
			if err := m.Insert(keyed.Number(k), k%1001); err != nil {
				t.Fatal(err)
			}
		}
		const seconds = 1600
		for k := range uint64(2 * seconds) {
			insert(k)
			time.Sleep(time.Second / 2)
		}
		if n := scans.Load(); n > seconds/16 || n < seconds/20 {
			t.Errorf("%d scans of a second each in %d seconds", n, seconds)
		}
		time.Sleep(time.Minute)
		insert(1 << 40)
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if s := m.Stats(); !s.Repaired {
			t.Errorf("an insertion after a rest, and a delay and a scan later: %+v", s)
		}
	})
}

// TestConcurrent has writers, readers and the background at once: a key whose
// insertion has returned is never Absent.
func TestConcurrent(t *testing.T) {
	c := shapes["two bits"]
	c.Keys = 2000 // it grows
	m := open(t, c, &listLog{}, time.Nanosecond)
	const n = 12_000
	var written atomic.Uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range uint64(n) {
			if err := m.Insert(keyed.Number(i), i%256); err != nil {
				t.Error(err)
				return
			}
			if i%10 == 0 {
				if err := m.Change(keyed.Number(i), (i+1)%256); err != nil {
					t.Error(err)
					return
				}
			}
			if i%1000 == 999 {
				if err := m.Repair(); err != nil {
					t.Error(err)
					return
				}
			}
			written.Store(i + 1)
		}
	})
	for range 2 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, 1))
			for written.Load() < n && !t.Failed() {
				end := written.Load()
				if end == 0 {
					continue
				}
				k := random.Uint64N(end)
				v, a := m.Lookup(keyed.Number(k))
				if a == Absent {
					t.Errorf("key %d answers %d, %v", k, v, a)
				}
			}
		})
	}
	wg.Wait()
	if err := m.Repair(); err != nil {
		t.Fatal(err)
	}
	for k := range uint64(n) {
		want := k % 256
		if k%10 == 0 {
			want = (k + 1) % 256
		}
		if v, a := m.Lookup(keyed.Number(k)); a != Found || v != want {
			t.Fatalf("key %d answers %d, %v; its value is %d", k, v, a, want)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestWhileMaintaining writes in the middle of the scans of a repair and of a
// rebuild: nothing of it may be lost, and nothing taken for repaired that is not.
func TestWhileMaintaining(t *testing.T) {
	c := shapes["four bits"] // one key in four is indeterminate
	c.Keys = 4000
	for _, rebuild := range []bool{false, true} {
		log := &listLog{}
		m := open(t, c, log, -1)
		twin := map[uint64]uint64{}
		note := func(err error, k, v uint64) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			twin[k] = v
		}
		for k := range uint64(2000) {
			note(m.Insert(keyed.Number(k), k%1001), k, k%1001)
		}
		// Key 5 has two values before the scan, and a third one in the middle.
		note(m.Insert(keyed.Number(5), 55), 5, 55)
		if rebuild {
			note(m.Change(keyed.Number(6), 66), 6, 66)
		}
		once := false
		log.reading = func(i int) {
			if i != 1000 || once {
				return
			}
			once = true
			for k := uint64(10_000); k < 11_000; k++ {
				note(m.Insert(keyed.Number(k), k%1001), k, k%1001)
			}
			note(m.Insert(keyed.Number(5), 555), 5, 555)
			note(m.Change(keyed.Number(7), 77), 7, 77)
			if err := m.Remove(keyed.Number(8)); err != nil {
				t.Fatal(err)
			}
			delete(twin, 8)
		}
		var err error
		if rebuild {
			err = m.rebuild(true)
		} else {
			err = m.repair()
		}
		log.reading = nil
		if err != nil || !once {
			t.Fatal(err, once)
		}
		if s := m.Stats(); s.Repaired || s.Fresh < 1000 || s.Fresh > 1001 {
			t.Errorf("1000 keys inserted during the scan: %+v", s)
		}
		for k, want := range twin {
			if v, a := m.Lookup(keyed.Number(k)); a == Absent || (k == 5 && !rebuild || k == 7) && (a != Found || v != want) {
				t.Errorf("rebuild %v: key %d answers %d, %v; its value is %d", rebuild, k, v, a, want)
			}
		}
		if _, a := m.Lookup(keyed.Number(8)); a != Absent {
			t.Errorf("a key removed during the scan is %v", a)
		}
		for range 2 { // the second one is of no use, and does no harm
			if err := m.Repair(); err != nil {
				t.Fatal(err)
			}
		}
		for k, want := range twin {
			if v, a := m.Lookup(keyed.Number(k)); a != Found || v != want {
				t.Errorf("rebuild %v: after repair key %d answers %d, %v; its value is %d", rebuild, k, v, a, want)
			}
		}
	}
}

// busyLog is a Log whose Len takes as long as an append's fsync.
type busyLog struct {
	*listLog
	asked, done chan struct{}
}

func (l *busyLog) Len() uint64 {
	if l.asked != nil {
		close(l.asked)
		<-l.done
	}
	return l.listLog.Len()
}

// Stats that wait for the log keep no look-up waiting.
func TestStatsWaitForTheLogAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &busyLog{listLog: &listLog{}}
		m := open(t, shapes["two bits"], log, -1)
		log.asked, log.done = make(chan struct{}), make(chan struct{})
		go m.Stats()
		<-log.asked
		// A writer that waits for this lock keeps look-ups waiting.
		if !m.mu.TryLock() {
			t.Error("Stats holds the lock of look-ups while it waits for the log")
		} else {
			m.mu.Unlock()
		}
		close(log.done)
		synctest.Wait()
	})
}
