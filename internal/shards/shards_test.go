package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/peer/status"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// With one of three hosts away, quorum reads and writes go on at each node, a host or not. With
// two away a write says that it is not confirmed, and gives its version; a read gives what it has
// found, as too few.
func TestHostsAway(t *testing.T) {
	for name, away := range map[string]fate{"down": down, "hung": hung, "deaf": deaf} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 4, func(t *testing.T, c *cluster) {
				row := c.hosts[0].ns.Row(0)
				var hosts, at []int // those of the shard, and who asks
				for i, h := range c.hosts {
					if row.IsHost(h.ID) {
						hosts = append(hosts, i)
					}
				}
				c.set(away, hosts[0])
				for i, h := range c.hosts {
					if i == hosts[0] {
						continue
					}
					at = append(at, i)
					value := fmt.Sprint("by ", i)
					v := h.puts("a", value, quorum.Quorum)
					for _, other := range c.hosts {
						if got, f, err := other.get("a", GetOptions{}); other.ID != c.hosts[hosts[0]].ID && (err != nil || got != value || f.Record.Version != v || f.Old.Had < 2) {
							t.Errorf("written at %d: %q, %+v, %v", i, got, f, err)
						}
					}
				}
				c.set(away, hosts[1])
				last := c.hosts[at[len(at)-1]]
				v, err := last.put("a", "alone", quorum.Quorum)
				if !errors.Is(err, ErrUnconfirmed) || v.IsZero() || !strings.Contains(err.Error(), "1 of 3 hosts") {
					t.Errorf("with two hosts away: %v, %v", v, err)
				}
				got, f, err := last.get("a", GetOptions{})
				few, ok := errors.AsType[*status.TooFew](err)
				if !errors.Is(err, ErrTooFew) || !ok || few.Answers != "1/3" || got != "alone" || f.Record.Version != v {
					t.Errorf("with two hosts away: %q, %v", got, err)
				}
				if _, err := last.put("a", "one", 1); err != nil {
					t.Errorf("at level one, with two hosts away: %v", err)
				}
				if got, _, err := last.get("a", GetOptions{Level: quorum.One}); err != nil || got != "one" {
					t.Errorf("at level one, with two hosts away: %q, %v", got, err)
				}
				c.set(up, hosts[0], hosts[1])
				c.quiet()
				if got, _, err := last.get("a", GetOptions{Level: quorum.All}); err != nil || got != "one" {
					t.Errorf("with all hosts: %q, %v", got, err)
				}
			})
		})
	}
}

// A host that has told the head, and then never gives the record, is one that does not answer: the
// read waits for the others until its time is over.
func TestHeadWithoutRecord(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		asker := c.hosts[c.stranger()]
		asker.puts("a", "v", quorum.All)
		nearest := asker.shards.nearest(asker.ns.Row(0).Hosts())
		for i, h := range c.hosts {
			switch h.ID {
			case nearest[0], nearest[1]:
				c.set(hung, i)
			case nearest[2]:
				h.answers = func(wire.Question) wire.Answering {
					c.set(hung, i) // from the next question on
					return nil
				}
			}
		}
		if got, f, err := asker.get("a", GetOptions{}); !errors.Is(err, ErrTooFew) || got != "nothing" || f.Requests != 4 {
			t.Errorf("%q after %d requests, %v", got, f.Requests, err)
		}
	})
}

// Where no host can be reached nothing is written, and that is said; where hosts may have it, that is.
func TestNoHostAnswers(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		asker := c.hosts[c.stranger()]
		for _, test := range []struct {
			away fate
			want error
		}{{down, reconcile.ErrUnreachable}, {hung, ErrUnconfirmed}, {deaf, ErrUnconfirmed}} {
			for i := range c.hosts {
				c.set(test.away, i)
			}
			ctx, cancel := context.WithTimeout(c.ctx, time.Second)
			w, err := asker.shards.Put(ctx, []node.Draft{draft("a", "x")}, PutOptions{})
			if cancel(); !errors.Is(err, test.want) || errors.Is(err, ErrUnconfirmed) != (test.want == ErrUnconfirmed) {
				t.Errorf("%v: %+v, %v", test.away, w, err)
			}
			if _, f, err := asker.get("a", GetOptions{}); !errors.Is(err, ErrTooFew) || f.Record != nil {
				t.Errorf("%v: %+v, %v", test.away, f, err)
			}
		}
	})
}

