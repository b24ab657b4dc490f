package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/testnet/internal/check"
)

// shard is what a process drives of one of the namespace's sets of records. A namespace that
// is not cut into shards has one.
type shard struct {
	process  *process
	set      *node.Set // nil before the namespace is open
	store    *store    // of set
	pushing  *timer    // when the node looks next for what to push
	woken    bool      // it is to look at once
	restamps int       // begun here, and records set aside
	applied  int       // records, in all
	dump     []dbadapter.Record
	dumped   int // applied, when dump was made; -1: never
}

// bare is one that holds nothing: a session about the list of members alone has it, too.
func (p *process) bare() *shard { return &shard{process: p, dumped: -1} }

// observed is called with each record that the node now holds.
func (sh *shard) observed(r *dbadapter.Record) {
	sh.applied++
	n := sh.process.node
	n.cluster.Watch.Observed(n.number, r)
}

// removed is called with each record that has left the set.
func (sh *shard) removed(r *dbadapter.Record, how dbadapter.Action) {
	sh.applied++
	p := sh.process
	n := p.node
	by := r.Version.Writer
	if by == 0 {
		by = r.Signer
	}
	stray := r.Deleted && !p.ns.Members().Policy().Unsigned && !p.ns.Members().MayWrite(by, r.Version.Clock)
	if how == dbadapter.SetAside || stray { // a deletion without the right leaves nothing to list
		sh.restamps++
		n.cluster.History.SetAside(n.number, r, n.wall.now())
		return
	}
	var waited []int
	list := p.ns.Members()
	for _, m := range list.Active() {
		if list.Epoch(n.id) > 0 {
			break // the members went on without it, and what they have left behind goes
		}
		if p.ns.Rule() == nil || sh.set.With(m.ID) {
			waited = append(waited, n.cluster.byID[m.ID].number)
		}
	}
	n.cluster.History.Collected(n.number, r, waited)
}

// records are all that the set holds, tombstones included, by key. They are read once after
// each commit, and must not be changed.
func (sh *shard) records() []dbadapter.Record {
	if sh.store == nil || sh.process.ns == nil || sh.dumped == sh.applied {
		return sh.dump
	}
	snap, err := sh.store.Snapshot()
	if err != nil {
		panic(err) // it is in memory, and open
	}
	defer snap.Close()
	sh.dump, sh.dumped = make([]dbadapter.Record, 0, len(sh.dump)+16), sh.applied
	for r, err := range snap.Scan(context.Background(), nil, nil) {
		if err != nil {
			panic(err)
		}
		sh.dump = append(sh.dump, r.Record)
	}
	return sh.dump
}

// took is how many records the store has taken.
func (sh *shard) took() int {
	if sh.store == nil {
		return 0
	}
	return sh.store.took
}

// everything is the records of all sets, by key.
func (p *process) everything() (all []dbadapter.Record) {
	for _, sh := range p.shards {
		all = append(all, sh.records()...)
	}
	slices.SortFunc(all, func(a, b dbadapter.Record) int { return slices.Compare(a.Key, b.Key) })
	return all
}

// cut reports whether the namespace is cut into shards.
func (p *process) cut() bool { return p.node.cluster.Rule != nil }

// of is what drives a set; nil: it is being opened, or was left.
func (p *process) of(set *node.Set) *shard {
	if i := slices.IndexFunc(p.shards, func(sh *shard) bool { return sh.set == set }); i >= 0 {
		return p.shards[i]
	}
	return nil
}

// drive begins to drive a set that is open.
func (p *process) drive(set *node.Set) {
	sh := p.bare()
	if !p.cut() {
		sh = p.shard
	}
	sh.set, sh.store = set, set.Store.(*store)
	sh.hear()
	p.shards = append(p.shards, sh)
	slices.SortFunc(p.shards, func(a, b *shard) int { return int(a.set.Shard()) - int(b.set.Shard()) })
	p.pushable(set)
}

// hear has the store tell of what comes and goes.
func (sh *shard) hear() {
	n, s := sh.process.node, sh.store
	s.observed = sh.observed
	s.removing = func(writes []dbadapter.Write) {
		for i := range writes {
			n.cluster.History.Removing(n.number, &writes[i].Record.Record, writes[i].Action == dbadapter.SetAside)
		}
	}
	s.removed = sh.removed
	s.replacing = func(writes []dbadapter.Write) {
		for i := range writes {
			n.cluster.History.Restamping(n.number, *writes[i].If, &writes[i].Record.Record)
		}
	}
	s.admitted = n.crash.count // the last moment at which a crash at the step apply strikes
}

// shardName begins the names of the files of a shard's set.
func shardName(s placement.Shard) string { return fmt.Sprintf("shard-%d-", s) }

// shardOf is the shard of an id among those of the run's namespace.
func (c *Cluster) shardOf(id dbadapter.NamespaceID) (placement.Shard, bool) {
	s, ok := c.shards[id]
	return s, ok
}

// numberShards notes the id of each shard of the namespace with that root.
func (c *Cluster) numberShards(root []byte) {
	c.shards = map[dbadapter.NamespaceID]placement.Shard{}
	for s := range c.Rule.Shards {
		keys := reconcile.DeriveShardKeys(c.keys.Secret, root, uint32(s))
		c.shards[keys.ID] = placement.Shard(s)
		c.hashers = append(c.hashers, c.weaken(keys.Hasher))
	}
}

// drop deletes the files of a shard's set.
func (n *Node) drop(_ context.Context, id dbadapter.NamespaceID) error {
	s, ok := n.cluster.shardOf(id)
	if !ok {
		return fmt.Errorf("drop %x: no shard of the namespace", id)
	}
	n.disk.Remove(shardName(s))
	return nil
}

