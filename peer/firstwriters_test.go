package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// firstWriters are two nodes and a key whose entry both hold, and which each of them writes in a
// shard of its own; the first one's is also held by a third one.
func (c *writerCluster) firstWriters() (a, b, third int, key string) {
	c.t.Helper()
	for i := range 1000 {
		key := fmt.Sprint("met ", i)
		at := c.holding(key, c.spaces[0].core.Entries([]byte(key)))
		for _, a := range at {
			for _, b := range at {
				ownA, ownB := c.spaces[a].core.OwnShard([]byte(key)), c.spaces[b].core.OwnShard([]byte(key))
				of := c.holding(key, ownA)
				if ownA != ownB && !slices.Contains(of, b) && slices.Contains(c.holding(key, ownB), b) && slices.Contains(of, a) {
					return a, b, of[0] + of[1] - a, key
				}
			}
		}
	}
	c.t.Fatal("no two hosts of an entry have a shard each: choose other idsOfWriters")
	return 0, 0, 0, ""
}

// holding are the nodes that host a set, by the layout.
func (c *writerCluster) holding(key string, set placement.Shard) (all []int) {
	c.t.Helper()
	hosts, err := c.spaces[0].core.RemoteIn([]byte(key), set).Hosts()
	c.must(err)
	for i, n := range c.nodes {
		if slices.Contains(hosts, node.ID(n.ID())) {
			all = append(all, i)
		}
	}
	return all
}

// entered makes a node write the entry of a key, and not its record.
func (c *writerCluster) entered(i int, d *dbadapter.Record, shard placement.Shard, seen ...*dbadapter.Record) *dbadapter.Record {
	c.t.Helper()
	ns := c.spaces[i]
	record, err := ns.core.RemoteIn(d.Key, shard).Make(node.Draft{Record: *d, Seen: seen})
	c.must(err)
	entries := ns.core.RemoteIn(d.Key, ns.core.Entries(d.Key))
	entry, err := entries.Entry(record, shard)
	c.must(err)
	_, err = ns.follows.byWriter.HandOver(c.t.Context(), entries, entry, 1)
	c.must(err)
	return entry
}

// meet has all nodes sync and hear of one another, and then look for first writes that met.
func (c *writerCluster) meet() {
	c.t.Helper()
	c.round()
	c.follow()
	for _, ns := range c.spaces {
		ns.follows.byWriter.Meet(c.t.Context())
	}
}

// conflicts are the values of a key that are listed as conflicts, at the nodes where they are.
func (c *writerCluster) conflicts(key string) map[int][]string {
	found := map[int][]string{}
	for i, ns := range c.spaces {
		for k, err := range ns.Conflicts(c.t.Context()) {
			c.must(err)
			if string(k.Record.Key) == key {
				found[i] = append(found[i], string(k.Record.Value))
			}
		}
	}
	return found
}

// scanned is what a node's scan says of a key.
func (c *writerCluster) scanned(i int, key string) (values []string) {
	for r, err := range c.spaces[i].Scan(c.t.Context(), []byte(key)) {
		c.must(err)
		if string(r.Key) == key {
			values = append(values, string(r.Value))
		}
	}
	return values
}

// firstWrite makes the record and the entry of a node's first write of a key, with the value "first",
// and hands over neither; remote and entries are the sets that they are for.
func (c *writerCluster) firstWrite(i int, key string) (remote *node.Remote, record *dbadapter.Record, entries *node.Remote, entry *dbadapter.Record) {
	c.t.Helper()
	core := c.spaces[i].core
	own := core.OwnShard([]byte(key))
	remote, entries = core.RemoteIn([]byte(key), own), core.RemoteIn([]byte(key), core.Entries([]byte(key)))
	record, err := remote.Make(node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte("first")}})
	c.must(err)
	entry, err = entries.Entry(record, own)
	c.must(err)
	return remote, record, entries, entry
}

// apartFrom is a key and a node: one host of the key's entry is no host of the node's own shard, and not the node.
func (c *writerCluster) apartFrom() (key string, writer, away int) {
	for writer = range c.nodes {
		for i := range 400 {
			key = fmt.Sprint("apart ", i)
			at := c.holding(key, c.spaces[writer].core.OwnShard([]byte(key)))
			for _, away = range c.holding(key, c.spaces[writer].core.Entries([]byte(key))) {
				if away != writer && !slices.Contains(at, away) {
					return key, writer, away
				}
			}
		}
	}
	c.t.Fatal("each host of an entry has the record")
	return "", 0, 0
}

