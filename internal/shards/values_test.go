package shards

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/changes"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// pointerAt is where the value of a key's record is, as a quorum holds it.
func (h *host) pointerAt(key string) *bodies.Pointer {
	h.c.t.Helper()
	f, err := h.shards.Get(h.c.ctx, []byte(key), GetOptions{Bare: true})
	h.c.must(err)
	_, p, err := bodies.Read(f.Record.Value)
	h.c.must(err)
	if p == nil {
		h.c.t.Fatalf("%q has its value in its record", key)
	}
	return p
}

func (h *host) wants(key, want string, o GetOptions) {
	h.c.t.Helper()
	if got, _, err := h.get(key, o); got != want || err != nil {
		h.c.t.Errorf("%q reads as %.40q, %v; want %.40q", key, got, err, want)
	}
}

func TestLargeValuesAreBodies(t *testing.T) {
	for _, nodes := range []int{4, 6} { // of six some host one of the two shards, and of four most both
		inClusterOf(t, byWriter, nodes, func(t *testing.T, c *cluster) {
			away := 0
			large, larger := strings.Repeat("v", 64<<10), strings.Repeat("w", 1<<20)
			for _, key := range []string{"a", "b", strings.Repeat("k", dbadapter.MaxKey-bodies.KeyRoom)} {
				for i, value := range []string{large, larger, "small"} {
					writer := c.hosts[2*i%nodes]
					writer.puts(key, value, quorum.Quorum)
					c.hosts[3].wants(key, value, GetOptions{Level: quorum.Quorum})
					c.quiet()
					for _, h := range c.hosts {
						h.wants(key, value, GetOptions{Level: quorum.One})
						h.wants(key, value, GetOptions{Level: quorum.All})
					}
					p := c.hosts[i].pointerAt(key)
					if p.Shard != c.hosts[0].ns.Home([]byte(key)) {
						away++
					}
					if row := c.hosts[0].ns.Row(p.Shard); len(writer.ns.Sets()) > 0 && !row.IsHost(writer.ID) {
						t.Errorf("the body of %.20q is in shard %d, and its writer is no host of that", key, p.Shard)
					}
					for at, held := range c.held(string(bodies.HintKey(p.Shard, []byte(key)))) {
						if h := c.hosts[at]; h.ns.WholeHere(p.Shard) != nil && (len(held) > len(key)) != (p.Shard != h.ns.Home([]byte(key))) {
							t.Errorf("the hint of host %d of the body: %q", at, held)
						}
					}
				}
				c.hosts[1].puts(key, "", quorum.Quorum)
				if _, f, err := c.hosts[2].get(key, GetOptions{}); err != nil || !f.Record.Deleted {
					t.Errorf("a deleted key: %v, %v", f.Record, err)
				}
			}
			if nodes == 6 && away == 0 {
				t.Error("each value is in the shard of its key")
			}
		})
	}
}

func TestEmptyAndSmallValuesStayInTheirRecords(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		d := node.Draft{Record: dbadapter.Record{Key: []byte("k")}}
		_, err := c.hosts[0].shards.Put(c.ctx, []node.Draft{d}, PutOptions{})
		c.must(err)
		c.hosts[1].wants("k", "", GetOptions{})
		if held := c.held("k"); held[0] != string(bodies.Inline(nil)) {
			t.Errorf("an empty value is held as %q", held)
		}
	})
}

// A large value goes to its key's shard where its writer hosts that: one shard's hosts then answer all.
func TestLargeValuesStayInShardsThatTheirWritersHost(t *testing.T) {
	rule := *byWriter
	rule.Shards = 8
	inClusterOf(t, &rule, 4, func(t *testing.T, c *cluster) {
		for i := range 64 {
			h, key := c.hosts[i%4], fmt.Append(nil, i)
			if home, p := h.ns.Home(key), newBody(h.ns, key, nil); h.ns.WholeHere(home) != nil && p.Shard != home {
				t.Errorf("node %d hosts shard %d, and would write the value of %s into shard %d", i%4, home, key, p.Shard)
			}
		}
	})
}

