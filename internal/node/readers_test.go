package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/route"
)

// readers are movers that read over shards and by locators while shards move, networks are cut, members join
// and lose the right to write, and machines start again. Questions and answers of a read come late,
// beside all of that.
type readers struct {
	*movers
	locators              []*directory.Locator
	disks                 []files
	acks                  []acknowledged
	reads                 []*underWay
	keys                  []string
	told                  map[[2]int]uint64 // reader, teller: by which epoch it told what was heard last
	demoted               map[int]bool
	roles                 bool // some lose the right to write
	sure, unsure, nowhere int
	trace                 []string
	seed                  int
}

// acknowledged is a write that a host has acknowledged.
type acknowledged struct {
	key     string
	version dbadapter.Version
	at      time.Duration
	holder  int
	epoch   uint64 // of the layout by which it is a host
	deletes bool
}

// underWay is a read.
type underWay struct {
	reader  int
	key     string
	began   time.Duration
	remote  *Remote
	get     *route.Get
	times   *route.Times
	epoch   uint64 // the greatest of the layouts of those that took part
	waiting []func()
	log     []string
}

func (z *readers) logf(format string, args ...any) {
	z.trace = append(z.trace, fmt.Sprintf("%6.1f ", z.now().Seconds())+fmt.Sprintf(format, args...))
}

func (z *readers) now() time.Duration { return z.all[0].clock.Sub(noon) }

func (z *readers) index(id ID) int {
	return slices.IndexFunc(z.all, func(m *mover) bool { return m.ID == id })
}

func (z *readers) add() {
	z.join()
	m := z.all[len(z.all)-1]
	m.Elapsed = func() time.Duration { return m.clock.Sub(noon) }
	z.disks = append(z.disks, files{})
	z.locators = append(z.locators, nil)
	z.locator(len(z.all) - 1)
}

func (z *readers) locator(i int) {
	z.locators[i] = must(directory.New(directory.Config{Shards: z.rule.Shards, Seed: 1, Disk: z.disks[i], Workers: 1}))
}

func (z *readers) cut(i, j int) bool {
	return z.all[i].gone || z.all[j].gone || z.apart[[2]int{min(i, j), max(i, j)}]
}

func (z *readers) epoch(i int) uint64 {
	_, stated, _ := z.all[i].ns.Layout()
	return stated.Epoch
}

func (z *readers) heed(i int) {
	tl := z.all[i].ns.Tellers()
	z.locators[i].SetHosts(tl.Layout, tl.Of)
}

// poll asks a teller once.
func (z *readers) poll(i, j int) {
	if i != j && z.cut(i, j) || z.all[i].gone {
		return
	}
	if i != j && z.all[j].ns.answers(z.all[i].ID, z.all[j].ns.peerPaused) != nil {
		return
	}
	l := z.locators[i]
	turn := l.Follow(z.all[j].ID, false)
	for q := turn.Next(z.now()); q != nil; q = turn.Next(z.now()) {
		answer, err := z.all[j].ns.Tell(z.t.Context(), q, nil)
		if err != nil {
			return
		}
		if err := turn.Answered(answer, z.now()); err != nil && !errors.Is(err, directory.ErrNoNews) {
			z.t.Fatalf("%d polls %d: %v", i, j, err)
		}
	}
	z.told[[2]int{i, j}] = z.epoch(j)
	for run := l.Work(); run != nil; run = l.Work() {
		if err := run(); err != nil {
			z.t.Fatal(err)
		}
	}
}

// write writes or deletes a key at a machine that hosts it.
func (z *readers) write() {
	i := z.IntN(len(z.all))
	m := z.all[i]
	if m.gone || z.demoted[i] {
		return
	}
	key := z.keys[z.IntN(len(z.keys))]
	set := m.held(z.home(key))
	if set == nil || m.ns.elsewhere(set.shard) != nil {
		return
	}
	deletes := z.IntN(3) == 0
	d := draft(key, "value")
	if deletes {
		d = Draft{Record: dbadapter.Record{Key: []byte(key), Deleted: true}}
		if held, err := set.Held([]byte(key)); err != nil || held == nil || held.Deleted {
			return
		}
	}
	v, err := commit(set.Write(d))
	if err != nil {
		return
	}
	z.logf("%d puts %s (home %d) %x, deleted %t", i, key, z.home(key), v.Clock, deletes)
	if !z.demoted[i] {
		z.acks = append(z.acks, acknowledged{key, v, z.now(), i, z.epoch(i), deletes})
	}
}

