//go:build linux

package systemtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/client"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/reconcile/wire"
)

var (
	liveNodes = flag.Int("live-nodes", 4, "how many daemons TestLive has")
	liveTime  = flag.Duration("live-time", 4*time.Second, "for how long they write in TestLive, and rest in TestLiveAtRest")
	liveRate  = flag.Float64("live-rate", 100, "how many writes a second there are in TestLive, by all of them")
	liveKill  = flag.Duration("live-kill", 2*time.Second, "how often one of them is killed in TestLive; 0: never")
	liveLoss  = flag.Int("live-loss", 0, "the percentage of packets that the network loses in TestLive")
	liveWarm  = flag.Duration("live-warm", time.Second, "for how long the daemons rest before anything is measured")
	liveSeed  = flag.Uint64("live-seed", 1, "which keys are written, and which daemon is killed")
)

// Records of the live tests.
const (
	liveKeys      = 1000
	liveKeySize   = 24
	liveValueSize = 256
)

// liveInterval is that of the background syncs in the live tests: the default.
const liveInterval = time.Minute

// cluster is daemons in a network of their own that are all members of one namespace.
type cluster struct {
	t       *testing.T
	network *network
	daemons []*daemon
}

// newCluster makes daemons that got there by invitations of any of those before them, and
// that are all connected.
func newCluster(t *testing.T, n int, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, network: newNetwork(t)}
	random := rand.New(rand.NewPCG(*liveSeed, 1))
	for i := range n {
		d := newDaemonIn(t, c.network, fmt.Sprint("node ", i), t.TempDir(), liveInterval, flags...)
		c.daemons = append(c.daemons, d)
		if i == 0 {
			d.create(nil)
		} else {
			c.daemons[random.IntN(i)].invite(d, "admin")
		}
	}
	for i, d := range c.daemons {
		until(t, d.name+" lists all members", func() bool {
			status, err := client.Ask(t.Context(), d.api, api.GetNamespace, api.StatusParams{NSParams: api.OfNS(namespace)})
			return err == nil && len(status.MemberList) == n
		})
		for _, other := range c.daemons[:i] {
			if _, err := d.sync(other); err != nil {
				t.Fatalf("%s with %s: %v", d.name, other.name, err)
			}
		}
	}
	time.Sleep(*liveWarm) // the mesh of pushes forms at heartbeats, which tell no caller
	return c
}

// equal waits until all hold the same, and gives it.
func (c *cluster) equal() (export string) {
	c.t.Helper()
	until(c.t, "all exports are equal", func() bool {
		export = c.daemons[0].export()
		return !slices.ContainsFunc(c.daemons[1:], func(d *daemon) bool { return d.export() != export })
	})
	return export
}

// sizeOfRecord is how many bytes a record of the live tests takes in a push.
func sizeOfRecord() float64 {
	return float64(len(wire.AppendPushed(nil, &dbadapter.Record{
		Key: make([]byte, liveKeySize), Value: make([]byte, liveValueSize), Signature: make([]byte, dbadapter.SignatureSize),
		Version: dbadapter.Version{Clock: 1, Writer: 1, Incarnation: 1},
	})))
}

// written is a write that was acknowledged.
type written struct {
	key, version string
	by           int
	at           time.Time // when
}

// writers write to all daemons for a while, some writes a second in all.
type writers struct {
	c *cluster

	mu     sync.Mutex // guards what follows
	all    []written
	failed int
	away   int // the daemon that is being killed, or started again; -1: none
}

// run writes until the time is over.
func (w *writers) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	random := rand.New(rand.NewPCG(*liveSeed, 2))
	n := len(w.c.daemons)
	ticker := time.NewTicker(time.Duration(float64(time.Second) / *liveRate))
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		key := fmt.Sprintf("%0*d", liveKeySize, random.IntN(liveKeys))
		value := fmt.Sprintf("%0*d", liveValueSize, i)
		running.Go(func() { w.write(i%n, key, value) })
	}
}

func (w *writers) write(by int, key, value string) {
	d := w.c.daemons[by]
	version, err := d.api.Put(w.c.t.Context(), api.PutParams{RecordParams: api.Record(namespace, []byte(key))}, strings.NewReader(value))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.all = append(w.all, written{key, version, by, time.Now()})
		return
	}
	w.failed++
	if w.away != by {
		w.c.t.Errorf("%s: %v", d.name, err)
	}
}

// absent is when a daemon was away.
type absent struct {
	daemon     int
	from, upTo time.Time
}

