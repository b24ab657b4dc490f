//go:build linux

package systemtest

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
)

var (
	ringPackages = flag.Int("ring-packages", 300, "how many of Debian's packages TestRing takes; 0: all")
	ringInterval = flag.Duration("ring-interval", time.Second, "the mean pause between background syncs in TestRing")
	ringTime     = flag.Duration("ring-time", 500*time.Millisecond, "for how long each state of the network lasts in TestRing")
	ringSeed     = flag.Uint64("ring-seed", 1, "what is written and deleted in TestRing")
)

// TestRing: five daemons hold Debian's index of packages. Each reaches two neighbours
// alone, and became a member by the invitation of one of them. All are written to, while
// one is killed and comes back, one is cut off, and one loses its disk after its
// neighbours have what it held, and is restored from a backup older than that. In the end
// all exports are equal, byte for byte but for deletions that some daemons have forgotten
// already, and hold what was acknowledged: no write is lost,
// and no package is there that was deleted.
func TestRing(t *testing.T) {
	t.Logf("seed %d", *ringSeed)
	index := debianIndex(t)
	if *ringPackages > 0 {
		index.names = index.names[:*ringPackages]
	}
	const killed, cut, restored, n = 0, 1, 3, 5
	r := &ring{t: t, networks: newRing(t, n)}
	began := time.Now()
	for i := range n {
		r.grow(i)
	}
	parts := make([][]string, n)
	for i, name := range index.names {
		parts[i%n] = append(parts[i%n], name)
	}
	var importing sync.WaitGroup
	for i, d := range r.daemons {
		lines := index.lines(parts[i])
		importing.Go(func() { d.importLines(lines) })
	}
	importing.Wait()
	r.equal("all hold the index")
	r.told("joined, imported and equal", began)

	for i, d := range r.daemons {
		r.editors = append(r.editors, newEditor(d, index, parts[i]))
	}
	stop := r.write(0, 1, 2, 3, 4)
	time.Sleep(*ringTime) // the daemons are written to: it is what is tested
	lost := r.daemons[restored]
	to := filepath.Join(t.TempDir(), "backups")
	lost.command(nil, "backup", to)
	time.Sleep(*ringTime)

	r.networks[cut].cut()
	time.Sleep(*ringTime)
	r.daemons[killed].kill()
	time.Sleep(*ringTime / 2)
	r.daemons[killed].restart()
	stop[restored]()
	left, right := r.daemons[restored-1], r.daemons[(restored+1)%n]
	lost.command(nil, "wait", namespace, "--peer", left.id, "--peer", right.id, "--timeout", patience.String())
	lost.kill()
	if err := os.RemoveAll(lost.dir); err != nil {
		t.Fatal(err)
	}
	lost.dir = filepath.Join(t.TempDir(), "restored")
	if out, err := exec.Command(binary, "restore", to, "--data-dir", lost.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lost.restart()
	stop[restored] = r.write(restored)[restored]
	time.Sleep(*ringTime)
	r.networks[cut].heal()
	time.Sleep(*ringTime)
	for _, stop := range stop {
		stop()
	}
	began = time.Now()
	r.equal("all are equal after the last write")
	r.told("equal", began)
	r.check(index)
}

// ring is daemons of which each reaches two others.
type ring struct {
	t        *testing.T
	networks []*network
	daemons  []*daemon
	editors  []*editor
}

// grow adds a daemon, which the one before it invites.
func (r *ring) grow(i int) {
	r.t.Helper()
	d := newDaemonIn(r.t, r.networks[i], fmt.Sprint("node ", i), filepath.Join(r.t.TempDir(), "data"), *ringInterval)
	r.daemons = append(r.daemons, d)
	if i == 0 {
		d.create(nil)
		return
	}
	r.daemons[i-1].invite(d, "admin")
}

// write has the editors of some daemons write until they are stopped.
func (r *ring) write(to ...int) map[int]func() {
	stops := map[int]func(){}
	for _, i := range to {
		stops[i] = beginAll(r.t, r.editors[i].run)
	}
	return stops
}

// equal waits until the daemons say that they hold the same, all five of them.
func (r *ring) equal(what string) {
	r.t.Helper()
	until(r.t, what, func() bool {
		digests := map[string]bool{}
		for _, d := range r.daemons {
			status, err := client.Ask(r.t.Context(), d.api, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(namespace)})
			if err != nil {
				r.t.Fatal(err)
			}
			if len(status.MemberList) != len(r.daemons) {
				return false
			}
			digests[status.Digest] = true
		}
		return len(digests) == 1
	}, r.daemons...)
}