// What is no user's key, and what a batch cannot have, is refused before anything is sent.
func TestWhatPlacementWriterRefuses(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		before := c.hosts[1].asked
		for _, key := range []string{"\x00", "\x00b\x00\x01", string(bodies.HintKey(1, []byte("k"))), strings.Repeat("k", dbadapter.MaxKey-bodies.KeyRoom+1)} {
			if _, err := c.hosts[0].put(key, "v", quorum.Quorum); !errors.Is(err, node.ErrInvalid) && !errors.Is(err, dbadapter.ErrLimit) {
				t.Errorf("put %.20q: %v", key, err)
			}
			if _, _, err := c.hosts[0].get(key, GetOptions{}); !errors.Is(err, node.ErrInvalid) && !errors.Is(err, dbadapter.ErrLimit) {
				t.Errorf("get %.20q: %v", key, err)
			}
		}
		_, err := c.hosts[0].shards.Put(c.ctx, []node.Draft{{Record: dbadapter.Record{Key: []byte("k")}}, draft("k", "v")}, PutOptions{})
		var item *node.ItemError
		if !errors.As(err, &item) || item.Item != 1 || !errors.Is(err, node.ErrInvalid) || !strings.Contains(err.Error(), "one by one") {
			t.Errorf("a batch with a large value: %v", err)
		}
		if after := c.hosts[1].asked; after != before {
			t.Errorf("%d questions were asked", after-before)
		}
	})
}

// Nothing is written under the key where its body is not confirmed, nor is a body where a condition does not hold.
func TestBodyBeforeItsRecord(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		v := c.hosts[0].puts("k", "one", quorum.All)
		c.quiet()
		before := len(c.reserved())
		if _, err := c.hosts[0].putIf("k", "two", dbadapter.Version{}); !errors.Is(err, dbadapter.ErrConflict) || len(c.reserved()) != before {
			t.Errorf("a condition that does not hold: %v, and %d records of bodies and hints became %d", err, before, len(c.reserved()))
		}
		_, err := c.hosts[0].putIf("k", "two", v)
		c.must(err)
		c.hosts[1].wants("k", "two", GetOptions{})
		c.quiet()
		c.set(down, 1, 2)
		_, err = c.hosts[0].put("k", "three", quorum.Quorum)
		if !errors.Is(err, ErrTooFew) || errors.Is(err, ErrUnconfirmed) || !strings.Contains(err.Error(), "nothing is written") {
			t.Errorf("a put whose body is not confirmed: %v", err)
		}
		c.set(up, 1, 2)
		c.quiet()
		c.hosts[2].wants("k", "two", GetOptions{})
	})
}