// A read whose caller gives it a time says at its end what it has found; one that is given up does not.
func TestReadWithinTime(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		asker := c.hosts[c.stranger()]
		if _, err := asker.shards.Put(c.ctx, []node.Draft{draft("a", "x")}, PutOptions{Level: quorum.All}); err != nil {
			t.Fatal(err)
		}
		first := c.first()
		c.set(down, first)
		c.set(hung, slices.IndexFunc(c.hosts, func(h *host) bool { return h != c.hosts[first] && c.hosts[0].ns.Row(0).IsHost(h.ID) }))
		ctx, cancel := context.WithTimeout(c.ctx, time.Second)
		defer cancel()
		f, err := asker.shards.Get(ctx, []byte("a"), GetOptions{Level: quorum.Quorum})
		if few, ok := errors.AsType[*status.TooFew](err); !ok || few.Answers != "1/3" || f.Record == nil || string(f.Record.Value) != "x" {
			t.Errorf("%+v, %v", f, err)
		}
		ctx, cancel = context.WithCancel(c.ctx)
		time.AfterFunc(time.Second, cancel)
		if _, err := asker.shards.Get(ctx, []byte("a"), GetOptions{Level: quorum.Quorum}); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
}

// A quorum read finds what one host of the majority alone has, and gives it to the others.
func TestReadRepair(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		c.hosts[0].puts("a", "old", quorum.All)
		c.hosts[0].alone("a", "new")
		if got, _, err := c.hosts[1].get("a", GetOptions{Level: quorum.One}); err != nil || got != "old" {
			t.Errorf("at level one at a host that lacks it: %q, %v", got, err)
		}
		if got, _, err := c.hosts[1].get("a", GetOptions{}); err != nil || got != "new" {
			t.Errorf("at quorum: %q, %v", got, err)
		}
		c.quiet()
		if held := c.held("a"); !slices.Equal(held, []string{"new", "new", "old"}) {
			t.Errorf("the hosts hold %q, of which two have answered", held)
		}
		if got, _, err := c.hosts[1].get("a", GetOptions{Level: quorum.All}); err != nil || got != "new" {
			t.Errorf("at level all: %q, %v", got, err)
		}
		c.quiet()
		if held := c.held("a"); !slices.Equal(held, []string{"new", "new", "new"}) {
			t.Errorf("the hosts hold %q", held)
		}
		c.hosts[2].alone("a", "") // a tombstone, too
		if _, f, err := c.hosts[1].get("a", GetOptions{Level: quorum.All}); err != nil || f.Record == nil || !f.Record.Deleted {
			t.Errorf("deleted: %+v, %v", f, err)
		}
		if _, f, err := c.hosts[1].get("none", GetOptions{}); err != nil || f.Record != nil {
			t.Errorf("nothing: %+v, %v", f, err)
		}
	})
}