// told logs how long a step took, in intervals.
func (r *ring) told(what string, since time.Time) {
	took := time.Since(since)
	r.t.Logf("%s after %s, %.1f intervals", what, took.Round(time.Millisecond), float64(took)/float64(*ringInterval))
}

// check compares all exports, and one with what was acknowledged.
func (r *ring) check(index debian) {
	r.t.Helper()
	export := r.daemons[0].export()
	alive := withoutDeletions(export)
	for _, d := range r.daemons[1:] {
		if got := withoutDeletions(d.export()); got != alive {
			r.t.Errorf("the exports of %s and %s differ: %d and %d bytes", r.daemons[0].name, d.name, len(alive), len(got))
		}
	}
	held := map[string]string{}
	for _, record := range recordsOf(r.t, export) {
		held[record.Key] = record.Value
	}
	want := map[string]string{}
	for _, name := range index.names {
		want[name] = index.stanzas[name]
	}
	writes, deletes, lost, back, open := 0, 0, 0, 0, 0
	for _, e := range r.editors {
		for key, value := range e.acknowledged {
			want[key] = value
		}
		if e.trying.key != "" { // no answer came before the test ended: either is right
			open++
			if got := held[e.trying.key]; got == e.trying.value {
				want[e.trying.key] = got
			}
		}
		writes, deletes = writes+e.writes, deletes+e.deletes
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		got, value := held[key], want[key]
		switch {
		case got == value:
		case value == "":
			back++
			r.t.Errorf("%s was deleted, and is back", key)
		default:
			lost++
			r.t.Errorf("the last write to %s that was acknowledged is lost: %.60q instead of %.60q", key, got, value)
		}
		delete(held, key)
	}
	for key := range held {
		r.t.Errorf("%s was never written", key)
	}
	kept := int64(0)
	for _, d := range r.daemons {
		status, err := client.Ask(r.t.Context(), d.api, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(namespace)})
		if err != nil {
			r.t.Fatal(err)
		}
		kept = max(kept, status.Records)
		if status.SetAside > 0 || status.Rejected > 0 {
			r.t.Logf("%s: %d set aside, %d rejected", d.name, status.SetAside, status.Rejected)
		}
	}
	r.t.Logf("%d packages; %d writes were acknowledged, of them %d deletions: %d lost, %d came back; %d without an answer; %d bytes of export, %d records with tombstones",
		len(index.names), writes, deletes, lost, back, open, len(export), kept)
}

// edit is a write: of no value, a deletion.
type edit struct{ key, value string }

// draw is the next write of an editor: a record of its own, a changed package, or one
// deleted.
func (e *editor) draw() edit {
	e.next++
	kind := e.random.IntN(4)
	if kind >= 2 && len(e.packages) == 0 {
		kind = 0
	}
	switch kind {
	case 2:
		name := e.packages[e.random.IntN(len(e.packages))]
		return edit{name, fmt.Sprintf("%sX-Changed-By: %s, %d\n", e.index.stanzas[name], e.d.name, e.next)}
	case 3: // one in four, up to a half of the packages
		if len(e.packages) <= e.keep {
			return edit{fmt.Sprintf("by %s/%d", e.d.name, e.next), valueOf(e.next)}
		}
		i := e.random.IntN(len(e.packages))
		name := e.packages[i]
		e.packages = slices.Delete(e.packages, i, i+1)
		return edit{key: name}
	}
	return edit{fmt.Sprintf("by %s/%d", e.d.name, e.random.IntN(laneKeys)), valueOf(e.next)}
}

func newEditor(d *daemon, index debian, packages []string) *editor {
	return &editor{
		d: d, index: index, packages: slices.Clone(packages), keep: len(packages) / 2, acknowledged: map[string]string{},
		random: rand.New(rand.NewPCG(*ringSeed, uint64(len(d.name)+int(d.name[len(d.name)-1])))),
	}
}

// withoutDeletions is an export without its tombstones: once all members hold one, each
// forgets it in its own time.
func withoutDeletions(export string) string {
	var out strings.Builder
	for line := range strings.Lines(export) {
		if !strings.HasSuffix(line, `"deleted":true}`+"\n") {
			out.WriteString(line)
		}
	}
	return out.String()
}