// reserved are the keys of bodies and hints at all nodes, those that are deleted not among them.
func (c *cluster) reserved() (keys []string) {
	c.t.Helper()
	for _, h := range c.hosts {
		for _, set := range h.ns.Sets() {
			for r, err := range ScanSet(c.ctx, set, &ScanOptions{Prefix: []byte{0}}) {
				c.must(err)
				keys = append(keys, string(r.Key))
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Hosts of bodies hear of no record that was not acknowledged: a read at level one would give it.
func TestNoHintOfWhatWasNotAcknowledged(t *testing.T) {
	inClusterOf(t, byWriter, 6, func(t *testing.T, c *cluster) {
		home := c.hosts[0].ns.Home([]byte("k"))
		writer := c.hosts[slices.IndexFunc(c.hosts, func(h *host) bool { return h.ns.WholeHere(1-home) != nil && h.ns.WholeHere(home) == nil })]
		hints := func() (n int) {
			for _, key := range c.reserved() {
				if strings.HasPrefix(key, string(bodies.HintPrefix(1-home))) {
					n++
				}
			}
			return n
		}
		for want, full := range []bool{true, false} {
			for _, h := range c.hosts {
				h.mu.Lock()
				h.answers = func(q wire.Question) wire.Answering {
					if hold, is := q.(*wire.AskHold); is && full && hold.Shard == uint32(home) {
						return &wire.HoldAnswer{Whole: true, Outcomes: slices.Repeat([]wire.HoldOutcome{{Declined: wire.ReasonFull}}, len(hold.Records))}
					}
					return nil
				}
				h.mu.Unlock()
			}
			_, err := writer.put("k", "one", quorum.Quorum)
			c.quiet()
			if n := hints(); (err == nil) == full || n != want {
				t.Errorf("%v: %d hints", err, n)
			}
		}
	})
}

// A scan and a watch give users' values in order, and neither bodies nor hints.
func TestScanAndWatchGiveUsersValues(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		var want []string
		for i := range 40 {
			key, value := fmt.Sprintf("k%02d", i), strings.Repeat("v", i*i*100)
			d := node.Draft{Record: dbadapter.Record{Key: []byte(key), Value: []byte(value)}}
			_, err := c.hosts[i%4].shards.Put(c.ctx, []node.Draft{d}, PutOptions{})
			c.must(err)
			want = append(want, key+value)
		}
		c.quiet()
		c.round()
		for _, h := range c.hosts {
			for _, sizes := range []bool{false, true} {
				size, o := 0, ScanOptions{Room: 1 << 20}
				if sizes {
					o.Size = &size
				}
				var got []string
				for r, err := range h.shards.Scan(c.ctx, o) {
					c.must(err)
					value := string(r.Value)
					if sizes {
						value = strings.Repeat("v", size)
					}
					got = append(got, string(r.Key)+value)
				}
				if !slices.Equal(got, want) {
					t.Errorf("sizes alone: %t: a scan gives %d records, some of them not as they were put", sizes, len(got))
				}
			}
			told := map[string]string{}
			err := h.shards.Watch(c.ctx, changes.FromStart, WatchOptions{Room: 1 << 20}, func(e *changes.Event) bool {
				if e.Kind == changes.Put {
					told[string(e.Key)] = string(e.Record.Value)
				}
				return e.Kind != changes.At
			})
			c.must(err)
			for _, one := range want {
				if told[one[:3]] != one[3:] {
					t.Errorf("a watch tells of %s with %d bytes; want %d", one[:3], len(told[one[:3]]), len(one)-3)
				}
			}
			if len(told) != len(want) {
				t.Errorf("a watch tells of %d keys", len(told))
			}
		}
	})
}

// hour lets so many hours pass, and syncs.
func (c *cluster) hours(n int) {
	time.Sleep(time.Duration(n)*time.Hour + time.Minute)
	c.round()
}

// collect has each node collect in two rounds, and reports how many bodies went.
func (c *cluster) collect() int {
	c.t.Helper()
	return c.collectOnce() + c.collectOnce()
}

// collectOnce is one round.
func (c *cluster) collectOnce() (n int) {
	c.t.Helper()
	for _, h := range c.hosts {
		if h.fate != up {
			continue
		}
		one, err := h.shards.CollectBodies(c.ctx)
		c.must(err)
		n += one
	}
	return n
}

// What is overwritten is collected an hour later, with its hint if that still names it; what a record names,
// or an entry of a kept log, stays.
func TestBodiesThatNothingNamesAreCollected(t *testing.T) {
	inClusterOf(t, byWriter, 6, func(t *testing.T, c *cluster) {
		for _, key := range []string{"kept", "changed", "deleted", "moved", "conflict"} {
			away := slices.IndexFunc(c.hosts, func(h *host) bool { return len(h.ns.Sets()) > 0 && h.ns.WholeHere(h.ns.Home([]byte(key))) == nil })
			c.hosts[away].puts(key, "one", quorum.All)
		}
		c.quiet()
		c.hosts[0].puts("changed", "two", quorum.All)
		c.hosts[1].puts("moved", "two", quorum.All)
		c.hosts[2].puts("deleted", "", quorum.All)
		named := c.hosts[0].pointerAt("conflict")
		home := c.hosts[0].ns.Home([]byte("conflict"))
		for _, h := range c.hosts { // one that has not seen the record overwrites it at a host
			if set := h.ns.WholeHere(home); set != nil {
				h.unseen("conflict", "inline")
				break
			}
		}
		c.quiet()
		c.round()
		if n := c.collect(); n != 0 {
			t.Errorf("%d young bodies were collected", n)
		}
		c.hours(1)
		if n := c.collect(); n != 3 {
			t.Errorf("%d bodies were collected; want those of three values", n)
		}
		c.quiet()
		c.hosts[3].wants("kept", "one", GetOptions{})
		c.hosts[3].wants("changed", "two", GetOptions{})
		c.hosts[3].wants("moved", "two", GetOptions{})
		if r := c.hosts[0].bodyOf("conflict", named); r != "one" {
			t.Errorf("the body that an entry of a kept log names: %q", r)
		}
		for _, h := range c.hosts {
			for k, err := range h.ns.Kept(c.ctx, dbadapter.KeptConflict, 0) {
				c.must(err)
				c.must(h.ns.ForgetKept(c.ctx, k.Seq))
			}
		}
		if n := c.collect(); n != 1 {
			t.Errorf("%d bodies were collected once the entry was forgotten", n)
		}
		c.quiet()
		if r := c.hosts[0].bodyOf("conflict", named); r != "nothing" {
			t.Errorf("the body that nothing names: %q", r)
		}
		want := map[string]int{}
		for _, key := range []string{"kept", "changed", "moved"} {
			if want[key] = 1; c.hosts[0].pointerAt(key).Shard != c.hosts[0].ns.Home([]byte(key)) {
				want[key] = 2 // with its hint
			}
		}
		if left := c.reserved(); len(left) != want["kept"]+want["changed"]+want["moved"] || want["kept"] != 2 {
			t.Errorf("%d bodies and hints are left: %q; want %v", len(left), left, want)
		}
		p := c.hosts[0].pointerAt("kept")
		f, err := c.hosts[0].shards.get(c.ctx, p.Key([]byte("kept")), GetOptions{}, c.hosts[0].Now()+Patience)
		c.must(err)
		c.must(c.hosts[0].shards.removeAt(c.ctx, f.Record.Key, f.Record.Version)) // its hint does not go with it
		c.quiet()
		c.collect()
		c.quiet()
		if left := c.reserved(); len(left) != want["changed"]+want["moved"] {
			t.Errorf("%d bodies and hints are left of the others: %q", len(left), left)
		}
	})
}

// bodyOf is what a body's hosts have of it.
func (h *host) bodyOf(key string, p *bodies.Pointer) string {
	h.c.t.Helper()
	f, err := h.shards.get(h.c.ctx, p.Key([]byte(key)), GetOptions{}, h.Now()+Patience)
	h.c.must(err)
	if f.Record == nil || f.Record.Deleted {
		return "nothing"
	}
	return string(f.Record.Value)
}

// unseen has a host take a record, whose value is in it, of a writer that has not seen the one that is held.
func (h *host) unseen(key, value string) {
	h.c.t.Helper()
	home := h.ns.Home([]byte(key))
	a, err := NewAsker(h.ns, home)
	h.c.must(err)
	d := draft(key, string(bodies.Inline([]byte(value))))
	d.If = &dbadapter.Version{} // an incarnation of its own
	records, err := a.Make([]node.Draft{d}, [][]*dbadapter.Record{nil})
	h.c.must(err)
	hashed, err := dbadapter.Hash(h.ns.WholeHere(home).Keys.Hasher, records[0])
	h.c.must(err)
	_, err = h.ns.WholeHere(home).Store.Apply(h.c.ctx, []dbadapter.Write{{Record: hashed}})
	h.c.must(err)
}

// A member that may name a body, and does not answer, holds it back; so does one word in one of two rounds.
func TestSilentMembersHoldCollectionBack(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		for _, value := range []string{"one", "two"} {
			c.hosts[0].puts("k", value, quorum.All)
		}
		c.hours(1)
		collector := c.hosts[0].ns.Row(c.hosts[0].pointerAt("k").Shard).Old[0]
		for i, h := range c.hosts {
			if h.ID == collector || !slices.Contains(h.ns.MayName(h.ns.Home([]byte("k"))), h.ID) || h.ns.WholeHere(h.ns.Home([]byte("k"))) == nil {
				continue
			}
			c.set(down, i)
			if n := c.collect(); n != 0 {
				t.Errorf("while node %d is down %d bodies were collected", i, n)
			}
			c.set(up, i)
			for _, names := range []bool{false, true} {
				asked := 0
				c.hosts[i].mu.Lock()
				c.hosts[i].answers = func(q wire.Question) wire.Answering {
					question, is := q.(*wire.AskNames)
					if !is {
						return nil
					}
					asked++
					return &wire.NamesAnswer{Named: slices.Repeat([]bool{names}, len(question.Names))}
				}
				c.hosts[i].mu.Unlock()
				if n := c.collectOnce(); n != 0 || asked != 1 {
					t.Errorf("node %d, asked %d times, names the body: %t, and %d bodies were collected", i, asked, names, n)
				}
				c.hosts[i].mu.Lock()
				c.hosts[i].answers = func(wire.Question) wire.Answering { return nil }
				c.hosts[i].mu.Unlock()
			}
		}
		if n := c.collect(); n != 1 {
			t.Errorf("%d bodies were collected", n)
		}
	})
}

