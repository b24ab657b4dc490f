package kvstore

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
)

func TestGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u underway
		waits := func(ctx context.Context) time.Duration {
			begun := time.Now()
			u.giveWay(ctx)
			return time.Since(begun)
		}
		if d := waits(t.Context()); d != 0 {
			t.Errorf("without a commit it waits for %v", d)
		}
		ended := u.begin()
		if d := waits(t.Context()); d != mostWait {
			t.Errorf("beside a commit without an end it waits for %v, want %v", d, mostWait)
		}
		later := u.begin()
		ended()
		time.AfterFunc(mostWait/4, later)
		if d := waits(t.Context()); d != mostWait/4 {
			t.Errorf("beside a commit that ends after %v it waits for %v", mostWait/4, d)
		}
		u.begin()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d := waits(ctx); d != 0 {
			t.Errorf("with a context that has ended it waits for %v", d)
		}
	})
}

// A copy waits for the commits that run between its pieces, and ends beside one
// that does not.
func TestCopyGivesWay(t *testing.T) {
	const pieces = 8
	entered, gate := make(chan struct{}), make(chan struct{})
	stop := false // changed while no commit runs
	s, n := openTest(t, t.TempDir(), Options{}, func([]dbadapter.Change) {
		if stop {
			close(entered)
			<-gate
		}
	})
	var batch []dbadapter.Write
	for i := range pieces * copyAhead {
		batch = append(batch, write(fmt.Sprint(i), i)...)
	}
	for len(batch) > 0 {
		some := dbadapter.OneBatch(batch)
		apply(t, n, batch[:some])
		batch = batch[some:]
	}
	c, err := s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop = true
	done := make(chan error, 1)
	go func() {
		_, err := n.Apply(context.Background(), write("k", 1))
		done <- err
	}()
	<-entered
	begun := time.Now()
	_, err = c.Copy(t.Context(), io.Discard, nil)
	if took, least := time.Since(begun), 2*pieces*mostWait; err != nil || took < least { // buckets and records
		t.Errorf("a copy beside a commit took %v, %v; its pieces wait for %v", took, err, least)
	}
	close(gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
