package shards

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func (c *cluster) found(h *host, key string) Found {
	c.t.Helper()
	f, err := h.shards.Get(c.ctx, []byte(key), GetOptions{Level: quorum.One})
	c.must(err)
	return f
}

// A node that is no host follows the shards: a key that there is not takes no request, whatever one host does.
func TestFollow(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		h := c.hosts[3]
		c.must(h.shards.OpenLocator(&locator.Memory{}, 0, nil))
		c.running.Go(func() { h.shards.Follow(c.ctx, func(err error) { t.Error(err) }) })
		write := func(by *host, key string) {
			by.puts(key, "v", quorum.All)
		}
		write(c.hosts[0], "a held")
		if c.found(h, "a none").Nowhere {
			t.Error("nowhere, of which nothing was heard")
		}
		time.Sleep(5 * time.Second)
		if !c.found(h, "a none").Nowhere || c.found(h, "a held").Record == nil {
			t.Error("a key that there is not is not nowhere, or one is that there is")
		}
		at := h.shards.Locator.Status(0, h.Now()).Host
		write(c.hosts[1], "a new")
		write(h, "b its own")
		if c.found(h, "b its own").Record == nil {
			t.Error("what it has written is nowhere")
		}
		for i, o := range c.hosts {
			if o.ID == at {
				c.set(down, i)
			}
		}
		time.Sleep(8 * time.Second)
		c.found(h, "a none")
		time.Sleep(2 * time.Second)
		if s := h.shards.Locator.Status(0, h.Now()); s.Host == at || !s.Fresh || c.found(h, "a new").Record == nil || !c.found(h, "a none").Nowhere {
			t.Errorf("once a host is down: %+v", s)
		}
		c.set(up, 0, 1, 2)
	})
}

// fed asks the node for its feed, as a peer does.
func fed(t *testing.T, ns *node.Namespace, m locator.Message) locator.Message {
	t.Helper()
	data := must(locator.Append(nil, m, ns.Rule().Shards))
	a := must(answerFeed(t.Context(), ns, &wire.AskFeed{Message: data}))
	if said, ok := a.(*wire.FeedAnswer); ok {
		return must(locator.Parse(said.Message, ns.Rule().Shards))
	}
	return nil
}

// newsOf are the news of one set.
func newsOf(t *testing.T, ns *node.Namespace, since locator.Since) locator.SetNews {
	t.Helper()
	return fed(t, ns, &locator.Poll{Mark: rowMark(ns, since.Set), Sets: []locator.Since{since}}).(*locator.News).Sets[0]
}

