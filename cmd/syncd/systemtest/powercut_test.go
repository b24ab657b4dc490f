//go:build linux

package systemtest

import (
	"flag"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/syncd-io/syncd/internal/powercut"
)

var (
	cuts    = flag.Int("powercuts", 10, "how often TestPowerCut cuts the power")
	cutSeed = flag.Uint64("powercut-seed", uint64(time.Now().UnixNano()), "when TestPowerCut does so")
)

// TestPowerCut cuts the power of one daemon's disk while both daemons are
// written to and sync.
func TestPowerCut(t *testing.T) {
	r := rand.New(rand.NewPCG(*cutSeed, 1))
	disk := powercut.New(t, 512<<20)
	a := newDaemon(t, "a", filepath.Join(disk.Dir(), "node"))
	b := newDaemon(t, "b", t.TempDir())
	join(a, b)
	wa, wb := newWriter(a), newWriter(b)
	stop := start(t, wa, wb)

	for cut := range *cuts {
		wa.batch(t, 100)
		ended := begin(b, a)
		wa.wait(t, 1+r.IntN(200))
		acks := cutPower(t, disk, a, wa)
		<-ended // well or not: the power may have gone before or after
		a.restart()
		if lost := missing(t, a.export(), acks); len(lost) > 0 {
			t.Fatalf("cut %d (-powercut-seed=%d) lost %d acknowledged writes, among them %s", cut+1, *cutSeed, len(lost), lost[0])
		}
	}
	stop()

	agreed(t, a, b, wa, wb)
	t.Logf("%d power cuts, %d acknowledged writes", *cuts, wa.total+wb.total)
}

// TestPowerCutUnsynced is the same without syncing, where writes must be lost:
// if they were not, TestPowerCut would prove nothing.
func TestPowerCutUnsynced(t *testing.T) {
	disk := powercut.New(t, 512<<20)
	a := newDaemon(t, "a", filepath.Join(disk.Dir(), "node"))
	b := newDaemon(t, "b", t.TempDir())
	join(a, b)
	a.stop()
	// What makes the node and its namespace is on the disk before syncs stop.
	if out, err := exec.Command("sync", "-f", disk.Dir()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	a.unsynced = true
	a.restart()
	w := newWriter(a)
	stop := start(t, w)
	w.wait(t, 500)
	acks := cutPower(t, disk, a, w)
	stop()
	a.unsynced = false
	a.restart()
	lost := missing(t, a.export(), acks)
	t.Logf("%d keys acknowledged, %d lost", len(acks), len(lost))
	if len(lost) == 0 {
		t.Error("no unsynced write was lost: the cut is no cut")
	}
}

// cutPower cuts the power of the daemon's disk and brings it back; the daemon
// is left dead. It returns what had been acknowledged before: the disk is
// copied while the daemon stands, so that nothing can be acknowledged later
// than the copy.
func cutPower(t *testing.T, disk *powercut.Disk, d *daemon, w *writer) map[string]int {
	t.Helper()
	if err := disk.Cut(d.process.Process.Pid); err != nil {
		t.Fatal(err)
	}
	d.kill()
	acks := w.acks()
	if err := disk.Restore(); err != nil {
		t.Fatal(err)
	}
	return acks
}
