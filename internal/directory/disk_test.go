package directory

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// badDisk cannot read one file until that is written anew, which takes other blocks of the disk; and
// cannot write those that are full.
type badDisk struct {
	files map[string][]byte
	bad   string
	full  func(name string) bool
	tries int // of writes
}

func (d *badDisk) Read(name string) ([]byte, error) {
	if name == d.bad {
		return nil, errors.New("input/output error")
	}
	return d.files[name], nil
}

func (d *badDisk) Write(name string, data []byte) error {
	d.tries++
	if d.full != nil && d.full(name) {
		return errors.New("the disk is full")
	}
	if d.files[name] = data; name == d.bad {
		d.bad = ""
	}
	return nil
}

// onDisk is a Locator of the sets of one host, over a disk.
type onDisk struct {
	*Locator
	sets int
	t    *testing.T
	host *Host
	disk *badDisk
	now  time.Duration
}

const theHost = roster.ID("a host")

func newOnDisk(t *testing.T, sets int) *onDisk {
	o := &onDisk{t: t, sets: sets, host: NewHost(sets, 7), disk: &badDisk{files: map[string][]byte{}}}
	o.host.SetLayout(testLayout)
	for s := range placement.Shard(o.sets) {
		o.host.Open(s, func(func(dbadapter.Index, Code) bool) {})
	}
	o.start()
	return o
}

// start starts the node, from what is on its disk.
func (o *onDisk) start() {
	o.t.Helper()
	var err error
	if o.Locator, err = New(Config{Shards: o.sets, Disk: o.disk, Workers: 1}); err != nil {
		o.t.Fatal(err)
	}
	of := map[placement.Shard][]roster.ID{}
	for s := range placement.Shard(o.sets) {
		of[s] = []roster.ID{theHost}
	}
	o.SetHosts(testLayout, of)
}

// follow asks the host for all that it tells, a second later.
func (o *onDisk) follow() {
	o.t.Helper()
	o.now += time.Second
	turn := o.Follow(theHost, false)
	for m := turn.Next(o.now); m != nil; m = turn.Next(o.now) {
		var answer Message
		switch m := m.(type) {
		case *Poll:
			answer = o.host.News(m)
		case *Take:
			block, err := o.host.Block(m)
			if err != nil {
				o.t.Fatal(err)
			}
			answer = block
		}
		if err := turn.Answered(answer, o.now); err != nil {
			o.t.Fatal(err)
		}
	}
}

// change adds keys to each set, of which the node hears.
func (o *onDisk) change(from, to dbadapter.Index) {
	o.t.Helper()
	for s := range placement.Shard(o.sets) {
		for i := from; i < to; i++ {
			o.host.Set(s, i, 1)
		}
	}
	o.follow()
}

// work does what is to be done, ten pieces of it at most, and returns how many of them failed.
func (o *onDisk) work() (failed int) {
	for range 10 {
		run := o.Work()
		if run == nil {
			break
		}
		if run() != nil {
			failed++
		}
	}
	return failed
}

// located is how many sets a key is found in that each of them has.
func (o *onDisk) located(index dbadapter.Index) (n int) {
	for s := range placement.Shard(o.sets) {
		if a := o.Locate(s, index, o.now); a.Where == In && a.Shard == 1 {
			n++
		}
	}
	return n
}

// A file that cannot be read any more while the node runs costs that set a transfer, of which the work
// tells: the other sets are written, a base is built, and the file is written anew. No host is blamed,
// though what the set's host said was in question.
func TestUnreadableFile(t *testing.T) {
	o := newOnDisk(t, 4)
	o.change(0, 1100)
	o.work()
	o.disk.bad = o.parts[0].name()
	o.change(1100, 20000)
	o.parts[0].question(theHost)
	if n := o.work(); n != 1 {
		t.Errorf("%d pieces of work failed", n)
	}
	if n := o.Damaged(); n != 1 {
		t.Errorf("%d copies count as damaged", n)
	}
	for s, p := range o.parts[1:] {
		if len(p.over) > 0 || !p.inBase {
			t.Errorf("set %d: %d changes are not in its file; in the base: %v", 1+s, len(p.over), p.inBase)
		}
	}
	o.follow()
	if n := o.work(); n > 0 || o.disk.bad != "" {
		t.Errorf("%d pieces of work failed, and the file is not written anew: %v", n, o.disk.bad)
	}
	if n := o.located(19999); n != 4 {
		t.Errorf("a key is found in %d sets of 4", n)
	}
	if s := o.Status()[0]; s.Faults > 0 {
		t.Errorf("%+v", s)
	}
}

// A node starts though a file cannot be read: that set is fetched anew.
func TestStartWithUnreadableFile(t *testing.T) {
	o := newOnDisk(t, 4)
	o.change(0, 1100)
	o.work()
	o.disk.bad = o.parts[3].name()
	o.start()
	if n := o.Damaged(); n != 1 {
		t.Errorf("%d copies count as damaged", n)
	}
	o.follow()
	if n := o.work(); n > 0 || o.located(1099) != 4 {
		t.Errorf("%d pieces of work failed; a key is found in %d sets of 4", n, o.located(1099))
	}
}

// Files that cannot be written keep neither others from being written, nor a base from being built of
// what is in memory; and a piece of work gives up after some of them.
func TestFullDisk(t *testing.T) {
	const sets, full = 16, 12
	o := newOnDisk(t, sets)
	o.disk.full = func(name string) bool { return name < o.parts[full].name() }
	o.change(0, 1100)
	for range sets {
		o.follow() // a set after the other comes
		o.disk.tries = 0
		run := o.Work()
		if run == nil {
			t.Fatal("no work is due")
		}
		if run() == nil || o.disk.tries > sets-full+maxUnsaved {
			t.Fatalf("%d files were to be written", o.disk.tries)
		}
	}
	if n := len(o.disk.files); n != sets-full {
		t.Errorf("%d files are written", n)
	}
	if n, s := o.located(1099), o.Stats(); n != sets || s.Exact > 0 {
		t.Errorf("a key is found in %d sets, and %d entries are in no base", n, s.Exact)
	}
	o.disk.full = nil
	if o.work(); len(o.disk.files) != sets {
		t.Errorf("there is room, and %d files are written", len(o.disk.files))
	}
}