// A host takes no record of a writer that names an old body, unless what it replaces does; what is passed on it takes.
func TestOldBodiesAreNamedByNoNewRecord(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		old := newBody(c.hosts[0].ns, []byte("k"), []byte("v"))
		time.Sleep(bodies.Acceptable + time.Minute)
		a, err := NewAsker(c.hosts[0].ns, c.hosts[0].ns.Home([]byte("k")))
		c.must(err)
		d := draft("k", string(old.AppendBinary(nil)))
		records, err := a.Make([]node.Draft{d}, [][]*dbadapter.Record{nil})
		c.must(err)
		outcome := func(q question[HostHeld]) Held {
			h, _, err := askHost(c.ctx, c.hosts[0].shards, a, c.hosts[0].ID, 0, q)
			c.must(err)
			return h.Outcomes[0]
		}
		if o := outcome(a.holds(wire.AskHold{Records: records})); !errors.Is(o.Declined, node.ErrDeclined) || !strings.Contains(o.Declined.Error(), "put it anew") {
			t.Errorf("a record of a writer: %+v", o)
		}
		if o := outcome(a.pass(records...)); !o.Held {
			t.Errorf("one that is passed on: %+v", o)
		}
		again, err := a.Make([]node.Draft{d}, [][]*dbadapter.Record{{&records[0]}})
		c.must(err)
		if o := outcome(a.holds(wire.AskHold{Records: again})); !o.Held {
			t.Errorf("one that replaces a record which names the body: %+v", o)
		}
	})
}