// moveSoon looks for shards that are to come or go, once for all that asks for it meanwhile.
func (p *process) moveSoon() {
	if !p.cut() || p.moving {
		return
	}
	p.moving = true
	p.after(0, func() {
		p.moving = false
		p.move()
	})
}

// arrange states the layout if that is due, says which shards the node holds, and looks again
// when a layout will be due.
func (p *process) arrange() {
	wait, stated, err := p.ns.Arrange(context.Background())
	p.refused(err)
	if stated {
		p.round()
	}
	p.arranging.stop()
	if p.toArrange = wait > 0; p.toArrange {
		p.arranging = p.after(wait, p.moveSoon)
	}
}

// move opens the shards that the node is to hold, and drops those that it may leave.
func (p *process) move() {
	if !p.cut() || p.ns == nil {
		return
	}
	n, ctx := p.node, context.Background()
	defer p.arrange()
	take, leave := p.ns.Moves()
	for _, number := range take {
		set, err := p.ns.TakeShard(ctx, number)
		if err != nil {
			p.refused(err)
			continue
		}
		p.drive(set)
		n.cluster.History.Holds(n.number, int(number))
		n.world.Note("holds", n.number, int(number), nil)
	}
	if len(take) > 0 {
		p.round()
	}
	for _, set := range leave {
		sh := p.of(set)
		sh.store.flush()
		held := sh.records()
		if err := p.ns.Leave(set); err != nil {
			p.refused(err)
			continue
		}
		n.cluster.Watch.Left(n.number, int(set.Shard()), held)
		n.world.Note("left", n.number, int(set.Shard()), nil)
		p.shards = slices.DeleteFunc(p.shards, func(o *shard) bool { return o == sh })
		sh.store.deaf() // what is deleted from now on was left
	}
	for _, set := range p.ns.Discards() {
		p.refused(p.ns.Discard(ctx, set))
	}
}

// ToArrange reports whether the node will look again by itself at the layout and at what it
// says of its shards. Then more of that is due.
func (n *Node) ToArrange() bool { return n.process != nil && (n.process.moving || n.process.toArrange) }

// Shards are the numbers of the shards that the node holds.
func (n *Node) Shards() (all []int) {
	if n.process != nil && n.process.cut() {
		for _, sh := range n.process.shards {
			all = append(all, int(sh.set.Shard()))
		}
	}
	return all
}

// Home is the shard of a key; 0 in a namespace that is one shard.
func (c *Cluster) Home(key string) int {
	if c.Rule == nil {
		return 0
	}
	if shard, names := bodies.Shard([]byte(key)); names && c.Rule.Kind == placement.Writer {
		return int(shard)
	}
	return int(c.Rule.Home([]byte(key), dbadapter.HomeHash(c.keys.Secret, []byte(key))))
}

// SyncsWith are the other nodes with which the node syncs a shard that it holds, as far as it
// has heard who does.
func (n *Node) SyncsWith(shard int) (others []int) {
	if n.process == nil {
		return nil
	}
	for _, sh := range n.process.shards {
		for _, other := range n.cluster.nodes {
			if int(sh.set.Shard()) == shard && other != n && sh.set.With(other.id) {
				others = append(others, other.number)
			}
		}
	}
	return others
}

// Control is the digest of the control namespace; the zero value before it has joined.
func (n *Node) Control() (d dbadapter.Digest) {
	if n.process != nil && n.process.ns != nil {
		d, _, _ = n.process.ns.Control.Live.State()
	}
	return d
}

// Layout is the layout that counts by this node's list, as its epoch and table; zero while it
// knows none.
func (n *Node) Layout() (epoch uint64, table [32]byte) {
	if n.process == nil || n.process.ns == nil {
		return 0, table
	}
	_, stated, err := n.process.ns.Layout()
	if err != nil {
		return 0, table
	}
	return stated.Epoch, stated.Table
}

// Holding is what a node has of a shard, or of a namespace that is not cut.
type Holding struct {
	Shard   int
	Records []dbadapter.Record
	Kept    check.State // of the records
	Settled bool
	keys    reconcile.Keys
}

// Recompute is the state that the records give.
func (h *Holding) Recompute() check.State {
	return Recompute(h.keys, Buckets(h.keys.Hasher, h.Records), len(h.Kept.Cells))
}

// Holdings are the sets that the node holds, with so many cells of each at the most.
func (n *Node) Holdings(cells int) (all []Holding, err error) {
	if n.process == nil || n.process.ns == nil {
		return nil, nil
	}
	for _, sh := range n.process.shards {
		sh.dumped = -1 // read anew
		h := Holding{Shard: int(sh.set.Shard()), keys: sh.set.Keys, Records: sh.records(), Settled: !sh.set.Recovers()}
		h.Kept.Digest, h.Kept.Records, _ = sh.set.Live.State()
		if h.Kept.Cells, err = sh.cells(cells); err != nil {
			return all, fmt.Errorf("read its cells: %w", err)
		}
		all = append(all, h)
	}
	return all, nil
}

// Rows are the rows of the layout by which the node goes; nil while it knows none.
func (n *Node) Rows() (rows []*quorum.Row) {
	if epoch, _ := n.Layout(); epoch > 0 {
		for s := range placement.Shard(n.cluster.Rule.Shards) {
			rows = append(rows, n.process.ns.Row(s))
		}
	}
	return rows
}

// Whole reports whether the node holds a shard and says that it is whole.
func (n *Node) Whole(number int) bool {
	return n.process != nil && slices.ContainsFunc(n.process.shards, func(sh *shard) bool { return int(sh.set.Shard()) == number && !sh.set.Recovers() })
}
