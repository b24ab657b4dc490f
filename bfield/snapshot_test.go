package bfield

import (
	"testing"
	"testing/synctest"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// A snapshot holds what was written before the call; keys that are written while
// it reads the log do not wait for it.
func TestWritesGoOnDuringASnapshot(t *testing.T) {
	c, log := shapes["two bits"], &listLog{}
	c.Keys = 1000
	m := open(t, c, log, -1)
	want := map[uint64]uint64{}
	for k := range uint64(500) {
		if err := m.Insert(keyed.Number(k), k%256); err != nil {
			t.Fatal(err)
		}
		want[k] = k % 256
	}
	for _, change := range []func(){
		func() {},
		func() { // a key that was inserted with two values
			if err := m.Insert(keyed.Number(7), 9); err != nil {
				t.Fatal(err)
			}
			want[7] = 9
		},
		func() {
			if err := m.ChangeBatch(keyed.Numbers([]uint64{1, 2}), []uint64{100, 101}); err != nil {
				t.Fatal(err)
			}
			if err := m.RemoveBatch(keyed.Numbers([]uint64{3, 4})); err != nil {
				t.Fatal(err)
			}
			want[1], want[2] = 100, 101
			delete(want, 3)
			delete(want, 4)
		},
	} {
		change()
		writes := uint64(0)
		log.reading = func(int) {
			if !m.writing.TryLock() {
				t.Error("a snapshot that reads the log holds up what is written")
				return
			}
			m.writing.Unlock()
			if writes < 50 {
				writes++
				if err := m.Insert(keyed.Number(1_000_000+writes), 1); err != nil {
					t.Error(err)
				}
			}
		}
		f, err := m.Snapshot()
		log.reading = nil
		if err != nil || writes == 0 || !f.Stats().Repaired {
			t.Fatal(writes, err)
		}
		for k, v := range want {
			if got, a := f.Lookup(keyed.Number(k)); got != v || a != Found {
				t.Fatalf("key %d answers %d, %v in the snapshot; its value is %d", k, got, a, v)
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