// A host gives the pages of a set, and what has changed since: what there is now, tombstones too. What the asker
// has is not sent again.
func TestFeed(t *testing.T) {
	inClusterOf(t, &placement.Rule{Kind: placement.Prefix, Shards: 4, Replicas: 1, Locator: true, Prefixes: []placement.PrefixShard{{Prefix: []byte("a"), Shard: 3}}}, 1, func(t *testing.T, c *cluster) {
		ns := c.hosts[0].ns
		set := ns.Held(3)
		write := func(from, to int, deleted bool) {
			for ; from < to; from++ {
				c.hosts[0].alone(fmt.Sprint("a", from), map[bool]string{false: "value"}[deleted])
			}
		}
		entry := func(i int, c locator.Code) locator.Entry {
			_, index := indexOf(ns, fmt.Appendf(nil, "a%d", i))
			return locator.NewEntry(index, c)
		}
		write(0, 20, false)
		take := &locator.Take{Mark: rowMark(ns, 3), Set: 3}
		page := fed(t, ns, take).(*locator.Page)
		var want []locator.Entry
		for i := range 20 {
			want = append(want, entry(i, 3))
		}
		slices.Sort(want)
		if !slices.Equal(page.Entries, want) || page.Next != 0 || page.Log != uint64(set.Store.Log()) || page.Seq != 20 {
			t.Fatalf("%+v", page)
		}
		since := locator.Since{Set: 3, Log: page.Log, Seq: page.Seq}
		if n := newsOf(t, ns, since); n.Said != locator.Same {
			t.Errorf("nothing has changed: %+v", n)
		}
		take.Upto, take.Hash = want[9].Index(), locator.HashOf(want[:9])
		if p := fed(t, ns, take).(*locator.Page); !p.Equal || len(p.Entries) != 0 {
			t.Errorf("what the asker has is sent: %+v", p)
		}
		take.Hash++
		if p := fed(t, ns, take).(*locator.Page); p.Equal || len(p.Entries) != 20 {
			t.Errorf("what the asker has not is not sent: %+v", p)
		}

		write(0, 1, false) // over what is there: no news
		write(20, 22, false)
		write(2, 3, true) // a tombstone is a key
		must(set.Store.Apply(t.Context(), []dbadapter.Write{{Record: must(dbadapter.Hash(set.Keys.Hasher, *must(set.Held([]byte("a5"))))), Action: dbadapter.Collect}}))
		want = []locator.Entry{entry(20, 3), entry(21, 3), entry(5, locator.Gone)}
		slices.Sort(want)
		if n := newsOf(t, ns, since); n.Said != locator.Changed || n.To != 25 || n.More || !slices.Equal(n.Changes, want) {
			t.Errorf("the news: %+v, want %v", n, want)
		}
		for what, s := range map[string]locator.Since{
			"another log": {Set: 3, Log: page.Log + 1, Seq: 20}, "behind its end": {Set: 3, Log: page.Log, Seq: 26},
		} {
			if n := newsOf(t, ns, s); n.Said != locator.OtherLog {
				t.Errorf("a place in %s: %+v", what, n)
			}
		}
	})
}

// A host answers by the asker's row alone, and only while it is whole. A set that it cannot read it leaves
// to another host.
func TestFeedOfWholeHosts(t *testing.T) {
	inClusterOf(t, &placement.Rule{Kind: placement.Hash, Shards: 4, Replicas: 1, Locator: true}, 1, func(t *testing.T, c *cluster) {
		ns := c.hosts[0].ns
		both := []locator.Since{{Set: 0, Log: uint64(ns.Held(0).Store.Log())}, {Set: 1, Log: uint64(ns.Held(1).Store.Log())}}
		for _, m := range []locator.Message{&locator.Poll{Mark: rowMark(ns, 0), Sets: both}, &locator.Take{Mark: rowMark(ns, 0), Set: 1}} {
			if answer := fed(t, ns, m); answer != nil {
				t.Errorf("by another row: %+v", answer)
			}
		}
		whole := ns.Held(1).Store
		ns.Held(1).Store = unreadable{whole}
		if n := fed(t, ns, &locator.Poll{Mark: rowMark(ns, 0, 1), Sets: both}).(*locator.News); n.Sets[0].Said != locator.Same || n.Sets[1].Said != locator.NotWhole {
			t.Errorf("one cannot be read: %+v", n)
		}
		ns.Held(1).Store = whole
		for _, bad := range [][]byte{nil, {9}, must(locator.Append(nil, &locator.News{}, 4))} {
			if _, err := answerFeed(t.Context(), ns, &wire.AskFeed{Message: bad}); !errors.Is(err, reconcile.ErrProtocol) {
				t.Errorf("%x: %v", bad, err)
			}
		}
		if row := leads(ns, 0); len(row.Hosts) != 0 {
			t.Errorf("a whole host follows %v", row.Hosts)
		}
		c.hosts[0].lacks(0)
		ns = c.hosts[0].ns
		n := fed(t, ns, &locator.Poll{Mark: rowMark(ns, 0, 1), Sets: both}).(*locator.News)
		if n.Sets[0].Said != locator.NotWhole || n.Sets[1].Said != locator.Same {
			t.Errorf("one is not whole: %+v", n)
		}
		if p := fed(t, ns, &locator.Take{Mark: rowMark(ns, 0), Set: 0}).(*locator.Page); !p.NotWhole {
			t.Errorf("one is not whole: %+v", p)
		}
	})
}