// A write that meets what it has not seen, or that a host refuses for its date, is made anew, and
// is later than all it has met.
func TestWriteIsMadeAnew(t *testing.T) {
	for name, before := range map[string]func(c *cluster, at int){
		"over a value": func(c *cluster, at int) { c.hosts[c.first()].alone("a", "before") },
		"over a later": func(c *cluster, at int) {
			c.hosts[at].slow = 20 * time.Second
			c.hosts[c.first()].alone("a", "before")
		},
		"behind a promise": func(c *cluster, at int) {
			c.hosts[at].slow = time.Minute
			c.rounds(5)
			c.set(down, at)
			c.round()
			c.hosts[c.first()].alone("ab", "") // the hosts promise on, for what is to be collected
			c.rounds(10)
			c.set(up, at)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 4, func(t *testing.T, c *cluster) {
				at := c.stranger()
				before(c, at)
				var made []dbadapter.Version
				w, err := c.hosts[at].shards.Put(c.ctx, []node.Draft{draft("a", "last")}, PutOptions{Level: quorum.All, Made: func(v []dbadapter.Version) { made = append(made, v...) }})
				c.must(err)
				if len(made) < 2 || w.Versions[0] != made[len(made)-1] || !slices.IsSortedFunc(made, dbadapter.Version.Compare) {
					t.Errorf("made %v, and wrote %+v", made, w)
				}
				for i, h := range c.hosts {
					if held := c.held("a")[i]; i != at && held != "last" {
						t.Errorf("the host %d holds %q", i, held)
					}
					if set := h.ns.WholeHere(0); set != nil && set.Store.KeptCount(dbadapter.KeptConflict) != 0 {
						t.Error("a conflict is listed: it had seen what it replaces")
					}
				}
			})
		})
	}
}

// stranger is a node that is no host of shard 0.
func (c *cluster) stranger() int {
	return slices.IndexFunc(c.hosts, func(h *host) bool { return !c.hosts[0].ns.Row(0).IsHost(h.ID) })
}

// What becomes of a write on a condition.
func TestConditions(t *testing.T) {
	var none dbadapter.Version
	for name, test := range map[string]struct {
		before func(c *cluster, v dbadapter.Version) // v is that of "old", which all hosts hold
		held   func(v dbadapter.Version) dbadapter.Version
		want   error // nil: it is accepted
		holds  []string
	}{
		"accepted":               {holds: []string{"new", "new", "new"}},
		"refused":                {held: func(dbadapter.Version) dbadapter.Version { return none }, want: dbadapter.ErrConflict, holds: []string{"old", "old", "old"}},
		"found later":            {before: func(c *cluster, _ dbadapter.Version) { c.hosts[0].alone("a", "later") }, want: dbadapter.ErrConflict},
		"the first host is down": {before: func(c *cluster, _ dbadapter.Version) { c.set(down, c.first()) }},
		"the first host is hung": {before: func(c *cluster, _ dbadapter.Version) { c.set(hung, c.first()) }},
		"the first host is deaf": {before: func(c *cluster, _ dbadapter.Version) { c.set(deaf, c.first()) }},
		"the first host lacks what is found": {before: func(c *cluster, _ dbadapter.Version) {
			c.set(down, c.first())
			c.hosts[c.other()].puts("a", "newer", quorum.Quorum)
			c.set(up, c.first())
		}, held: func(v dbadapter.Version) dbadapter.Version { return dbadapter.Version{Clock: 1} }, holds: []string{"new", "new", "new"}},
		"two hosts are down": {before: func(c *cluster, _ dbadapter.Version) { c.set(down, c.first(), 3-c.first()-c.other()) }, want: ErrTooFew, holds: []string{"old", "old", "old"}},
		"a clock is behind":  {before: func(c *cluster, _ dbadapter.Version) { c.hosts[c.other()].slow = 20 * time.Second }, holds: []string{"new", "new", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, c *cluster) {
				v := c.hosts[0].puts("a", "old", quorum.All)
				if test.before != nil {
					test.before(c, v)
				}
				held := v
				if test.held != nil {
					held = test.held(v)
				}
				if held.Clock == 1 { // what a quorum finds
					_, f, err := c.hosts[c.other()].get("a", GetOptions{})
					c.must(err)
					held = f.Record.Version
				}
				v, err := c.hosts[c.other()].putIf("a", "new", held)
				if !errors.Is(err, test.want) || test.want != nil && !v.IsZero() && !errors.Is(err, ErrUnconfirmed) {
					t.Errorf("%v, %v", v, err)
				}
				c.set(up, 0, 1, 2)
				c.quiet()
				if got := c.held("a"); test.holds != nil && !slices.Equal(got, test.holds) {
					t.Errorf("the hosts hold %q", got)
				}
				if got, _, err := c.hosts[0].get("a", GetOptions{Level: quorum.All}); test.want == nil && (err != nil || got != "new") {
					t.Errorf("it reads %q, %v", got, err)
				}
			})
		})
	}
}

