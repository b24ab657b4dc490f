package shards

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile/wire"
)

func (c *cluster) at(id node.ID) int {
	return slices.IndexFunc(c.hosts, func(h *host) bool { return h.ID == id })
}

// A key's shard moves to other hosts while the host that collects its body is cut off. By its old row that would
// ask those of before, which have handed the record over: it collects nothing before it has heard of the layout.
func TestCollectorThatIsBehind(t *testing.T) {
	inClusterOf(t, byWriter, 9, func(t *testing.T, c *cluster) {
		const home = placement.Shard(0)
		first, other := c.hosts[0], c.hosts[3]
		row, by := first.ns.Row(home), c.hosts[c.at(first.ns.Row(1).Old[0])]
		if row.IsHost(by.ID) || row.IsHost(other.ID) || by == other {
			t.Fatal("choose others")
		}
		c.must(first.ns.SetRole(c.ctx, other.ID, node.RoleAdmin, time.Time{}, false))
		key := ""
		for i := 0; key == "" || first.ns.Home([]byte(key)) != home; i++ {
			key = fmt.Sprint("k", i)
		}
		by.puts(key, "one", quorum.All)
		if p := by.pointerAt(key); p.Shard != 1-home {
			t.Fatal(p)
		}
		c.quiet()
		c.hours(1)
		c.rounds(3)
		c.set(down, c.at(by.ID))
		for _, id := range row.Old {
			if id != first.ID {
				c.must(first.ns.SetRole(c.ctx, id, node.RoleRead, time.Time{}, false))
			}
		}
		c.must(first.ns.SetRole(c.ctx, first.ID, node.RoleRead, time.Time{}, true))
		c.rounds(40)
		for _, id := range row.Old {
			if other.ns.Row(home).IsHost(id) || c.hosts[c.at(id)].ns.WholeHere(home) != nil {
				t.Fatal("the shard has not moved")
			}
		}
		c.set(up, c.at(by.ID))
		for range 2 {
			if n, err := by.shards.CollectBodies(c.ctx); n != 0 || err != nil {
				t.Errorf("%d bodies were collected, %v", n, err)
			}
		}
		c.quiet()
		c.rounds(10)
		other.wants(key, "one", GetOptions{})
	})
}

// A host that is not whole may lack what names a body: that of a key holds collection back, and one of bodies
// collects nothing.
func TestHostsThatAreNotWholeHoldCollectionBack(t *testing.T) {
	inClusterOf(t, byWriter, 4, func(t *testing.T, c *cluster) {
		for _, value := range []string{"one", "two"} {
			c.hosts[0].puts("k", value, quorum.All)
		}
		c.hours(1)
		home := c.hosts[0].ns.Home([]byte("k"))
		for i, h := range c.hosts {
			if h.ns.WholeHere(home) == nil {
				continue
			}
			h.loses = true
			c.must(h.ns.SetPaused(true))
			h.loses = false
			c.must(h.ns.SetPaused(false))
			if n := c.collect(); n != 0 {
				t.Errorf("while node %d is not whole %d bodies were collected", i, n)
			}
			c.must(h.ns.AcceptLoss())
			c.rounds(10)
		}
		if n := c.collect(); n != 1 {
			t.Errorf("%d bodies were collected", n)
		}
	})
}

// A member that has lapsed does not hold collection back, as it does not for deletions.
func TestLapsedMembersDoNotHoldCollectionBack(t *testing.T) {
	inClusterOf(t, byWriter, 6, func(t *testing.T, c *cluster) {
		for _, value := range []string{"one", "two"} {
			c.hosts[0].puts("k", value, quorum.All)
		}
		c.quiet()
		home, x := c.hosts[0].ns.Home([]byte("k")), -1
		for i, h := range c.hosts {
			if i > 0 && h.ns.WholeHere(home) != nil && c.hosts[0].ns.Row(c.hosts[0].pointerAt("k").Shard).Old[0] != h.ID {
				x = i
			}
		}
		c.set(down, x)
		c.must(c.hosts[0].ns.Lapse(c.ctx, c.hosts[x].ID))
		c.rounds(20)
		c.hours(48)
		if n := c.collect(); n != 1 {
			t.Errorf("%d bodies were collected", n)
		}
	})
}