// unreadable is a store of which no snapshot can be opened.
type unreadable struct{ dbadapter.Namespace }

func (unreadable) Snapshot() (dbadapter.Snapshot, error) { return nil, errors.New("a bad block") }

// Where values may be in other shards, an index has the shard of the value; two that differ are shared, and
// bodies and hints are no keys.
func TestFeedOfPointers(t *testing.T) {
	inClusterOf(t, &placement.Rule{Kind: placement.Writer, Shards: 4, Replicas: 1, Locator: true}, 1, func(t *testing.T, c *cluster) {
		ns := c.hosts[0].ns
		set := ns.Held(2)
		to := func(shard placement.Shard) dbadapter.Hashed {
			return dbadapter.Hashed{Record: dbadapter.Record{Key: []byte("k"), Value: (&bodies.Pointer{Shard: shard}).AppendBinary(nil)}}
		}
		inline := dbadapter.Hashed{Record: dbadapter.Record{Key: []byte("k"), Value: bodies.Inline(nil)}}
		tombstone := dbadapter.Hashed{Record: dbadapter.Record{Key: []byte("k"), Deleted: true}}
		hint := dbadapter.Hashed{Record: dbadapter.Record{Key: bodies.HintKey(2, []byte("k"))}}
		for _, c := range []struct {
			records []dbadapter.Hashed
			want    locator.Code
		}{
			{nil, locator.Gone},
			{[]dbadapter.Hashed{hint}, locator.Gone},
			{[]dbadapter.Hashed{to(1)}, 1},
			{[]dbadapter.Hashed{hint, to(1), to(1)}, 1},
			{[]dbadapter.Hashed{inline}, 2},
			{[]dbadapter.Hashed{tombstone}, 2},
			{[]dbadapter.Hashed{to(4)}, 2}, // there is no such shard
			{[]dbadapter.Hashed{to(1), inline}, locator.Shared},
		} {
			if got := codeOf(ns, 2, c.records); got != c.want {
				t.Errorf("%d records: %d, want %d", len(c.records), got, c.want)
			}
		}
		must(set.Store.Apply(t.Context(), []dbadapter.Write{{Record: must(dbadapter.Hash(set.Keys.Hasher, to(1).Record))}, {Record: must(dbadapter.Hash(set.Keys.Hasher, hint.Record))}}))
		want := []locator.Entry{locator.NewEntry(set.Keys.Hasher.Index([]byte("k")), 1)}
		page, err := setPage(t.Context(), set, &locator.Take{Set: 2})
		room := feedRoom{locator.MaxChanges, maxFeedBytes}
		news, failed := setNews(t.Context(), set, locator.Since{Set: 2, Log: uint64(set.Store.Log())}, &room)
		if err != nil || !slices.Equal(page.Entries, want) {
			t.Errorf("the page: %+v, %v", page, err)
		}
		if failed != nil || !slices.Equal(news.Changes, want) {
			t.Errorf("the news: %+v, %v", news, failed)
		}
	})
}