// What follows from what the host says that is to compare, and from that a host before it may have
// committed the record: such a record is not made anew, and the write ends as not confirmed.
func TestComparesAnswers(t *testing.T) {
	another := &dbadapter.Record{Version: dbadapter.Version{Clock: dbadapter.TimestampAt(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), Writer: 1}}
	says := func(o wire.HoldOutcome) wire.Answering {
		return &wire.HoldAnswer{Whole: true, Outcomes: []wire.HoldOutcome{o}}
	}
	for name, test := range map[string]struct {
		first       fate
		says        wire.Answering // the first host that answers
		want        error          // nil: it is accepted
		unconfirmed bool
		compare     int // hosts that are asked to
	}{
		"declines":                              {says: says(wire.HoldOutcome{Declined: wire.ReasonWriter}), want: node.ErrDeclined, compare: 1},
		"holds another":                         {says: says(wire.HoldOutcome{Other: another}), want: dbadapter.ErrConflict, compare: 1},
		"is not whole":                          {says: &wire.HoldAnswer{Outcomes: make([]wire.HoldOutcome, 1)}, compare: 2},
		"declines, behind one that is down":     {first: down, says: says(wire.HoldOutcome{Declined: wire.ReasonWriter}), want: node.ErrDeclined, compare: 1},
		"declines, behind one that may hold it": {first: deaf, says: says(wire.HoldOutcome{Declined: wire.ReasonWriter}), want: node.ErrDeclined, unconfirmed: true, compare: 2},
		"is late, behind one that may hold it":  {first: deaf, says: says(wire.HoldOutcome{Declined: wire.ReasonFloor}), want: node.ErrLate, unconfirmed: true, compare: 2},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, c *cluster) {
				row := c.hosts[0].ns.Row(0)
				at := func(i int) int { return slices.IndexFunc(c.hosts, func(h *host) bool { return h.ID == row.Old[i] }) }
				liar := c.hosts[at(0)]
				if c.set(test.first, at(0)); test.first != up {
					liar = c.hosts[at(1)]
				}
				compared := map[*host]bool{}
				for _, h := range c.hosts {
					h.answers = func(q wire.Question) wire.Answering {
						if hold, ok := q.(*wire.AskHold); ok && len(hold.On) > 0 {
							if compared[h] = true; h == liar {
								return test.says
							}
						}
						return nil
					}
				}
				made, began, d := 0, time.Now(), draft("a", "1")
				d.If = &dbadapter.Version{}
				_, err := c.hosts[at(2)].shards.Put(c.ctx, []node.Draft{d}, PutOptions{Made: func([]dbadapter.Version) { made++ }})
				if !errors.Is(err, test.want) || errors.Is(err, ErrUnconfirmed) != test.unconfirmed || made != 1 || len(compared) != test.compare {
					t.Errorf("%v; it was made %d times, and %d hosts were to compare", err, made, len(compared))
				}
				if took := time.Since(began); test.first == up && took > compareWait/2 {
					t.Errorf("it took %s", took)
				}
				c.quiet()
			})
		})
	}
}

// first is the first host of shard 0, which compares, and other one that is another host.
func (c *cluster) first() int {
	return slices.IndexFunc(c.hosts, func(h *host) bool { return h.ID == c.hosts[0].ns.Row(0).Old[0] })
}

func (c *cluster) other() int { return (c.first() + 1) % 3 }

// A condition is compared by one host: of two writers that find the same one has it accepted.
func TestOneOfTwoConditions(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		for round := range 20 {
			_, f, err := c.hosts[0].get("a", GetOptions{})
			c.must(err)
			var held dbadapter.Version
			if f.Record != nil {
				held = f.Record.Version
			}
			ends := make(chan error, 3)
			for i, h := range c.hosts {
				go func() {
					_, err := h.putIf("a", fmt.Sprint(round, " by ", i), held)
					ends <- err
				}()
			}
			won := 0
			for range c.hosts {
				if err := <-ends; err == nil {
					won++
				} else if !errors.Is(err, dbadapter.ErrConflict) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Fatalf("%d of three won", won)
			}
			c.quiet()
		}
	})
}