// begin begins a read.
func (z *readers) begin() {
	i := z.IntN(len(z.all))
	m := z.all[i]
	if m.gone {
		return
	}
	key := z.keys[z.IntN(len(z.keys))]
	rd := &underWay{reader: i, key: key, began: z.now(), times: &route.Times{}, epoch: z.epoch(i)}
	rd.remote = m.ns.Remote([]byte(key))
	o, err := rd.remote.GetOptions()
	if err != nil {
		return
	}
	if o.Here != nil && o.Here.Current && o.Here.Record != nil {
		z.check("own", rd, o.Here.Record, true)
		return
	}
	o.Deadline = z.now() + time.Minute
	rd.get = route.NewGet(rd.times, rd.remote.Candidates(func(id ID) bool { return z.IntN(2) == 0 }), o, z.now())
	z.logf("%d begins to read %s", i, key)
	z.reads = append(z.reads, rd)
}

// goOn takes a read one step on: a question, an answer, or its end.
func (z *readers) goOn(at int) {
	rd := z.reads[at]
	if z.all[rd.reader].gone {
		z.reads = slices.Delete(z.reads, at, at+1)
		return
	}
	if len(rd.waiting) > 0 && z.IntN(2) == 0 {
		n := z.IntN(len(rd.waiting))
		do := rd.waiting[n]
		rd.waiting = slices.Delete(rd.waiting, n, n+1)
		do()
		return
	}
	switch step := rd.get.Next(z.now()); step.Do {
	case route.Ask:
		j := z.index(step.Peer)
		if z.cut(rd.reader, j) {
			rd.get.Failed(step.Peer, errors.New("cut"), false, z.now())
			return
		}
		ask, err := rd.remote.AskRecord(step.Peer)
		if err != nil {
			rd.get.Failed(step.Peer, err, false, z.now())
			return
		}
		deliver := func() {
			m := z.all[rd.reader].routed(z.t, z.all[j].machine, ask)
			rd.epoch = max(rd.epoch, z.epoch(j))
			note := func() {
				rd.epoch = max(rd.epoch, z.epoch(rd.reader))
				a, err := rd.remote.Record(step.Peer, ask, m)
				rd.log = append(rd.log, fmt.Sprintf("%.1f: %d: %+v %v", z.now().Seconds(), j, a, err))
				if err != nil {
					rd.get.Failed(step.Peer, err, false, z.now())
				} else {
					rd.get.Answered(step.Peer, a, z.now())
				}
			}
			if z.IntN(2) == 0 {
				note()
			} else {
				rd.waiting = append(rd.waiting, note)
			}
		}
		if z.IntN(2) == 0 {
			deliver()
		} else {
			rd.waiting = append(rd.waiting, deliver)
		}
	case route.Over:
		f, _ := rd.get.Result(z.now())
		z.reads = slices.Delete(z.reads, at, at+1)
		z.check("read", rd, f.Record, f.Sure)
	}
}

// check fails the test where a sure answer is older than what was acknowledged before.
func (z *readers) check(what string, rd *underWay, r *dbadapter.Record, sure bool) {
	if !sure {
		z.unsure++
		return
	}
	z.sure++
	for _, a := range z.acks {
		if a.key != rd.key || a.at > rd.began-CurrentFor-time.Millisecond || a.epoch > rd.epoch {
			continue
		}
		if (r == nil || r.Deleted) && slices.ContainsFunc(z.acks, func(b acknowledged) bool { return b.key == a.key && b.deletes && b.version.Compare(a.version) >= 0 }) {
			continue // it may be collected since
		}
		if r == nil || r.Version.Compare(a.version) < 0 {
			for _, l := range z.trace {
				z.t.Log(l)
			}
			for _, l := range rd.log {
				z.t.Log("   ", l)
			}
			z.t.Fatalf("-reads.worlds 1 -reads.seed %d: %s at %d of %s (home %d), begun at %.1f: %v for sure, and %d has acknowledged %x at %.1f by epoch %d", z.seed, what, rd.reader, rd.key, z.home(rd.key), rd.began.Seconds(), r, a.holder, a.version.Clock, a.at.Seconds(), a.epoch)
		}
	}
}

// readNowhere asks a locator.
func (z *readers) readNowhere() {
	i := z.IntN(len(z.all))
	if z.all[i].gone {
		return
	}
	key := z.keys[z.IntN(len(z.keys))]
	z.heed(i)
	if !z.all[i].ns.Nowhere(z.locators[i], []byte(key), z.now()) {
		return
	}
	z.nowhere++
	rd := &underWay{reader: i, key: key, began: z.now(), epoch: z.epoch(i)}
	for _, id := range z.all[i].ns.Tellers().Of[z.home(key)] {
		j := z.index(id)
		rd.epoch = max(rd.epoch, z.told[[2]int{i, j}])
		rd.log = append(rd.log, fmt.Sprintf("teller %d at epoch %d, now %d", j, z.told[[2]int{i, j}], z.epoch(j)))
	}
	z.check("nowhere", rd, nil, true)
}