// A write that all hosts are to hold, and that a host of its entry does not answer, is not acknowledged; its record is
// there all the same, as the error says.
func TestUnconfirmedEntryHasItsRecord(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	key, writer, away := c.apartFrom()
	ns := c.spaces[writer]
	serve := c.silences(away, ns)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := ns.Put(ctx, []byte(key), []byte("first"), Acks(AckAll)); !errors.Is(err, ErrUnconfirmed) {
		t.Fatalf("the write ends as %v", err)
	}
	serve()
	for range 3 {
		c.round()
	}
	c.follow()
	c.readEverywhere(key, "first")
}

// Two first writes on a condition meet in the directory, each first at another host of it: not both are acknowledged by all, and
// one of the two stands, so that the key can be read.
func TestRefusedEntryHasItsRecord(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	a, b, _, key := c.firstWriters()
	keys := []string{key}
	for i := 0; len(keys) < 8; i++ {
		other := fmt.Sprint("also met ", i)
		if c.spaces[0].core.Entries([]byte(other)) == c.spaces[0].core.Entries([]byte(key)) {
			keys = append(keys, other)
		}
	}
	neither := 0
	for _, key := range keys {
		var running sync.WaitGroup
		var errs [2]error
		for i, ns := range []*Namespace{c.spaces[a], c.spaces[b]} {
			running.Go(func() {
				_, errs[i] = ns.PutIf(t.Context(), []byte(key), []byte("value"), dbadapter.Version{}, Acks(AckAll))
			})
		}
		running.Wait()
		switch {
		case errs[0] == nil && errs[1] == nil:
			t.Errorf("%q: both are acknowledged", key)
		case errors.Is(errs[0], ErrUnconfirmed) && errors.Is(errs[1], ErrUnconfirmed):
			neither++
		}
	}
	c.meet()
	c.meet()
	for _, key := range keys {
		c.readEverywhere(key, "value")
	}
	t.Logf("of %d keys %d were acknowledged to neither", len(keys), neither)
}

// So where the caller of a write goes away while the hosts of its entry are asked.
func TestEntryOfAWriteThatIsCutOffHasItsRecord(t *testing.T) {
	c := newWriterCluster(t, 4)
	key, writer, _ := c.apartFrom()
	ns := c.spaces[writer]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{})
	for _, h := range c.holding(key, ns.core.Entries([]byte(key))) {
		c.answers(c.nodes[h], func(ID, *wire.Ask) bool { return true }, func(by ID, ask *wire.Ask, _ *wire.Reply) {
			if q, ok := ask.Question.(*wire.AskHold); ok && by == ns.node.ID() && !q.Look {
				cancel()
				<-over
			}
		})
	}
	ns.node.routing.close()
	_, err := ns.Put(ctx, []byte(key), []byte("first"), Acks(AckAll))
	if close(over); !errors.Is(err, ErrUnconfirmed) {
		t.Fatalf("the write ends as %v", err)
	}
	for range 3 {
		c.round()
	}
	c.follow()
	c.readEverywhere(key, "first")
}

// So where a host of the directory refuses the entry, another one has taken it, and neither answers any more.
func TestEntryOfAWriteThatIsGivenUpHasItsRecord(t *testing.T) {
	t.Parallel()
	c := newWriterCluster(t, 4)
	writer, key := 0, ""
	var ns *Namespace
	var at []int
	for i := 0; !slices.Contains(at, writer) || !slices.Contains(c.holding(key, ns.core.OwnShard([]byte(key))), writer); i++ {
		if i == 4000 {
			t.Fatal("no node has a key's record and its entry")
		}
		writer, key = i%4, fmt.Sprint("given up ", i)
		ns = c.spaces[writer]
		at = c.holding(key, ns.core.Entries([]byte(key)))
	}
	at = slices.DeleteFunc(at, func(i int) bool { return i == writer })
	entries := ns.core.Entries([]byte(key))
	later := ns.core.Members().Policy().MaxSkew / 2
	for _, h := range at {
		first := true
		c.lies(c.nodes[h], ns, func(ask *wire.Ask) wire.Answering {
			q, ok := ask.Question.(*wire.AskHold)
			if !ok || q.Look || q.Shard != uint32(entries) || !first {
				return nil
			}
			first = false
			other := q.Records[0].Version
			other.Clock, other.Writer = dbadapter.TimestampAt(other.Clock.Time().Add(later)), other.Writer+1
			return &wire.HoldAnswer{Settled: true, Outcomes: []wire.HoldOutcome{{Other: &dbadapter.Record{Version: other, Value: []byte{0, 1, 1}}}}}
		})
	}
	ns.node.routing.close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := ns.Put(ctx, []byte(key), []byte("first"), Acks(AckAll)); err == nil {
		t.Fatal("it is acknowledged")
	}
	sh, err := ns.numbered(entries)
	c.must(err)
	entry, err := sh.set.Held([]byte(key))
	c.must(err)
	if _, record := c.recordAt(writer, key); entry == nil || record.Version != entry.Version {
		t.Errorf("the entry %v leads to %v", entry, record)
	}
}