// One set of a poll has more changes than an answer takes, and leaves no room for the other one: the host is followed
// on, and both sets are heard whole.
func TestNewsOfMoreSetsThanThereIsRoom(t *testing.T) {
	inClusterOf(t, &placement.Rule{Kind: placement.Hash, Shards: 2, Replicas: 1, Locator: true}, 1, func(t *testing.T, c *cluster) {
		ns := c.hosts[0].ns
		x := must(locator.Open(locator.Config{Shards: 2, Seed: 1, Disk: &locator.Memory{}}))
		f := locator.NewFollower(x, locator.Net{
			Self: "self", Row: func(s placement.Shard) locator.Row {
				return locator.Row{Name: quorum.Name{byte(s)}, Hosts: []roster.ID{"host"}}
			}, Mark: func(all ...placement.Shard) locator.Mark { return rowMark(ns, all...) }, Left: func(_ roster.ID, err error) { t.Errorf("an honest host is left: %v", err) },
		})
		now := time.Minute
		run := func() {
			for range 6 {
				now += 3 * time.Second
				f.Locate(0, 1, now)
				for _, turn := range f.Turns(now) {
					for q := turn.Next(now); q != nil; q = turn.Next(now) {
						turn.Answered(fed(t, ns, q), nil, now)
					}
				}
				if work := x.Work(f.Fetching()); work != nil {
					if err := work(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		run()
		for i := range 9000 {
			key := fmt.Appendf(nil, "k%d", i)
			c.hosts[0].alone(string(key), "value")
		}
		run()
		for s := range placement.Shard(2) {
			if st := f.Status(s, now); !st.Fresh {
				t.Errorf("set %d: %+v", s, st)
			}
		}
	})
}

// metered is a store whose snapshots note how many bytes are read from them, in all and at once.
type metered struct {
	dbadapter.Namespace
	read, most *int
}

type meteredSnapshot struct {
	dbadapter.Snapshot
	metered metered
}

func (m metered) Snapshot() (dbadapter.Snapshot, error) {
	snap, err := m.Namespace.Snapshot()
	return meteredSnapshot{snap, m}, err
}

func (m meteredSnapshot) Buckets(indices []dbadapter.Index) ([][]dbadapter.Hashed, error) {
	buckets, err := m.Snapshot.Buckets(indices)
	once := 0
	for _, b := range buckets {
		for i := range b {
			once += b[i].Record.Weight()
		}
	}
	*m.metered.read += once
	*m.metered.most = max(*m.metered.most, once)
	return buckets, err
}

// Bodies of any length are in a set: an answer reads some of them, a few at once, and the next one goes on.
func TestFeedReadsFewBytes(t *testing.T) {
	inClusterOf(t, &placement.Rule{Kind: placement.Writer, Shards: 4, Replicas: 1, Locator: true}, 1, func(t *testing.T, c *cluster) {
		ns := c.hosts[0].ns
		set := ns.Held(2)
		apply := func(key, value []byte) {
			r := must(dbadapter.Hash(set.Keys.Hasher, dbadapter.Record{Key: key, Value: value}))
			must(set.Store.Apply(t.Context(), []dbadapter.Write{{Record: r}}))
		}
		var want []locator.Entry
		body := make([]byte, dbadapter.MaxValue/2)
		for i := range 150 {
			key := fmt.Appendf(nil, "k%d", i)
			apply(bodies.HintKey(1, key), body)
			apply(key, (&bodies.Pointer{Shard: 1}).AppendBinary(nil))
			want = append(want, locator.NewEntry(set.Keys.Hasher.Index(key), 1))
		}
		slices.Sort(want)
		read, most := 0, 0
		set.Store = metered{set.Store, &read, &most}
		bounded := func() {
			t.Helper()
			if read > maxFeedBytes+feedGroup*dbadapter.MaxValue || most > feedGroup*dbadapter.MaxValue {
				t.Fatalf("%d bytes are read for one answer, %d at once", read, most)
			}
			read, most = 0, 0
		}
		var paged, told []locator.Entry
		for from, more := dbadapter.Index(0), true; more; {
			p := must(setPage(t.Context(), set, &locator.Take{Set: 2, From: from}))
			bounded()
			paged = append(paged, p.Entries...)
			from, more = p.Next, p.Next > from
		}
		if !slices.Equal(paged, want) {
			t.Errorf("the pages have %d of %d entries", len(paged), len(want))
		}
		for seq, more := uint64(0), true; more; {
			room := feedRoom{locator.MaxChanges, maxFeedBytes}
			n := must(setNews(t.Context(), set, locator.Since{Set: 2, Log: uint64(set.Store.Log()), Seq: seq}, &room))
			bounded()
			told = append(told, n.Changes...)
			if more = n.More; n.To <= seq || n.More == (n.To == 300) {
				t.Fatalf("the news from %d on: %+v", seq, n)
			}
			seq = n.To
		}
		if slices.Sort(told); !slices.Equal(told, want) {
			t.Errorf("the news have %d of %d entries", len(told), len(want))
		}
	})
}