// A value is lost only once each host has answered that it lacks the body.
func TestLostValues(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		c.hosts[0].puts("k", "one", quorum.All)
		p := c.hosts[0].pointerAt("k")
		c.quiet()
		lose := func(h *host) {
			set := h.ns.WholeHere(p.Shard)
			r, err := set.Held(p.Key([]byte("k")))
			c.must(err)
			r.Value = []byte("two")
			r.Version.Clock++
			hashed, err := dbadapter.Hash(set.Keys.Hasher, *r)
			c.must(err)
			_, err = set.Store.Apply(c.ctx, []dbadapter.Write{{Record: hashed}}) // it does not prove itself
			c.must(err)
		}
		var hosts []int
		for i, h := range c.hosts {
			if h.ns.WholeHere(p.Shard) != nil {
				hosts = append(hosts, i)
			}
		}
		for n, i := range hosts {
			for _, level := range []quorum.Level{quorum.One, quorum.Quorum} {
				c.hosts[3].wants("k", "one", GetOptions{Level: level})
			}
			if lose(c.hosts[i]); n == len(hosts)-1 {
				break
			}
			c.set(down, hosts[len(hosts)-1])
			if _, f, err := c.hosts[i].get("k", GetOptions{}); n == len(hosts)-2 && (!errors.Is(err, ErrTooFew) || errors.Is(err, bodies.ErrLost) || f.Record != nil) {
				t.Errorf("a body that a host which is down may have: %v", err)
			}
			c.set(up, hosts[len(hosts)-1])
		}
		for _, level := range []quorum.Level{quorum.One, quorum.Quorum, quorum.All} {
			if _, f, err := c.hosts[3].get("k", GetOptions{Level: level}); !errors.Is(err, bodies.ErrLost) || f.Record != nil {
				t.Errorf("a body that no host has, at level %s: %v, %v", level, f.Record, err)
			}
		}
		c.hosts[0].puts("l", "there", quorum.All)
		var given []string
		for r, err := range c.hosts[3].shards.Scan(c.ctx, ScanOptions{Room: 1 << 20}) {
			if given = append(given, string(r.Value)); err != nil && (!errors.Is(err, bodies.ErrLost) || !strings.Contains(err.Error(), `"k"`)) {
				t.Errorf("a scan: %v", err)
			}
		}
		if !slices.Equal(given, []string{"there", ""}) {
			t.Errorf("a scan gives %q", given)
		}
		c.rounds(10) // who holds no shard says so
		for _, i := range hosts {
			var missing []string
			c.must(c.hosts[i].shards.MissingBodies(c.ctx, func(m Missing) bool {
				if !errors.Is(m.Err, bodies.ErrLost) || m.Pointer != *p {
					t.Errorf("what is missing: %+v", m)
				}
				missing = append(missing, string(m.Key))
				return true
			}))
			if here := c.hosts[i].ns.WholeHere(c.hosts[i].ns.Home([]byte("k"))) != nil; here != slices.Equal(missing, []string{"k"}) {
				t.Errorf("host %d tells that %q are missing", i, missing)
			}
		}
		c.hosts[1].puts("k", "three", quorum.Quorum)
		c.hosts[3].wants("k", "three", GetOptions{})
	})
}