// A batch is of one shard, and a host commits all of it or nothing: where a condition does not
// hold, nothing is written, and the error names the item.
func TestBatch(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		h := c.hosts[1]
		old := h.puts("a", "1", quorum.All)
		on := func(d node.Draft, v dbadapter.Version) node.Draft { d.If = &v; return d }
		_, err := h.shards.Put(c.ctx, []node.Draft{draft("a", "2"), draft("b", "2")}, PutOptions{})
		if !errors.Is(err, node.ErrInvalid) {
			t.Errorf("of two shards: %v", err)
		}
		_, err = h.shards.Put(c.ctx, []node.Draft{draft("a", "2"), on(draft("aa", "2"), old)}, PutOptions{Level: quorum.All})
		if item, ok := errors.AsType[*node.ItemError](err); !ok || item.Item != 1 || !errors.Is(err, dbadapter.ErrConflict) {
			t.Errorf("on a condition that does not hold: %v", err)
		}
		c.quiet()
		for _, key := range []string{"a", "aa"} {
			if held := c.held(key); slices.Contains(held, "2") {
				t.Errorf("%s: the hosts hold %q of a batch that was refused", key, held)
			}
		}
		w, err := h.shards.Put(c.ctx, []node.Draft{on(draft("a", "3"), old), draft("aa", "3"), on(draft("ab", "3"), dbadapter.Version{})}, PutOptions{Level: quorum.All})
		if err != nil || len(w.Versions) != 3 {
			t.Errorf("%+v, %v", w, err)
		}
		c.hosts[2].alone("aa", "beside") // it refuses the whole, which is made anew
		w, err = h.shards.Put(c.ctx, []node.Draft{draft("a", "4"), draft("aa", "4")}, PutOptions{Level: quorum.All})
		if err != nil || len(w.Versions) != 2 {
			t.Errorf("%+v, %v", w, err)
		}
		for _, key := range []string{"a", "aa"} {
			if held := c.held(key); !slices.Equal(held, []string{"4", "4", "4"}) {
				t.Errorf("%s: the hosts hold %q", key, held)
			}
		}
	})
}

// A request whose asker goes by a row of before syncs its list, and begins again. A host that
// differs on counts as one that does not answer.
func TestRowsDiffer(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		v := c.hosts[0].puts("a", "1", quorum.All)
		row := c.hosts[0].ns.Row(0)
		gone := slices.IndexFunc(c.hosts, func(h *host) bool { return h != c.hosts[0] && row.IsHost(h.ID) })
		behind := 0
		for i := range c.hosts { // a node that hears nothing of what follows
			if i != 0 && i != gone {
				behind = i
			}
		}
		asker := c.hosts[behind]
		c.set(down, gone, behind)
		c.must(c.hosts[0].ns.Remove(c.ctx, c.hosts[gone].ID, false))
		if asker.ns.Gone() == c.hosts[0].ns.Gone() {
			t.Fatal("the asker has heard of the removal")
		}
		c.set(up, behind)
		if got, f, err := asker.get("a", GetOptions{}); err != nil || got != "1" || f.Record.Version != v {
			t.Errorf("behind a removal: %q, %v", got, err)
		}
		if asker.syncs == 0 || asker.ns.Gone() != c.hosts[0].ns.Gone() {
			t.Errorf("it has synced its list %d times", asker.syncs)
		}
		c.set(up, gone)
		syncs := asker.syncs
		if _, err := asker.put("a", "2", quorum.All); err != nil { // the removed host is waited for by none
			t.Errorf("at level all, with a host that is removed: %v", err)
		}
		if got, f, err := asker.get("a", GetOptions{Level: quorum.All}); err != nil || got != "2" {
			t.Errorf("at level all, with a host that is removed: %q, %+v, %v", got, f.Old, err)
		}
		if c.quiet(); asker.syncs != syncs {
			t.Errorf("it has synced its list %d times more, with a host that is removed", asker.syncs-syncs)
		}
		c.hosts = slices.Delete(slices.Clone(c.hosts), gone, gone+1)
		c.rest(3) // the fourth node has the removed one's place
		for _, h := range c.hosts {
			if got, _, err := h.get("a", GetOptions{}); err != nil || got != "2" {
				t.Errorf("after the move: %q, %v", got, err)
			}
		}
	})
}

