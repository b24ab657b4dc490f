package bfield

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/bfield/keyed"
)

// TestFailingRepairRests: the log cannot be scanned, and so many keys are inserted that a
// repair is urgent all the time. It is tried once a delay, not at each insertion; and the
// first one behind the fault's end repairs the field.
func TestFailingRepairRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := shapes["four bits"], &listLog{}
		c.Keys = 1 << 12
		var scans atomic.Int64
		bad := errors.New("a bad sector")
		log.scanning = func() error { scans.Add(1); return bad }
		m := open(t, c, log, time.Minute)
		for k := range uint64(2000) {
			if err := m.Insert(keyed.Number(k), k%1001); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := scans.Load(); n != 1 {
			t.Errorf("%d scans of a log that fails, in no time", n)
		}
		time.Sleep(10 * time.Minute)
		if n := scans.Load(); n < 9 || n > 12 {
			t.Errorf("%d scans in ten minutes, with a delay of one", n)
		}
		log.mu.Lock()
		log.scanning = nil
		log.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := m.Stats(); !s.Repaired {
			t.Errorf("after the fault: %+v", s)
		}
		if err := m.Close(); err != nil {
			t.Errorf("closing after the fault: %v", err)
		}
	})
}

// TestCloseTwice: each of two goroutines that close a Mutable finds its background ended.
func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &listLog{}
		var reading atomic.Int64
		log.scanning = func() error {
			reading.Add(1)
			time.Sleep(time.Hour)
			reading.Add(-1)
			return nil
		}
		m := open(t, shapes["four bits"], log, time.Second)
		for k := range uint64(600) { // more than one chunk: the scan is given up
			if err := m.Insert(keyed.Number(k), 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if reading.Load() == 0 {
			t.Fatal("no repair is under way")
		}
		for range 2 {
			go func() {
				if err := m.Close(); err != nil || reading.Load() != 0 {
					t.Errorf("closed: %v, with %d scans under way", err, reading.Load())
				}
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Hour)
	})
}
