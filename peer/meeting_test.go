package peer

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/directory"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/route"
)

// Two nodes write a key first while they are apart. In the meantime each gives one of the two,
// and is not sure; after the cut one is left at all nodes, and the other one is a conflict in
// the list of each host of its shard.
func TestFirstWritesMeet(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters()
	won, lost := fmt.Sprint("by ", b), fmt.Sprint("by ", a)
	shards := map[int]placement.Shard{a: c.spaces[a].core.OwnShard([]byte(key)), b: c.spaces[b].core.OwnShard([]byte(key))}
	if shards[a] == shards[b] {
		t.Fatalf("both write to shard %d", shards[a])
	}
	c.part(b)
	c.follow()
	c.pass(3 * directory.Fresh) // what was heard before the cut is old
	for _, i := range []int{a, b} {
		if _, err := c.put(i, key, fmt.Sprint("by ", i), 1); err != nil {
			t.Fatalf("node %d writes first: %v", i, err)
		}
		c.now.Add(int64(time.Second)) // the other one's version is the greater
	}
	meantime := func(when string, values ...string) {
		t.Helper()
		for i := range c.nodes {
			got, err := c.get(i, key)
			if !errors.Is(err, ErrUnsure) || got != "" && !slices.Contains(values, got) {
				t.Errorf("%s node %d gives %q, %v", when, i, got, err)
			}
			if got == "" && (i == a || i == b) {
				t.Errorf("%s node %d has written it, and gives nothing: %v", when, i, err)
			}
		}
	}
	meantime("apart,", won, lost)
	c.heal()
	meantime("healed,", won, lost)
	for range 20 {
		c.meet()
	}
	for i := range c.nodes {
		if got, err := c.get(i, key); err != nil || got != won {
			t.Errorf("node %d reads %q, %v", i, got, err)
		}
		if got := c.scanned(i, key); !slices.Equal(got, []string{won}) {
			t.Errorf("node %d scans %q", i, got)
		}
	}
	layout, _, err := c.spaces[a].core.Layout()
	c.must(err)
	listed := c.conflicts(key)
	for i, n := range c.nodes {
		want := []string(nil)
		if layout.Has(shards[a], node.ID(n.ID())) {
			want = []string{lost}
		}
		if !slices.Equal(listed[i], want) {
			t.Errorf("node %d lists %q, want %q", i, listed[i], want)
		}
	}
	// A person takes back what has lost: it is written where the key is.
	for k, err := range c.spaces[a].Conflicts(t.Context()) {
		c.must(err)
		if _, err := c.spaces[a].RestoreKept(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		break
	}
	for range 3 {
		c.round()
	}
	c.follow()
	for i, ns := range c.spaces {
		if f, err := ns.lookUp(t.Context(), []byte(key), false); err != nil || !f.Sure || string(f.Record.Value) != lost || f.Shard != shards[b] {
			t.Errorf("restored: node %d reads %+v, %v", i, f, err)
		}
	}
}

// An entry whose author has ended before it wrote the record hides a record that was acknowledged
// apart from it: that one is written anew.
func TestEntryWithoutRecordGivesWay(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters()
	c.part(b)
	c.follow()
	_, err := c.put(a, key, "acknowledged", 1)
	c.must(err)
	c.now.Add(int64(time.Second))
	c.entered(b, &dbadapter.Record{Key: []byte(key)}, c.spaces[b].core.OwnShard([]byte(key)))
	c.heal()
	for range 20 {
		c.round()
		c.follow()
		for i, ns := range c.spaces {
			if got, err := c.get(i, key); got != "acknowledged" && !errors.Is(err, ErrUnsure) {
				t.Errorf("node %d reads %q, %v", i, got, err)
			}
			ns.follows.byWriter.Meet(t.Context())
		}
		c.pass(node.AbsentFor / 8)
	}
	c.follow()
	c.readEverywhere(key, "acknowledged")
	if listed := c.conflicts(key); len(listed) != 0 {
		t.Errorf("conflicts: %v", listed)
	}
}

// What a host of a shard has not heard of may stand in the place of what has lost: without the other
// host nothing recedes, and no record is written anew without the other host of the directory.
func TestMeetingsTakeAllHosts(t *testing.T) {
	for name, restores := range map[string]bool{"recede": false, "restore": true} {
		t.Run(name, func(t *testing.T) {
			c := newWriterCluster(t, 4)
			a, b, third, key := c.firstWriters()
			own := c.spaces[a].core.OwnShard([]byte(key))
			away := third
			if restores {
				away = b
				_, err := c.put(a, key, "1", route.All)
				c.must(err)
				// Another node's entry leads to a shard that b has no part in, and to no record.
				for shard := range placement.Shard(8) {
					if shard != own && !slices.Contains(c.holding(key, shard), b) {
						c.now.Add(int64(time.Second))
						c.entered(a, &dbadapter.Record{Key: []byte(key)}, shard)
						break
					}
				}
			} else {
				c.part(b)
				for _, i := range []int{a, b} {
					_, err := c.put(i, key, fmt.Sprint("by ", i), 1)
					c.must(err)
					c.now.Add(int64(time.Second))
				}
				c.heal()
			}
			c.round()
			c.round()
			c.follow()
			sh, err := c.spaces[a].numbered(own)
			c.must(err)
			before, err := sh.set.Held([]byte(key))
			c.must(err)
			changed := func() bool {
				c.meet()
				c.pass(node.AbsentFor / 4)
				now, err := sh.set.Held([]byte(key))
				c.must(err)
				return now.Version != before.Version
			}
			c.part(away)
			c.now.Add(int64(2 * node.CurrentFor))
			for range 8 {
				if changed() {
					t.Fatalf("node %d has decided without node %d", a, away)
				}
			}
			c.heal()
			for tries := 0; !changed(); tries++ {
				if tries == 60 {
					t.Fatal("nothing is decided with all hosts")
				}
			}
		})
	}
}

// What is kept of entries does not hold a set of the directory, and is shown to no person.
func TestConflictsOfEntriesAreNotKept(t *testing.T) {
	c := newWriterCluster(t, 3)
	key := []byte("key")
	for _, i := range []int{0, 1} { // without what the other one has written
		ns := c.spaces[i]
		c.now.Add(int64(time.Second))
		shard := ns.core.OwnShard(key)
		record, err := ns.core.RemoteIn(key, shard).Make(node.Draft{Record: dbadapter.Record{Key: key}})
		c.must(err)
		entries := ns.core.RemoteIn(key, ns.core.Entries(key))
		entry, err := entries.Entry(record, shard)
		c.must(err)
		for j, o := range c.spaces {
			if at := o.core.RemoteIn(key, entries.Shard()); at.Here() != nil {
				if _, err := at.HoldHere(t.Context(), entry, route.Manner{Insists: true}); err != nil {
					t.Fatalf("node %d: %v", j, err)
				}
			}
		}
	}
	kept := 0
	for _, ns := range c.spaces {
		for _, sh := range ns.shards() {
			kept += sh.set.Store.KeptCount(dbadapter.KeptConflict)
			if n := sh.set.Kept(); n != 0 {
				t.Errorf("%d entries hold set %d", n, sh.set.Shard())
			}
		}
		if n := ns.Info().Conflicts; n != 0 {
			t.Errorf("%d conflicts are told", n)
		}
	}
	if kept == 0 {
		t.Error("the two entries did not meet")
	}
}

// What a host of the directory does not tell of, or tells otherwise than the others, is in a metric
// that names it, and in the log once that lasts.
func TestApartHostIsNamed(t *testing.T) {
	c := newWriterCluster(t, 3)
	log := &bytes.Buffer{}
	ns := c.spaces[0]
	ns.node.log = slog.New(slog.NewTextHandler(log, nil))
	var id ID
	for _, n := range c.nodes {
		if !slices.Contains(ns.core.Tellers().Of[0], node.ID(n.ID())) {
			id = n.ID() // of which one set at least is none
		}
	}
	apart := func() (sets float64) {
		families, err := c.metrics[0].Gather()
		c.must(err)
		for _, f := range families {
			for _, m := range f.Metric {
				for _, label := range m.Label {
					if f.GetName() == "syncd_directory_apart_sets" && label.GetName() == "host" && label.GetValue() == id.String() {
						sets += m.GetGauge().GetValue()
					}
				}
			}
		}
		return sets
	}
	if got := apart(); got != 0 {
		t.Errorf("%v sets of an honest host are apart", got)
	}
	status := &directory.Status{Host: node.ID(id), Sets: 2, Apart: 1}
	for range 3 {
		c.pass(apartFor / 2)
		status.Heard = c.time
		ns.follows.tell(ns, status)
	}
	if got := log.String(); strings.Count(got, id.String()) != 1 || !strings.Contains(got, "hides entries") {
		t.Errorf("the log: %q", got)
	}
	tellers := ns.core.Tellers()
	hosts := maps.Clone(tellers.Of)
	stranger := node.ID(id)
	for home := range hosts {
		if !slices.Contains(hosts[home], stranger) {
			hosts[home] = append(slices.Clone(hosts[home]), stranger) // which it does not tell of
		}
	}
	ns.follows.locator.SetHosts(tellers.Layout, hosts)
	if got := apart(); got == 0 {
		t.Error("no set is apart of which the host does not tell")
	}
}

// Locate and Why find the shard in which a key was written first.
func TestWriterLocate(t *testing.T) {
	c := newWriterCluster(t, 3)
	_, err := c.put(0, "key", "1", 2)
	c.must(err)
	c.follow()
	shard := int(c.spaces[0].core.OwnShard([]byte("key")))
	for i, ns := range c.spaces {
		for _, all := range []bool{false, true} {
			if l, err := ns.Locate(t.Context(), []byte("key"), all); err != nil || l.Shard != shard || !l.Sure || l.Record == nil || len(l.Hosts) != 2 {
				t.Errorf("node %d, of all %t: %+v, %v", i, all, l, err)
			} else if all {
				entries := 0
				for _, at := range l.Asked {
					switch {
					case at.Entry:
						entries++
						if at.Shard != int(ns.core.Home([]byte("key"))) || at.Names != shard || at.Version != l.Record.Version {
							t.Errorf("node %d asked for the entry: %+v", i, at)
						}
					case at.Shard != shard || at.Version != l.Record.Version:
						t.Errorf("node %d asked for the record: %+v", i, at)
					}
				}
				if entries == 0 || entries == len(l.Asked) {
					t.Errorf("node %d: %d of %d were asked for the entry", i, entries, len(l.Asked))
				}
			}
		}
		if l, err := ns.Locate(t.Context(), []byte("none"), false); err != nil || l.Record != nil || !l.Sure || l.Shard != int(ns.core.Home([]byte("none"))) {
			t.Errorf("node %d, of a key that is not there: %+v, %v", i, l, err)
		}
	}
	why, err := c.spaces[0].Why(t.Context(), []byte("key"))
	if err != nil || len(why) != 1 || why[0].Standing != StandingSame {
		t.Errorf("%+v, %v", why, err)
	}
	if _, err := c.spaces[0].Why(t.Context(), []byte("none")); !errors.Is(err, ErrNotFound) {
		t.Errorf("why of a key that is nowhere: %v", err)
	}
}

// A record that no entry leads to is written anew with one: its entry was lost, or was that of a
// delete that was not finished, and is collected. Until then scans gave it, and no read found it.
func TestRecordWithoutEntry(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 3)
	const key = "without an entry"
	by := 0 // a node that hosts a shard
	for len(c.numbers(by)) == 0 {
		by++
	}
	value := fmt.Sprint("by ", by)
	c.shardCluster.put(by, c.spaces[by].core.OwnShard([]byte(key)), key)
	c.round()
	c.follow()
	deleted := "deleted in full"
	_, err := c.put(0, deleted, "1", AckAll)
	c.must(err)
	c.follow()
	_, err = c.spaces[1].Delete(t.Context(), []byte(deleted), Acks(AckAll))
	c.must(err)
	begun := c.time
	for c.time < begun+node.AbsentFor+10*node.MeetingsSoon {
		if got, err := c.get(1, key); c.time < begun+node.AbsentFor && err == nil {
			t.Fatalf("after %v it reads %q", c.time-begun, got)
		}
		c.meet()
		c.pass(node.MeetingsSoon)
	}
	c.round()
	c.follow()
	for i := range c.nodes {
		if got, err := c.get(i, key); err != nil || got != value {
			t.Errorf("node %d reads %q, %v", i, got, err)
		}
		if got := c.scanned(i, key); !slices.Equal(got, []string{value}) {
			t.Errorf("node %d scans %q", i, got)
		}
		if got, err := c.get(i, deleted); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDeleted) {
			t.Errorf("node %d reads what was deleted: %q, %v", i, got, err)
		}
	}
	if listed := c.conflicts(key); len(listed) != 0 {
		t.Errorf("conflicts: %v", listed)
	}
}
