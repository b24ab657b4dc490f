//go:build linux

package systemtest

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 36, "how often TestKill kills a daemon")

// afterwards stands in the histogram for a kill that came after the sync.
const afterwards = "after the sync"

// TestKill kills either daemon with kill -9, in each of the six steps of a
// sync, while both are written to. A kill is aimed at a step: it is sent when
// the victim logs that the step begins, and counts if the sync then fails. Some
// steps take microseconds, so that the victim may have come further when it
// dies; the second histogram tells where it was.
func TestKill(t *testing.T) {
	a := newDaemon(t, "a", t.TempDir())
	b := newDaemon(t, "b", t.TempDir())
	join(a, b)
	wa, wb := newWriter(a), newWriter(b)
	stop := start(t, wa, wb)

	histogram, died := map[string]int{}, map[string]int{}
	inSync := func() (n int) {
		for _, s := range steps {
			n += histogram[s]
		}
		return n
	}
	for round := 0; inSync() < *kills; round++ {
		if round >= 3**kills+30 {
			t.Fatalf("after %d kills: %s; does the daemon log its steps with -v?", round, show(histogram))
		}
		victim, initiator, responder := a, a, b
		if round%2 == 1 {
			victim = b
		}
		if round/2%2 == 1 {
			initiator, responder = b, a
		}
		step := rarest(histogram, round)
		if step == "subtract" {
			victim = responder // the responder alone subtracts
		}
		wa.batch(t, 200)
		wb.batch(t, 200)
		reached := victim.log.reach(step)
		ended := begin(initiator, responder)
		var err error
		select {
		case <-reached:
		case err = <-ended: // before it came to that step
			if err != nil {
				t.Errorf("a sync between live daemons, begun by %s: %v", initiator.name, err)
			}
		case <-time.After(patience):
			t.Fatalf("a sync neither reached step %s of %s nor ended in %v; the victim's log ends with:\n%s", step, victim.name, patience, victim.log.tail())
		}
		victim.kill()
		select {
		case err = <-ended: // nil if it was heard above
		case <-time.After(patience):
			t.Fatalf("%s was killed; the sync begun by %s did not end in %v", victim.name, initiator.name, patience)
		}
		if err == nil {
			histogram[afterwards]++
		} else {
			histogram[step]++
			died[victim.log.step()]++
		}
		victim.restart()
	}
	stop()

	lost := agreed(t, a, b, wa, wb)
	t.Logf("kills by the step that had begun: %s", show(histogram))
	t.Logf("and by the step logged last: %s", show(died))
	t.Logf("%d acknowledged writes, %d lost", wa.total+wb.total, len(lost))
	for _, s := range steps {
		if histogram[s] == 0 && *kills >= 30 {
			t.Errorf("no kill was aimed at step %s", s)
		}
	}
}

// begin starts a sync. The channel gives its error once it has ended, and is closed.
func begin(initiator, responder *daemon) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		_, err := initiator.sync(responder)
		ended <- err
	}()
	return ended
}

// rarest is the step hit least often; round breaks ties.
func rarest(histogram map[string]int, round int) string {
	best := steps[round%len(steps)]
	for i := range steps {
		if s := steps[(round+i)%len(steps)]; histogram[s] < histogram[best] {
			best = s
		}
	}
	return best
}

func show(histogram map[string]int) string {
	var parts []string
	for _, s := range append(steps[:len(steps):len(steps)], afterwards) {
		parts = append(parts, fmt.Sprintf("%s %d", s, histogram[s]))
	}
	return strings.Join(parts, ", ")
}