// TestLive has daemons write, some writes a second in all, while one after the other is
// killed and comes back. It measures how soon after a put has returned all others tell
// of it, and the bytes on all wires. All hold the same in the end, no watch misses the
// last state of a key, and none tells one twice on a connection. docs/PERFORMANCE.md has
// the flags of its figures.
func TestLive(t *testing.T) {
	t.Logf("seed %d", *liveSeed)
	c := newCluster(t, *liveNodes)
	if *liveLoss > 0 {
		c.network.lose(*liveLoss)
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var followers []*follower
	for _, d := range c.daemons {
		followers = append(followers, follow(ctx, &watching, d))
	}
	w := &writers{c: c, away: -1}
	var used meter
	used.start(c)
	began := time.Now()
	writing, cancel := context.WithTimeout(t.Context(), *liveTime)
	defer cancel()
	var killing sync.WaitGroup
	var gone []absent
	if *liveKill > 0 {
		killing.Go(func() { gone = w.kill(writing, &used) })
	}
	w.run(writing)
	killing.Wait()
	used.end(c)
	took := time.Since(began)
	export := c.equal()
	t.Logf("all equal %s after the last write", time.Since(began.Add(took)).Round(time.Millisecond))
	for _, f := range followers {
		until(t, f.d.name+" tells the last state of each key", func() bool { _, n := f.missing(export); return n == 0 })
	}
	stop()
	watching.Wait()
	w.report(&used, took, followers, gone)
}

// kill kills one daemon after the other, and starts it again half an interval later.
func (w *writers) kill(ctx context.Context, used *meter) (gone []absent) {
	random := rand.New(rand.NewPCG(*liveSeed, 3))
	for {
		select {
		case <-time.After(*liveKill / 2):
		case <-ctx.Done():
			return gone
		}
		who := random.IntN(len(w.c.daemons))
		d := w.c.daemons[who]
		w.mu.Lock()
		w.away = who
		w.mu.Unlock()
		used.pause(who, d)
		from := time.Now()
		d.kill()
		select {
		case <-time.After(*liveKill / 2):
		case <-ctx.Done():
		}
		d.restart()
		w.mu.Lock()
		w.away = -1
		w.mu.Unlock()
		gone = append(gone, absent{who, from, time.Now()})
	}
}

// report logs the figures, and checks that nothing that was acknowledged is lost.
func (w *writers) report(used *meter, took time.Duration, followers []*follower, gone []absent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.c.t
	var all, late []time.Duration // those of writes that a daemon which was away missed
	for _, put := range w.all {
		last, missed := time.Duration(0), false
		for i, f := range followers {
			at, ok := f.held(put.key, put.version)
			if !ok {
				t.Fatalf("%s was acknowledged, in version %s by node %d, and never told by %s", put.key, put.version, put.by, f.d.name)
			}
			for _, g := range gone { // its own acknowledged writes, too, are told late then
				missed = missed || g.daemon == i && put.at.Before(g.upTo) && at.After(g.from)
			}
			if i != put.by {
				last = max(last, at.Sub(put.at))
			}
		}
		if missed {
			late = append(late, last)
		} else {
			all = append(all, last)
		}
	}
	n := float64(len(w.all))
	least := n * sizeOfRecord() * float64(len(w.c.daemons)-1)
	t.Logf("%d daemons, %.0f writes a second, %d refused by a daemon that was away", len(w.c.daemons), n/took.Seconds(), w.failed)
	t.Logf("from the return of put until all others tell of it: %s", quantiles(all))
	if len(gone) > 0 {
		t.Logf("the same, where one of them was away: %s; %d kills", quantiles(late), len(gone))
	}
	t.Logf("%.0f bytes a write on all wires, %.2f times a record for each other daemon", used.bytes/n, used.bytes/least)
	t.Logf("processor time of all: %.1f s in %.1f s, %.1f ms a write", used.cpu.Seconds(), took.Seconds(), used.cpu.Seconds()/n*1000)
}

// quantiles is a summary of durations.
func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "no writes"
	}
	slices.Sort(all)
	at := func(part float64) time.Duration {
		return all[int(part*float64(len(all)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("median %s, 99th percentile %s, at most %s, of %d writes", at(.5), at(.99), at(1), len(all))
}

// meter is what daemons have used.
type meter struct {
	cpu   time.Duration
	bytes float64
	from  []time.Duration
}

func (m *meter) start(c *cluster) {
	m.bytes = -c.network.bytes()
	for _, d := range c.daemons {
		m.from = append(m.from, processorTime(c.t, d.process.Process.Pid))
	}
}

// pause counts a process that is going to end. The next one begins with nothing.
func (m *meter) pause(i int, d *daemon) {
	m.cpu += processorTime(d.t, d.process.Process.Pid) - m.from[i]
	m.from[i] = 0
}

func (m *meter) end(c *cluster) {
	m.bytes += c.network.bytes()
	for i, d := range c.daemons {
		m.pause(i, d)
	}
}

// TestLiveAtRest measures what daemons send and use when nothing is written.
func TestLiveAtRest(t *testing.T) {
	c := newCluster(t, *liveNodes)
	var used meter
	used.start(c)
	time.Sleep(*liveTime) // it is what is measured
	used.end(c)
	n, s := float64(len(c.daemons)), liveTime.Seconds()
	t.Logf("%d daemons at rest: each sends %.0f bytes a second and takes %.2f %% of a processor", len(c.daemons), used.bytes/n/s, 100*used.cpu.Seconds()/n/s)
}