// moving changes the row once a request has looked at it.
type moving struct {
	Net
	move func()
}

func (m *moving) Mailbox() Mailbox {
	m.move()
	m.move = func() {}
	return m.Net.Mailbox()
}

// A read whose only host is this node begins again where the row changes under it.
func TestRowChangesUnderAReadHere(t *testing.T) {
	inCluster(t, 1, func(t *testing.T, c *cluster) {
		h := c.hosts[0]
		h.puts("a", "1", quorum.All)
		for _, level := range []quorum.Level{quorum.One, quorum.Quorum, quorum.All} {
			h.shards.Net = &moving{h, func() { c.must(h.ns.ForceLayout(c.ctx, map[placement.Shard][]node.ID{0: {h.ID}})) }}
			if got, _, err := h.get("a", GetOptions{Level: level}); err != nil || got != "1" {
				t.Errorf("at level %v: %q, %v", level, got, err)
			}
		}
	})
}

// Level all is each host that is neither removed nor lapsed, also while the row names another one.
func TestAllButWhoHasLapsed(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		c.set(down, 2)
		c.must(c.hosts[0].ns.Lapse(c.ctx, c.hosts[2].ID))
		if !c.hosts[0].ns.Row(0).IsHost(c.hosts[2].ID) {
			t.Fatal("it is a host no more")
		}
		if _, err := c.hosts[0].put("a", "1", quorum.All); err != nil {
			t.Error(err)
		}
		if got, _, err := c.hosts[0].get("a", GetOptions{Level: quorum.All}); err != nil || got != "1" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A batch whose conditions take longer to read than the request may last writes nothing.
func TestSlowConditions(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		for _, h := range c.hosts {
			h.answers = func(q wire.Question) wire.Answering {
				if _, ok := q.(*wire.AskRecord); ok {
					time.Sleep(2 * Patience / 5)
				}
				return nil
			}
		}
		var drafts []node.Draft
		for _, key := range []string{"a", "aa", "ab"} {
			d := draft(key, "1")
			d.If = &dbadapter.Version{}
			drafts = append(drafts, d)
		}
		began := time.Now()
		_, err := c.hosts[c.stranger()].shards.Put(c.ctx, drafts, PutOptions{})
		if took := time.Since(began); !errors.Is(err, ErrTooFew) || errors.Is(err, ErrUnconfirmed) || took > Patience {
			t.Errorf("after %s: %v", took, err)
		}
		c.quiet()
	})
}

// A write whose process was stopped for so long that a host may have lost the record since is not
// acknowledged.
func TestConfirmedTooLate(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		h := c.hosts[c.stranger()]
		h.stops = quorum.LongestDeadline
		if v, err := h.put("a", "1", quorum.Quorum); !errors.Is(err, ErrUnconfirmed) || v.IsZero() {
			t.Errorf("a put: %s, %v", v, err)
		}
		if r, _, err := h.bring(ImportOptions{}, item("a", "2", time.Time{})); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("an import: %+v, %v", r, err)
		}
		c.quiet()
	})
}

// A read that asks for a version at least asks further hosts until one has it.
func TestAtLeast(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, c *cluster) {
		c.hosts[0].puts("a", "old", quorum.All)
		v := c.hosts[2].alone("a", "new")
		for _, level := range []quorum.Level{quorum.One, quorum.Quorum} {
			if got, _, err := c.hosts[0].get("a", GetOptions{Level: level, AtLeast: v}); err != nil || got != "new" {
				t.Errorf("at level %s: %q, %v", level, got, err)
			}
		}
		v.Clock += 1 << 20
		if _, f, err := c.hosts[0].get("a", GetOptions{AtLeast: v}); !errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), "no host that answered has version") || f.Record == nil {
			t.Errorf("a version that no host has: %+v, %v", f, err)
		}
	})
}

