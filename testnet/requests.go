package testnet

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/shards"
	"github.com/syncd-io/syncd/testnet/internal/check"
	"github.com/syncd-io/syncd/testnet/internal/model"
	"github.com/syncd-io/syncd/testnet/internal/plan"
)

// Requests in a namespace that is cut into shards: of a key, or of several of one shard.

// nodeKey is a key at a node.
type nodeKey struct {
	node int
	key  string
}

// level reads a level that the plan was checked for.
func level(text string) quorum.Level {
	l, err := quorum.ParseLevel(text)
	if err != nil {
		panic(err)
	}
	return l
}

// keysOf are the keys that an event writes: of a batch several, of one shard.
func (r *runner) keysOf(e *plan.Event) []string {
	keys := []string{e.Key}
	if !r.cut() {
		keys[0] = e.KeyAt(0)
	}
	for i := 1; len(keys) < int(e.Amount); i++ {
		if !r.cut() {
			keys = append(keys, e.KeyAt(i))
		} else if key := fmt.Sprintf("%s.%d", e.Key, i); r.cluster.Home(key) == r.cluster.Home(e.Key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// offer writes at any node.
func (r *runner) offer(e *plan.Event) {
	o := model.Offer{Level: level(e.Ack)}
	r.goes()
	drafts, ops := r.drafts(e, o.Level)
	o.Drafts = drafts
	var asks []*check.Request
	for _, d := range drafts {
		asks = append(asks, r.history.Asks(e.Node, string(d.Record.Key), o.Level <= quorum.Quorum))
	}
	o.Made = func(versions []dbadapter.Version) {
		for i, v := range versions {
			r.history.Made(ops[i], v)
		}
	}
	o.Held = func(versions []dbadapter.Version, hosts []int) {
		r.result.Routed++
		for i, v := range versions {
			at := nodeKey{e.Node, asks[i].Key}
			r.history.Wrote(asks[i], ops[i], v, hosts, r.world.Now())
			r.known[at], r.wrote[at] = v, v
		}
	}
	o.Failed = func(_ error, written bool) {
		for _, op := range ops {
			if !written {
				r.history.Refuse(op)
			}
		}
	}
	r.cluster.Node(e.Node).Offer(o)
}

// intend notes a write. By placement writer the record has a value behind a tag, or a pointer to it.
func (r *runner) intend(node int, key string, deleted bool, value []byte, l quorum.Level) check.Op {
	if !r.plan.Writer || deleted {
		return r.history.Intend(node, key, deleted, value)
	}
	op := r.history.Intend(node, key, deleted, append([]byte{0}, value...))
	if len(value) > r.plan.Inline {
		r.history.Stays(op, l <= quorum.Quorum)
	}
	return op
}

// read reads a key at any node; found is told what comes of it, if anything does.
func (r *runner) read(e *plan.Event, found func(*model.Found)) {
	at := nodeKey{e.Node, e.Key}
	o := shards.GetOptions{Level: level(e.Read)}
	if e.AtLeast {
		o.AtLeast = r.wrote[at]
	}
	r.goes()
	ask := r.history.Asks(e.Node, e.Key, o.Level != quorum.One)
	r.cluster.Node(e.Node).Read(e.Key, o, func(f *model.Found) {
		found(f)
		if r.wasRead(ask, f); f.Err != nil {
			return
		}
		r.known[at] = dbadapter.Version{}
		if f.Record != nil {
			r.known[at] = f.Record.Version
		}
		if !o.AtLeast.IsZero() {
			r.history.ReadAtLeast(ask, f.Record, o.AtLeast)
		}
	})
}

// importStep is how much older each item of an import is than the one before.
const importStep = time.Minute

// bring imports dated items at any node.
func (r *runner) bring(e *plan.Event) {
	n, l := r.cluster.Node(e.Node), level(e.Ack)
	var items []node.Item
	var asks []*check.Request
	var ops []check.Op
	r.goes()
	for i := range max(1, int(e.Amount)) {
		item := node.Item{Key: []byte(e.KeyAt(i)), Value: r.plan.Value(e, i), Time: n.Clock().Truncate(10 * time.Second).Add(-time.Duration(i) * importStep)}
		op := r.intend(e.Node, e.KeyAt(i), false, item.Value, l)
		r.history.Dated(op)
		r.history.Made(op, dbadapter.Version{Clock: dbadapter.TimestampAt(item.Time)})
		items, ops, asks = append(items, item), append(ops, op), append(asks, r.history.Asks(e.Node, e.KeyAt(i), l <= quorum.Quorum))
	}
	n.Bring(items, l, func(b *model.Brought) {
		for _, i := range b.Refused {
			r.history.Refuse(ops[i])
		}
		if b.Err != nil || b.Result.Written != int64(len(items)-len(b.Refused)) {
			return // which of the others were written is not told
		}
		r.result.Routed++
		for i := range items {
			if !slices.Contains(b.Refused, int64(i)) {
				r.history.Wrote(asks[i], ops[i], dbadapter.Version{Clock: dbadapter.TimestampAt(items[i].Time)}, nil, r.world.Now())
			}
		}
	})
}

// wasRead judges what a read has come to.
func (r *runner) wasRead(ask *check.Request, f *model.Found) {
	if errors.Is(f.Err, bodies.ErrLost) {
		r.result.Lost++
		r.history.LostValue(ask)
	}
	if f.Err != nil {
		return
	}
	r.result.Routed++
	if f.Nowhere {
		r.result.Nowhere++
		if !r.cluster.Node(f.From).Misleads() {
			r.history.Nowhere(ask, f.From, f.Heard)
		}
	}
	r.history.Read(ask, f.Record)
}

// latestClock is the latest clock of any node.
func (r *runner) latestClock() (latest time.Time) {
	for _, n := range r.cluster.Nodes() {
		if c := n.Clock(); c.After(latest) {
			latest = c
		}
	}
	return latest
}

// goes tells the checker by which rows nodes go, and which hosts are whole.
func (r *runner) goes() {
	for i := range r.cluster.Nodes() {
		r.goesBy(i)
	}
	for s := range r.plan.Shards {
		r.history.Mended(s, func(node int) bool { return r.cluster.Node(node).Whole(s) && r.active(node) })
	}
}

// goesBy tells the checker by which rows a node goes. That is before the records which it takes under them.
func (r *runner) goesBy(node int) {
	n := r.cluster.Node(node)
	epoch, table := n.Layout()
	if r.layouts[node] == table || epoch == 0 {
		return
	}
	r.layouts[node] = table
	for _, row := range n.Rows() {
		r.history.Goes(node, r.row(row, epoch))
	}
}

// active reports whether all members list a node as one that has not lapsed. One that is down may know better.
func (r *runner) active(number int) bool {
	return !slices.ContainsFunc(r.cluster.Nodes(), func(n *model.Node) bool {
		return !n.Up() && r.left[number] || n.Up() && n.Member() && !slices.ContainsFunc(n.Roster().Active(), func(m model.Member) bool { return r.cluster.Number(m.ID) == number })
	})
}

// row is a row of the layout of an epoch, as the checker knows it.
func (r *runner) row(row *quorum.Row, layout uint64) *check.Row {
	numbers := func(ids []node.ID) (nodes []int) {
		for _, id := range ids {
			nodes = append(nodes, r.cluster.Number(id))
		}
		slices.Sort(nodes)
		return nodes
	}
	name := row.Name()
	of := &check.Row{Shard: int(row.Shard), Layout: layout, Epoch: row.Epoch, Forced: row.Forced, Name: string(name[:]), Old: numbers(row.Old), New: numbers(row.New)}
	if row.Parent != (quorum.Name{}) {
		of.Parent = string(row.Parent[:])
	}
	return of
}
