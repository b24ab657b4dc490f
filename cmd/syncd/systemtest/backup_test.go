//go:build linux

package systemtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/peer"
	"github.com/syncd-io/syncd/peer/offline"
)

// TestKillBackup kills a daemon with kill -9 while it makes a backup, until three
// kills have left a part of one: the backups before it stay whole, the next one
// succeeds, and what is restored at the end is what the daemon holds.
func TestKillBackup(t *testing.T) {
	const records, parts = 20_000, 3
	d := newDaemon(t, "a", t.TempDir())
	d.create(nil)
	load := func(round, from, to int) {
		var lines bytes.Buffer
		for i := from; i < to; i++ {
			fmt.Fprintf(&lines, `{"key":"key %d","value":"value %d of round %d"}`+"\n", i, i, round)
		}
		if _, err := d.api.Import(t.Context(), api.ImportParams{NSParams: api.OfNS(namespace)}, lines.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	load(0, 0, records)
	to := filepath.Join(t.TempDir(), "backups")
	left, finished, took := 0, 0, 200*time.Millisecond
	for round := 1; left < parts; round++ {
		if round > 60 {
			t.Fatalf("of %d kills, %d hit a backup on the way", round, left)
		}
		load(round, round*100, round*100+100)
		ended := make(chan error, 1)
		begun := time.Now()
		go func() {
			_, err := d.api.Backup(t.Context(), api.NewBackup{Dir: to, Full: round%2 == 1}, func(int64) {})
			ended <- err
		}()
		if round > 2 { // the first two are left to end: they tell how long one takes
			time.Sleep(time.Duration(rand.Int64N(int64(took)))) // the kill's moment is the test's subject
			d.kill()
		}
		err := <-ended
		switch {
		case err == nil:
			finished++
			took = max(time.Since(begun), 10*time.Millisecond)
		case round <= 2:
			t.Fatal(err)
		}
		partial, globErr := filepath.Glob(filepath.Join(to, "*.partial"))
		if globErr != nil {
			t.Fatal(globErr)
		}
		left += len(partial)
		all, err := offline.VerifyBackups(t.Context(), to, nil)
		if err != nil || len(all) < finished {
			t.Fatalf("after %d backups and %d parts of one: %d backups, %v", finished, left, len(all), err)
		}
		if d.process == nil {
			d.restart()
		}
	}
	if _, err := d.api.Backup(t.Context(), api.NewBackup{Dir: to}, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if partial, err := filepath.Glob(filepath.Join(to, "*.partial")); err != nil || len(partial) > 0 {
		t.Errorf("left: %v, %v", partial, err)
	}
	want := d.export()
	d.stop()
	dir := filepath.Join(t.TempDir(), "restored")
	if out, err := exec.Command(binary, "restore", to, "--data-dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	restored := newDaemon(t, "restored", dir)
	if restored.id != d.id {
		t.Errorf("id %s, want %s", restored.id, d.id)
	}
	if got := restored.export(); got != want {
		t.Errorf("restored %d bytes of export, want %d", len(got), len(want))
	}
	if _, err := offline.Restore(t.Context(), to, dir, offline.RestoreOptions{}); !errors.Is(err, peer.ErrExists) {
		t.Error(err)
	}
}