// What answers are enough for, and which version they give: the greatest of whole hosts. What another
// one holds counts where no whole one has answered, or where it is asked for by its version.
func TestAnswers(t *testing.T) {
	at := func(clock int) dbadapter.Version {
		return dbadapter.Version{Clock: dbadapter.Timestamp(clock), Writer: 1}
	}
	held := func(clock int) *HostAnswer { return &HostAnswer{Whole: true, Version: at(clock)} }
	lacks := func(clock int) *HostAnswer { return &HostAnswer{Version: at(clock)} } // it is not whole
	collected := func(floor int) *HostAnswer {
		return &HostAnswer{Whole: true, Floor: dbadapter.Timestamp(floor)}
	}
	none := (*HostAnswer)(nil)
	type answers = []*HostAnswer // of hosts 1, 2 and so on
	for name, test := range map[string]struct {
		old, new []node.ID
		GetOptions
		answers
		done bool
		best int
	}{
		"a majority":                   {answers: answers{held(1), held(2), none}, done: true, best: 2},
		"too few":                      {answers: answers{held(1), none, none}, best: 1},
		"not whole":                    {answers: answers{held(1), lacks(3), none}, best: 1},
		"not whole, beside a majority": {answers: answers{held(1), held(1), lacks(3)}, done: true, best: 1},
		"one":                          {GetOptions: GetOptions{Level: quorum.One}, answers: answers{held(1), none, none}, done: true, best: 1},
		"one that is not whole":        {GetOptions: GetOptions{Level: quorum.One}, answers: answers{lacks(1), none, none}, best: 1},
		"both majorities":              {old: []node.ID{"1", "2", "3"}, new: []node.ID{"3", "4", "5"}, answers: answers{held(1), none, held(1), lacks(2), none}, done: true, best: 1},
		"no majority of the new":       {old: []node.ID{"1", "2", "3"}, new: []node.ID{"3", "4", "5"}, answers: answers{held(1), held(1), held(1), none, none}, best: 1},
		"no majority of the old":       {old: []node.ID{"1", "2", "3"}, new: []node.ID{"3", "4", "5"}, answers: answers{none, none, held(1), held(1), held(1)}, best: 1},
		"at least":                     {GetOptions: GetOptions{AtLeast: at(3)}, answers: answers{held(1), held(2), none}, best: 2},
		"at least, found":              {GetOptions: GetOptions{AtLeast: at(3)}, answers: answers{held(1), held(4), none}, done: true, best: 4},
		"at least, at one not whole":   {GetOptions: GetOptions{Level: quorum.One, AtLeast: at(3)}, answers: answers{lacks(3), none, none}, done: true, best: 3},
		"at least, collected":          {GetOptions: GetOptions{AtLeast: at(3)}, answers: answers{collected(3), held(0), none}, done: true},
		"at least, and then collected": {GetOptions: GetOptions{AtLeast: at(3)}, answers: answers{collected(5), held(0), lacks(4)}, done: true},
		"at least, beside whole hosts": {GetOptions: GetOptions{AtLeast: at(3)}, answers: answers{held(1), held(2), lacks(4)}, done: true, best: 4},
		"none is whole":                {answers: answers{lacks(2), lacks(1), none}, best: 2},
	} {
		if test.old == nil {
			test.old, test.new = []node.ID{"1", "2", "3"}, []node.ID{"1", "2", "3"}
		}
		r := &read{Shards: &Shards{}, GetOptions: test.GetOptions, row: &quorum.Row{Old: test.old, New: test.new}, of: map[node.ID]*asked{}}
		for i, a := range test.answers {
			r.of[node.ID(fmt.Sprint(i+1))] = &asked{answer: a}
		}
		if done, best := r.done(); done != test.done || int(best.Clock) != test.best {
			t.Errorf("%s: done %v, and version %d", name, done, best.Clock)
		}
	}
}

