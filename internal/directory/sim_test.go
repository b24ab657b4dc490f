package directory

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

const (
	simShards  = 4
	simIndices = 40 // of each home
)

// simEntry is what a simulated host holds under an index: the greatest version wins.
type simEntry struct {
	version int
	code    Code
	since   time.Duration // it has said this code, in a row
}

// simHost is a host of sets: the stupid map, and the Host beside it.
type simHost struct {
	id   roster.ID
	host *Host
	sets map[placement.Shard]map[dbadapter.Index]simEntry
	open map[placement.Shard]bool
}

// world is hosts, a node with a Locator, and what is under way between them.
type world struct {
	t       testing.TB
	r       *rand.Rand
	now     time.Duration
	version int
	hosts   map[roster.ID]*simHost
	of      map[placement.Shard][]roster.ID
	node    *Locator
	disk    *simDisk
	wire    []func() // what arrives if it is called; any order, or never
	chaos   int      // of 100: how many of the rare events happen
	epoch   int      // of the node: what was sent to one that crashed does not arrive
	nested  bool
	done    map[Where]int
	rest    struct{ gone, found int } // keys that are not there at rest, and those of them with a shard
}

// simDisk are the node's files; each call lets the world go on.
type simDisk struct {
	files, old map[string][]byte
	fails      bool
	bad        string // a file that cannot be read until it is written anew
	unread     int    // reads of such files
	unwritten  int    // writes that have failed
	step       func()
}

func (d *simDisk) Read(name string) ([]byte, error) {
	d.step()
	if name == d.bad {
		d.unread++
		return nil, errors.New("a bad block")
	}
	return d.files[name], nil
}

func (d *simDisk) Write(name string, data []byte) error {
	d.step()
	if d.fails {
		d.unwritten++
		return errors.New("the disk is full")
	}
	if d.files[name] = slices.Clone(data); d.bad == name {
		d.bad = ""
	}
	return nil
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 0)), hosts: map[roster.ID]*simHost{}, of: map[placement.Shard][]roster.ID{},
		done: map[Where]int{}, now: time.Hour,
	}
	w.chaos = []int{0, 3, 20, 100}[w.r.IntN(4)]
	w.disk = &simDisk{files: map[string][]byte{}, old: map[string][]byte{}, step: func() {}}
	for i := range 4 {
		id := roster.ID(fmt.Sprint("host ", i))
		w.hosts[id] = &simHost{id: id, sets: map[placement.Shard]map[dbadapter.Index]simEntry{}, open: map[placement.Shard]bool{}}
		w.restart(w.hosts[id])
	}
	for home := range placement.Shard(simShards) {
		w.give(home, "host "+roster.ID(fmt.Sprint(home)))
		w.give(home, "host "+roster.ID(fmt.Sprint((home+1)%simShards)))
	}
	w.start()
	return w
}

// give makes a host one of a set, with what another one holds.
func (w *world) give(home placement.Shard, id roster.ID) {
	h := w.hosts[id]
	if slices.Contains(w.of[home], id) {
		return
	}
	h.sets[home] = map[dbadapter.Index]simEntry{}
	w.of[home] = append(w.of[home], id)
	for _, other := range w.of[home] {
		w.replicate(home, w.hosts[other], h)
	}
	w.openSet(h, home)
}

func (w *world) openSet(h *simHost, home placement.Shard) {
	m := map[dbadapter.Index]Code{}
	for index, e := range h.sets[home] {
		if e.code != Gone {
			m[index] = e.code
		}
	}
	h.host.Open(home, sortedRows(m))
	h.open[home] = true
}

func (w *world) restart(h *simHost) {
	h.host = NewHost(simShards, w.r.Uint64())
	h.host.SetLayout(testLayout)
	h.host.keep, h.host.most = 30, 1+w.r.IntN(20)
	h.open = map[placement.Shard]bool{}
	for _, home := range slices.Sorted(maps.Keys(h.sets)) {
		w.openSet(h, home)
	}
}