// Where a locator is right a read at level one takes one question; where it is not, the key's shard is to be asked.
func TestLocatedValues(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		for i := range 8 {
			key := fmt.Sprint("k", i)
			c.hosts[i%3].puts(key, "one", quorum.All)
			c.quiet()
			p, h := c.hosts[0].pointerAt(key), c.hosts[3]
			for _, shard := range []placement.Shard{0, 1} {
				f, found := h.shards.near(c.ctx, []byte(key), shard, h.Now()+Patience)
				if found != (shard == p.Shard) || found && string(f.Record.Value) != "one" || f.Requests != 1 {
					t.Errorf("%s, said to be in shard %d: %+v, %t", key, shard, f, found)
				}
			}
			if value, _, err := h.get(key, GetOptions{Level: quorum.One}); err != nil || value != "one" {
				t.Errorf("%s: %q, %v", key, value, err)
			}
			if _, err := c.hosts[0].put(key, "", quorum.All); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A value that one of its hosts writes, and overwrites, goes to each other host once: syncs bring it nowhere.
func TestLargeValuesCrossTheWireOnce(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		counts := func() (large int, bytes uint64) {
			for _, h := range c.hosts {
				large, bytes = large+h.large, bytes+h.bytes
			}
			return large, bytes
		}
		for i := range 2 {
			c.hosts[0].puts("k", strings.Repeat(fmt.Sprint(i), 64<<10), quorum.Quorum)
			c.quiet()
			_, before := counts()
			c.rounds(3)
			large, after := counts()
			if want := (i + 1) * (c.rule.Replicas - 1); large != want || after-before > 48<<10 {
				t.Errorf("after %d writes hosts were sent %d values; want %d; syncs took %d bytes", i+1, large, want, after-before)
			}
		}
		c.hours(1)
		if n := c.collect(); n != 1 {
			t.Errorf("%d bodies were collected", n)
		}
		_, before := counts()
		c.round()
		if large, after := counts(); large != 4 || after-before > 48<<10 {
			t.Errorf("collected, hosts were sent %d values; syncs took %d bytes", large, after-before)
		}
	})
}

// A scan or a watch at a host that is behind, and whose record names a body that is gone, tells what the key holds now.
func TestBodiesOfOverwrittenRecords(t *testing.T) {
	inClusterOf(t, byWriter, 3, func(t *testing.T, c *cluster) {
		c.hosts[1].puts("k", "one", quorum.All)
		c.quiet()
		named := c.hosts[0].pointerAt("k")
		c.set(down, 0)
		c.hosts[1].puts("k", "two", quorum.Quorum)
		c.quiet()
		c.set(up, 0)
		f, err := c.hosts[1].shards.get(c.ctx, named.Key([]byte("k")), GetOptions{}, c.hosts[1].Now()+Patience)
		c.must(err)
		c.must(c.hosts[1].shards.removeAt(c.ctx, f.Record.Key, f.Record.Version))
		c.quiet()
		behind := c.hosts[0]
		if _, p, err := bodies.Read([]byte(c.held("k")[0])); err != nil || p == nil || *p != *named {
			t.Fatalf("the host is not behind: %v, %v", p, err)
		}
		told := 0
		c.must(behind.shards.Watch(c.ctx, changes.FromStart, WatchOptions{Room: 1 << 20}, func(e *changes.Event) bool {
			if e.Kind == changes.Put {
				if told++; string(e.Record.Value) != "two" {
					t.Errorf("a watch tells of %q", e.Record.Value)
				}
			}
			return e.Kind != changes.At && told == 0
		}))
		for r, err := range behind.shards.Scan(c.ctx, ScanOptions{Room: 1 << 20}) {
			if c.must(err); string(r.Value) != "two" {
				t.Errorf("a scan gives %q", r.Value)
			}
		}
		behind.wants("k", "two", GetOptions{Level: quorum.One})
	})
}