// A host that hides what it holds, makes records up, claims what it does not give, or says nothing
// makes a read slower, and not wrong. Pages of a scan or of a watch with what was not asked for are
// taken from another host.
func TestLyingHost(t *testing.T) {
	inCluster(t, 4, func(t *testing.T, c *cluster) {
		asker, liar := c.hosts[c.stranger()], c.hosts[c.first()]
		v := asker.puts("a", "value", quorum.All)
		_, f, err := asker.get("a", GetOptions{Level: quorum.All})
		c.must(err)
		own, forged, other := *f.Record, *f.Record, *f.Record
		forged.Value, forged.Version.Clock, other.Key = []byte("forged"), v.Clock+1, []byte("b")
		record := func(r *dbadapter.Record) func(wire.Question) wire.Answering {
			return func(q wire.Question) wire.Answering {
				a := &wire.RecordAnswer{Whole: true}
				if ask, ok := q.(*wire.AskRecord); !ok {
					return nil
				} else if ask.Head && r != nil {
					a.Head = r.Version
				} else {
					a.Record = r
				}
				return a
			}
		}
		ended := func() { // the questions whose answers are awaited no longer
			time.Sleep(3 * Patience)
			synctest.Wait()
		}
		for name, lie := range map[string]func(wire.Question) wire.Answering{
			"hides": record(nil), "forges": record(&forged), "another key": record(&other),
			"apart": func(wire.Question) wire.Answering { return &wire.Apart{} },
			"claims": func(q wire.Question) wire.Answering {
				if ask := q.(*wire.AskRecord); ask.Head {
					return &wire.RecordAnswer{Whole: true, Head: forged.Version}
				}
				time.Sleep(2 * Patience)
				return nil
			},
		} {
			for _, one := range []*host{liar, c.hosts[c.other()]} { // which is asked for the record, or for the head
				ended()
				one.answers = lie
				asker.shards.times = quorum.Times{}
				if got, f, err := asker.get("a", GetOptions{}); err != nil || got != "value" || f.Record.Version != v {
					t.Errorf("%s: %q, %v", name, got, err)
				}
				ended()
				one.answers = func(wire.Question) wire.Answering { return nil }
			}
		}
		page := func(records ...dbadapter.Record) wire.Answering {
			return &wire.ScanAnswer{Whole: true, Records: records}
		}
		for name, lie := range map[string]wire.Answering{
			"forged": page(forged), "out of order": page(own, own), "another shard": page(other),
			"not whole": &wire.ScanAnswer{}, "apart": &wire.Apart{},
		} {
			asked := 0
			ended()
			liar.answers = func(wire.Question) wire.Answering { asked++; return lie }
			asker.shards.times = quorum.Times{}
			p, err := asker.shards.page(c.ctx, 0, []byte("a"), nil, 1<<20)
			if err != nil || len(p.records) != 1 || string(p.records[0].Value) != "value" || asked == 0 {
				t.Errorf("a page, %s: %+v, %v; asked %d times", name, p, err, asked)
			}
		}
		for name, lie := range map[string]wire.Answering{
			"forged":            &wire.ChangesAnswer{Whole: true, Next: []byte("0000000000000001.7"), Changes: []wire.Change{{Record: &forged}}},
			"another shard":     &wire.ChangesAnswer{Whole: true, Next: []byte("0000000000000001.7"), Changes: []wire.Change{{Key: []byte("b")}}},
			"no end of listing": &wire.ChangesAnswer{Whole: true, Next: []byte("0000000000000001.7")},
			"not whole":         &wire.ChangesAnswer{},
			"apart":             &wire.Apart{},
			"another's cursor":  &wire.ChangesAnswer{Whole: true, Expired: true},
		} {
			ended()
			liar.answers = func(wire.Question) wire.Answering { return lie }
			p, id, err := asker.shards.changes(c.ctx, 0, liar.ID, changes.FromStart, nil)
			if err != nil || id == liar.ID || len(p.Told) == 0 || string(p.Told[0].Key) != "a" {
				t.Errorf("changes, %s: %+v of %s, %v", name, p, id, err)
			}
		}
	})
}