// start starts the node, from what is on its disk.
func (w *world) start() {
	w.epoch++
	step := w.disk.step
	w.disk.step = func() {}
	node, err := New(Config{Shards: simShards, Seed: w.r.Uint64(), Disk: w.disk, Workers: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	node.leastOver, node.leastExact, node.maxSet = 3, 8, simIndices // so that sets come one at a time, too
	w.disk.step = step
	w.node = node
	for home := range placement.Shard(simShards) {
		w.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{home: w.of[home]})
	}
}

func (w *world) put(h *simHost, home placement.Shard, index dbadapter.Index, e simEntry) {
	held := h.sets[home][index]
	if held.version >= e.version {
		return
	}
	e.since = w.now
	if held.code == e.code && held.version > 0 || held.version == 0 && e.code == Gone {
		e.since = held.since
	}
	h.sets[home][index] = e
	if h.open[home] {
		h.host.Set(home, index, e.code)
	}
}

func (w *world) replicate(home placement.Shard, from, to *simHost) {
	for _, index := range slices.Sorted(maps.Keys(from.sets[home])) {
		w.put(to, home, index, from.sets[home][index])
	}
}

// carry carries a message as bytes.
func carry[M Message](w *world, m M) M {
	data, err := Append(nil, m, simShards)
	if err != nil {
		w.t.Fatal(err)
	}
	back, err := Parse(data, simShards)
	if err != nil {
		w.t.Fatal(err)
	}
	return back.(M)
}

// poll sends a poll; it arrives, and its answer, when the world pleases.
func (w *world) poll(id roster.ID) {
	p, sent, epoch := w.node.Poll(id), w.now, w.epoch
	w.wire = append(w.wire, func() {
		n := carry(w, w.hosts[id].host.News(carry(w, p)))
		w.wire = append(w.wire, func() {
			if epoch == w.epoch {
				if err := w.node.News(id, p, n, sent); err != nil {
					w.t.Fatal(err)
				}
			}
		})
	})
}

func (w *world) take(id roster.ID) {
	t, epoch := w.node.Take(id, w.now), w.epoch
	if t == nil {
		return
	}
	w.wire = append(w.wire, func() {
		b, err := w.hosts[id].host.Block(carry(w, t))
		w.wire = append(w.wire, func() {
			switch {
			case epoch != w.epoch:
			case err != nil || w.r.IntN(8) == 0:
				w.node.TakeFailed(id, t.Home)
			default:
				if err := w.node.Block(id, t, carry(w, b), w.now); err != nil {
					w.t.Fatal(err)
				}
			}
		})
	})
}

func (w *world) anyHost() *simHost { return w.hosts[roster.ID(fmt.Sprint("host ", w.r.IntN(4)))] }

// write is an acknowledged write, move, delete or overwrite at one host.
func (w *world) write() {
	home := placement.Shard(w.r.IntN(simShards))
	h := w.hosts[w.of[home][w.r.IntN(len(w.of[home]))]]
	index := dbadapter.Index(1 + w.r.IntN(simIndices))
	w.version++
	e := simEntry{version: w.version, code: Code(w.r.IntN(simShards))}
	switch w.r.IntN(6) {
	case 0, 1:
		e.code = Gone
	case 2:
		e.code = Shared
	}
	w.put(h, home, index, e)
}

func (w *world) step() {
	n := w.r.IntN(100)
	if n >= 92 && n <= 97 && w.r.IntN(100) >= w.chaos {
		n = 30 + w.r.IntN(20) // another poll
	}
	switch {
	case n < 10+w.chaos/8:
		w.write()
	case n < 30:
		home := placement.Shard(w.r.IntN(simShards))
		w.replicate(home, w.hosts[w.of[home][w.r.IntN(len(w.of[home]))]], w.hosts[w.of[home][w.r.IntN(len(w.of[home]))]])
	case n < 48:
		w.poll(w.anyHost().id)
	case n < 58:
		w.take(w.anyHost().id)
	case n < 88 && len(w.wire) > 0:
		i := w.r.IntN(len(w.wire))
		arrives := w.wire[i]
		w.wire = slices.Delete(w.wire, i, i+1)
		if w.r.IntN(30) == 0 {
			w.wire = append(w.wire, arrives) // and once more
		}
		if w.r.IntN(20) > 0 {
			arrives()
		}
	case n < 92:
		w.now += time.Duration(w.r.IntN(1500)) * time.Millisecond
	case n == 92:
		if w.r.IntN(4) > 0 {
			w.restart(w.anyHost())
			return
		}
		home := placement.Shard(w.r.IntN(simShards)) // all of a set is deleted
		for _, id := range w.of[home] {
			for index := dbadapter.Index(1); index <= simIndices; index++ {
				w.version++
				w.put(w.hosts[id], home, index, simEntry{version: w.version, code: Gone})
			}
		}
	case n == 93: // a host comes, or one that is not the last goes
		home := placement.Shard(w.r.IntN(simShards))
		if len(w.of[home]) > 2 {
			gone, left := w.of[home][0], w.of[home][1:]
			for _, other := range left {
				w.replicate(home, w.hosts[gone], w.hosts[other])
			}
			w.of[home] = slices.Clone(left)
			w.hosts[gone].host.Close(home)
			delete(w.hosts[gone].sets, home)
			delete(w.hosts[gone].open, home)
		} else {
			w.give(home, w.anyHost().id)
		}
		w.node.SetHosts(testLayout, map[placement.Shard][]roster.ID{home: w.of[home]})
	case n == 94: // a set that is not settled for a while
		h := w.anyHost()
		for _, home := range slices.Sorted(maps.Keys(h.sets)) {
			if w.r.IntN(2) == 0 {
				continue
			}
			if h.open[home] = !h.open[home]; h.open[home] {
				w.openSet(h, home)
			} else {
				h.host.Close(home)
			}
		}
	case n == 95 && !w.nested:
		if w.r.IntN(3) == 0 { // files that are older, each by itself
			for name, data := range w.disk.old {
				if w.r.IntN(2) == 0 {
					w.disk.files[name] = data
				}
			}
		}
		w.start()
	case n == 96:
		w.disk.old = maps.Clone(w.disk.files)
		w.disk.fails = w.r.IntN(4) == 0
		if w.r.IntN(4) == 0 {
			w.disk.bad = w.node.parts[w.r.IntN(simShards)].name()
		}
	case n == 97 && !w.nested:
		w.background(w.node.Save)
	case n >= 98 && !w.nested:
		if run := w.node.Work(); run != nil {
			w.background(run)
		}
	}
}

// background runs work of the node, during which the world goes on.
func (w *world) background(run func() error) {
	w.nested = true
	w.disk.step = func() {
		for range w.r.IntN(60) {
			w.step()
			w.check()
		}
	}
	failed := w.disk.unread + w.disk.unwritten
	if err := run(); err != nil && w.disk.unread+w.disk.unwritten == failed {
		w.t.Fatal(err)
	}
	w.nested, w.disk.step = false, func() {}
}
