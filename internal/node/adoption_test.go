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
		err := set.adopt(t.Context(), &dbadapter.Write{Record: must(dbadapter.Hash(set.Keys.Hasher, r)), If: &r.Version})
		if err != nil && !errors.Is(err, errLater) {
			t.Fatal(err)
		}
		return err == nil
	}
	host := directory.NewHost(ns.rule.Shards, 1)
	host.SetLayout(1)
	hosts := map[placement.Shard][]ID{}
	for home := range placement.Shard(ns.rule.Shards) {
		host.Open(home, func(func(dbadapter.Index, directory.Code) bool) {})
		hosts[home] = []ID{"host"}
	}
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
	d := &located{locator: must(directory.New(directory.Config{Shards: ns.rule.Shards, Disk: files{}})), now: time.Hour}
	ns.NewByWriter(d)
	d.locator.SetHosts(1, hosts)
	for key := range want {
		if adopts(key) {
			t.Errorf("%q, before the host was heard", key)
		}
	}
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
