//go:build linux

package systemtest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// usage is what a daemon's processes have taken, one after the other, while they synced.
type usage struct {
	peak             int64 // bytes
	cpu, queued      time.Duration
	burnt, stood     time.Duration // up to the start
	wall             time.Duration
	written, writing int64
}

// start begins to count.
func (u *usage) start(t *testing.T, d *daemon) {
	t.Helper()
	s := taken(t, d.process.Process.Pid)
	u.burnt, u.stood, u.writing = s.cpu, s.queued, s.written
}

// end adds what was taken since start, in so much time.
func (u *usage) end(t *testing.T, d *daemon, wall time.Duration) {
	t.Helper()
	s := taken(t, d.process.Process.Pid)
	u.cpu += s.cpu - u.burnt
	u.queued += s.queued - u.stood
	u.written += s.written - u.writing
	u.peak = max(u.peak, s.peak)
	u.wall += wall
}

// String tells the share of one processor that was used; and the share of the time that
// its threads waited for one, in all, which is about none on a machine that is idle.
func (u *usage) String() string {
	return fmt.Sprintf("at most %d MiB resident; %.1f s of processor time in %.1f s, %.0f %% of one, while its threads waited for one for %.1f s; %.1f MB written to files and sockets",
		u.peak>>20, u.cpu.Seconds(), u.wall.Seconds(), 100*u.cpu.Seconds()/u.wall.Seconds(), u.queued.Seconds(), float64(u.written)/1e6)
}

// taking is what a process has taken.
type taking struct {
	cpu, queued   time.Duration
	written, peak int64
}

// taken is the processor time of a process, for how long its threads have waited for a
// processor, the bytes that it has written to files and sockets, and its greatest
// resident size. Threads that have ended do not count in the waiting.
func taken(t *testing.T, pid int) (s taking) {
	t.Helper()
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	parse := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	number := func(text, name string) int64 {
		_, rest, _ := strings.Cut(text, name+":")
		return parse(strings.Fields(rest)[0])
	}
	root := fmt.Sprintf("/proc/%d", pid)
	stat := read(root + "/stat")
	for _, ticks := range strings.Fields(stat[strings.LastIndex(stat, ")"):])[12:14] {
		s.cpu += time.Duration(parse(ticks)) * 10 * time.Millisecond
	}
	threads, err := filepath.Glob(root + "/task/*/schedstat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		if b, err := os.ReadFile(path); err == nil { // a thread may end meanwhile
			s.queued += time.Duration(parse(strings.Fields(string(b))[1]))
		}
	}
	s.written, s.peak = number(read(root+"/io"), "wchar"), number(read(root+"/status"), "VmHWM")<<10
	return s
}

// wireBytes is how many bytes of syncs the daemon has sent and received since it started,
// in those that are over.
func (d *daemon) wireBytes() (n float64) {
	d.t.Helper()
	return d.metric("syncd_sync_bytes_total")
}

// rested waits until no sync runs.
func (d *daemon) rested() {
	d.t.Helper()
	for begun := time.Now(); d.metric("syncd_running_syncs") > 0; time.Sleep(10 * time.Millisecond) { // it tells nothing when the last one ends
		if time.Since(begun) > patience {
			d.t.Fatalf("a sync of %s does not end in %v", d.name, patience)
		}
	}
}

// metric is the sum of a metric over its labels, of those that have one like result="sure"
// if it is given; 0 before it was counted for the first time.
func (d *daemon) metric(name string, with ...string) (sum float64) {
	d.t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.socket)
	}}}
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://daemon/metrics", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		d.t.Fatalf("%s: %v", d.name, err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		label, value, _ := strings.Cut(lines.Text(), " ")
		before, labels, _ := strings.Cut(label, "{")
		if before != name || slices.ContainsFunc(with, func(one string) bool { return !strings.Contains(labels, one) }) {
			continue
		}
		if i := strings.LastIndexByte(lines.Text(), ' '); i >= 0 {
			value = lines.Text()[i+1:]
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// joinUnsigned is join, of a namespace without signatures.
func joinUnsigned(a, b *daemon) {
	a.t.Helper()
	if _, err := a.api.CreateNamespace(a.t.Context(), api.NewNamespace{Name: namespace, Unsigned: true}); err != nil {
		a.t.Fatal(err)
	}
	ticket, err := a.api.Invite(a.t.Context(), api.Invitation{NS: namespace, Role: "write"})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := b.api.Join(a.t.Context(), ticket); err != nil {
		a.t.Fatal(err)
	}
}