// lose has all hosts of a shard lose a record, as if it never was.
func (c *cluster) lose(shard placement.Shard, key []byte) {
	c.t.Helper()
	for _, h := range c.hosts {
		set := h.ns.WholeHere(shard)
		if set == nil {
			continue
		}
		r, err := set.Held(key)
		c.must(err)
		hashed, err := dbadapter.Hash(set.Keys.Hasher, *r)
		c.must(err)
		_, err = set.Store.Apply(c.ctx, []dbadapter.Write{{Record: hashed, Action: dbadapter.Collect}})
		c.must(err)
	}
}

// A value that is lost, or was collected, is there again after an import of what was exported, as after a put.
func TestImportOfLostValue(t *testing.T) {
	for _, collected := range []bool{false, true} {
		for _, dated := range []bool{false, true} {
			inClusterOf(t, byWriter, 6, func(t *testing.T, c *cluster) {
				c.hosts[0].puts("k", "one", quorum.All)
				c.quiet()
				p := c.hosts[0].pointerAt("k")
				f, err := c.hosts[0].shards.get(c.ctx, p.Key([]byte("k")), GetOptions{}, c.hosts[0].Now()+Patience)
				c.must(err)
				if collected {
					c.hours(1)
					c.must(c.hosts[0].shards.removeAt(c.ctx, f.Record.Key, f.Record.Version))
					c.quiet()
				} else {
					c.lose(p.Shard, f.Record.Key)
				}
				var at time.Time
				if dated {
					g, err := c.hosts[3].shards.Get(c.ctx, []byte("k"), GetOptions{Bare: true})
					c.must(err)
					at = g.Record.Version.Clock.Time()
				}
				for _, want := range []node.ImportResult{{Items: 1, Written: 1}, {Items: 1, Unchanged: 1}} {
					r, _, err := c.hosts[3].bring(ImportOptions{}, item("k", "one", at))
					r.Earliest = time.Time{}
					if err != nil || r != want {
						t.Errorf("collected: %t, dated: %t: %+v, %v; want %+v", collected, dated, r, err, want)
					}
					c.quiet()
					c.hosts[3].wants("k", "one", GetOptions{})
				}
			})
		}
	}
}

// As many names, and as many hints, as are sent at once fit into a frame with the longest keys.
func TestManyLongKeysFitIntoAFrame(t *testing.T) {
	names, hold := &wire.AskNames{}, &wire.AskHold{}
	key := bytes.Repeat([]byte("k"), dbadapter.MaxKey-bodies.KeyRoom)
	record := dbadapter.Record{Key: key, Value: (&bodies.Pointer{}).AppendBinary(nil), Version: dbadapter.Version{Clock: 9000, Writer: 1 << 40, Incarnation: 1}, Signature: make([]byte, dbadapter.SignatureSize), Expires: dbadapter.TimestampAt(longAgo())}
	for i := range dbadapter.MaxReplaces {
		record.Replaces = append(record.Replaces, dbadapter.Replaced{Writer: dbadapter.WriterID(i + 1), Clock: 1})
	}
	for range namesAtOnce {
		names.Names = append(names.Names, wire.BodyName{Key: key})
	}
	for range hintsAtOnce {
		hint := record
		hint.Key, hint.Value = bodies.HintKey(1, key), wire.AppendPushed(nil, &record)
		hold.Records = append(hold.Records, hint)
	}
	for _, q := range []wire.Question{names, hold} {
		m := &wire.Ask{Version: wire.Version, Question: q}
		frame := wire.Append(nil, m)
		if _, _, err := wire.Read(bytes.NewReader(frame)); err != nil {
			t.Errorf("%T: %d bytes, %v", q, len(frame), err)
		}
	}
}
