package node

import (
	"errors"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/placement"
)

// located is a driver that has a locator and nothing else.
type located struct {
	WriterDriver
	locator *directory.Locator
	now     time.Duration
}

func (d *located) Locator() *directory.Locator { return d.locator }
func (d *located) Now() time.Duration          { return d.now }
func (d *located) Steady() time.Duration       { return d.now }

// newLocated returns a driver of a namespace whose locator has one host to hear, of all sets of the directory, and
// that host, which tells of no key.
func newLocated(t *testing.T, ns *Namespace) (*located, *directory.Host) {
	t.Helper()
	host := directory.NewHost(ns.rule.Shards, 1)
	host.SetLayout(1)
	hosts := map[placement.Shard][]ID{}
	for home := range placement.Shard(ns.rule.Shards) {
		host.Open(home, func(func(dbadapter.Index, directory.Code) bool) {})
		hosts[home] = []ID{"host"}
	}
	d := &located{locator: must(directory.New(directory.Config{Shards: ns.rule.Shards, Disk: files{}})), now: time.Hour}
	d.locator.SetHosts(1, hosts)
	return d, host
}

// hear has the locator hear all that the host tells.
func (d *located) hear(t *testing.T, host *directory.Host) {
	t.Helper()
	for turn := d.locator.Follow("host", false); ; {
		switch q := turn.Next(d.now).(type) {
		case *directory.Poll:
			if err := turn.Answered(host.News(q), d.now); err != nil {
				t.Fatal(err)
			}
			continue
		case *directory.Take:
			if err := turn.Answered(must(host.Block(q)), d.now); err != nil {
				t.Fatal(err)
			}
			continue
		}
		break
	}
	for run := d.locator.Work(); run != nil; run = d.locator.Work() {
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
}

// files are a locator's.
type files map[string][]byte

func (f files) Read(name string) ([]byte, error) { return f[name], nil }

func (f files) Write(name string, data []byte) error {
	f[name] = data
	return nil
}

// By placement writer a host writes a former member's record anew only in the shard that the directory
// names, as far as its locator knows: what another write has seen and hides is not to come back.
func TestAdoptsWhatTheDirectoryPlacesHere(t *testing.T) {
	const here, elsewhere = placement.Shard(3), placement.Shard(4)
	c := newShardCrew(t, []placement.Shard{here})
	set, ns := c.set(0, here), c.ns[0]
	adopts := func(key string) bool {
		r := must(set.get([]byte(key)))
		err := set.adopt(t.Context(), &r)
		if err != nil && !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		return err == nil
	}
	d, host := newLocated(t, ns)
	c.put(0, here, "tombstone")
	must(commit(set.Write(Draft{Record: dbadapter.Record{Key: []byte("tombstone"), Deleted: true}})))
	if !adopts("tombstone") {
		t.Error("a tombstone stays a former member's, and other hosts decline it")
	}
	want := map[string]bool{"here": true, "elsewhere": false, "nowhere": false, "shared": true}
	for key, code := range map[string]directory.Code{"here": directory.Code(here), "elsewhere": directory.Code(elsewhere), "nowhere": directory.Gone, "shared": directory.Shared} {
		c.put(0, here, key)
		home, index := ns.ToldAs([]byte(key))
		host.Set(home, index, code)
	}
	for key := range want {
		if adopts(key) {
			t.Errorf("%q, before there is a locator", key)
		}
	}
	ns.NewByWriter(d)
	for key := range want {
		if adopts(key) {
			t.Errorf("%q, before the host was heard", key)
		}
	}
	d.hear(t, host)
	for key, want := range want {
		if got := adopts(key); got != want {
			t.Errorf("%q: %t; the locator says %+v", key, got, ns.byWriter.Load().WhereIs([]byte(key)))
		}
		m := &ns.byWriter.Load().meetings
		if looks := m.shard(here).wanted; looks == want {
			t.Errorf("%q: a look is due: %t", key, looks)
		}
		m.of = nil
	}
}

// What a member writes after a record that a former member has written wins over it, also where a host
// adopts that later, and has not heard of the write; the former member's record is a listed conflict.
func TestAdoptionKeepsTheOrder(t *testing.T) {
	c := newCrew(t, 3)
	c.put(0, "key", "1")
	c.round()
	if err := c.ns[0].Remove(t.Context(), c.machines[2].ID); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	c.put(2, "key", "of a former member")
	if err := c.turn(1, 2); err != nil { // neither has heard
		t.Fatal(err)
	}
	c.pass(time.Second)
	c.put(0, "key", "later")
	c.pass(time.Minute)
	set := c.ns[1].Sets()[0]
	r := must(set.get([]byte("key")))
	if err := set.adopt(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	c.round(0, 1)
	c.round(0, 1)
	listed := 0
	for i := range 2 {
		if r := must(get(c.ns[i], "key")); string(r.Value) != "later" {
			t.Errorf("%d holds %q of %s", i, r.Value, r.Version)
		}
		listed += c.ns[i].Sets()[0].Kept()
	}
	if listed == 0 {
		t.Error("what the former member wrote is listed nowhere")
	}
}
