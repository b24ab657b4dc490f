package watermark

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

// A cluster of sets, snapshots, syncs and clocks, abstract but for the watermark,
// which is the node's own. Random histories run over it, and it finds what must
// not happen.

type stamp = dbadapter.Timestamp

// Time in the cluster: a wall clock of whole ticks, above a counter.
const (
	tick    = stamp(1 << 8)
	allowed = 40 * tick // how far ahead of a clock a version may be
)

type mRecord struct {
	at      dbadapter.Version
	deleted bool
	expires stamp
}

func (r mRecord) due() stamp { return max(r.at.Clock, r.expires) }

// gone reports whether the record is one that a collection may remove.
func (r mRecord) gone(by stamp) bool { return (r.deleted || r.expires != 0) && r.due() <= by }

type mSet map[string]mRecord

// mStatement is a line of the list of members.
type mStatement struct {
	kind    string // grant, lapse, return
	subject int
	seen    uint64 // the statements that its author had seen
}

// mNode is a node. What is durable survives a restart; a copy is all of it.
type mNode struct {
	c      *mCluster
	number int
	id     roster.ID
	mDurable
	wm     Watermark
	offset stamp // of its wall clock; negative as two's complement
	run    uint64
	last   stamp // of its hybrid clock
	copied *mDurable
	liar   bool
	reader bool
}

type mDurable struct {
	set     mSet
	kept    []mRecordOf
	ceiling stamp
	vouched State
	list    uint64 // the statements that it holds
	pledges map[roster.ID]said
	gone    map[string]dbadapter.Version // what it collected
}

type mRecordOf struct {
	key string
	mRecord
}

func (d *mDurable) clone() mDurable {
	c := *d
	c.set, c.pledges, c.kept, c.vouched, c.gone = maps.Clone(d.set), maps.Clone(d.pledges), slices.Clone(d.kept), d.vouched.Clone(), maps.Clone(d.gone)
	return c
}

type mCluster struct {
	rng        *rand.Rand
	now        stamp
	nodes      []*mNode
	statements []mStatement
	sessions   []*mSession
	acked      map[string][]mAcked
	collects   int
	restamps   int
	asides     int
	tainted    bool                         // a node was restored or lapsed, or lies
	lost       map[string]dbadapter.Version // versions up to which a restored copy may not know, or what was restamped may win again
	trace      []string
	failed     []string
	maxRead    stamp
}

type mAcked struct {
	mRecord
	node int
}

func (c *mCluster) log(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf("%d: ", c.now/tick)+fmt.Sprintf(format, args...))
}

func (c *mCluster) fail(format string, args ...any) {
	c.log("FAILED "+format, args...)
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
}

func newCluster(seed uint64, n int) *mCluster {
	c := &mCluster{rng: rand.New(rand.NewPCG(seed, 1)), now: 1000 * tick, acked: map[string][]mAcked{}, lost: map[string]dbadapter.Version{}}
	for range n {
		c.statements = append(c.statements, mStatement{"grant", len(c.nodes), 0})
		c.add()
	}
	for _, x := range c.nodes {
		x.list = 1<<n - 1
		x.start()
	}
	return c
}

func (c *mCluster) add() *mNode {
	x := &mNode{c: c, number: len(c.nodes), id: roster.ID(fmt.Sprintf("node %02d", len(c.nodes)))}
	x.set, x.pledges, x.gone = mSet{}, map[roster.ID]said{}, map[string]dbadapter.Version{}
	c.nodes = append(c.nodes, x)
	return x
}

// members reads a list: the active members, and how often one has lapsed.
func (c *mCluster) members(list uint64, of int) (active []roster.ID, epoch uint64) {
	for i, x := range c.nodes {
		granted, lapsed, lapses := false, false, uint64(0)
		for s := range c.statements {
			if list>>s&1 == 0 || c.statements[s].subject != i {
				continue
			}
			switch c.statements[s].kind {
			case "grant":
				granted = true
			case "lapse":
				lapses++
				covered := false
				for r := range c.statements {
					st := &c.statements[r]
					covered = covered || list>>r&1 == 1 && st.subject == i && st.kind == "return" && st.seen>>s&1 == 1
				}
				lapsed = lapsed || !covered
			}
		}
		if granted && !lapsed {
			active = append(active, x.id)
		}
		if i == of {
			epoch = lapses
		}
	}
	return active, epoch
}

func digestOf(list uint64) (d [16]byte) {
	binary.BigEndian.PutUint64(d[:], list)
	return d
}

// start starts the node with what is durable.
func (x *mNode) start() {
	x.run = x.c.rng.Uint64()
	x.last = max(x.ceiling, x.greatest())
	x.wm = New(x.id, false, x.vouched)
	x.relist()
	for _, id := range slices.Sorted(maps.Keys(x.pledges)) {
		x.hear(id, x.pledges[id])
	}
	x.wm.Resume()
	x.save()
}

func (x *mNode) greatest() (t stamp) {
	for _, r := range x.set {
		t = max(t, r.at.Clock)
	}
	for _, p := range x.pledges {
		t = max(t, p.at.Clock)
	}
	return t
}

func (x *mNode) save() {
	if x.wm.state.Floor < x.vouched.Floor {
		x.c.fail("the floor of %d falls", x.number)
	}
	x.vouched = x.wm.State()
	if x.wm.state.Recovering {
		x.gone = map[string]dbadapter.Version{} // it leaves that to the others to remember
	}
}

func (x *mNode) relist() {
	active, epoch := x.c.members(x.list, x.number)
	x.wm.SetMembers(Members{List: digestOf(x.list), Active: active, Epoch: epoch}, x.last+1)
	x.save()
}

func (x *mNode) hear(id roster.ID, p said) {
	if x.wm.Receive(id, &p.Pledge, p.at) {
		x.c.log("%d finds that it is a copy", x.number)
		x.last = max(x.last, p.at.Clock)
	}
	x.save()
}

func (x *mNode) wall() stamp { return x.c.now + x.offset }

func (x *mNode) read() stamp {
	x.last = max(x.wall()/tick*tick, x.last+1)
	x.c.maxRead = max(x.c.maxRead, x.last)
	return x.last
}

// tau is a durable reading of the clock.
func (x *mNode) tau() stamp {
	t := x.read()
	if t > x.ceiling {
		x.ceiling = max(t, x.wall()+10*tick)
	}
	return t
}

func (x *mNode) ahead(t stamp) bool { return t > x.wall()+allowed }

// put makes a record the one held, if it is greater.
func (x *mNode) put(key string, r mRecord) {
	held, ok := x.set[key]
	if !ok || compareM(held, r) < 0 {
		x.set[key] = r
	}
}

func compareM(a, b mRecord) int {
	d := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(d(a.deleted), d(b.deleted)), cmp.Compare(a.expires, b.expires))
}

func (x *mNode) ack(key string, r mRecord) {
	x.c.acked[key] = append(x.c.acked[key], mAcked{r, x.number})
	x.put(key, r)
	x.c.log("%d writes %s %v", x.number, key, r)
}

func (x *mNode) write(key string, deleted bool, life stamp) {
	t := x.read()
	if x.ahead(t) || x.reader {
		return
	}
	r := mRecord{at: dbadapter.Version{Clock: t, Writer: dbadapter.WriterID(x.number + 1), Incarnation: x.run}, deleted: deleted}
	if life > 0 {
		r.expires = t + life
	}
	x.ack(key, r)
}

// importDated writes a record with a time of its own.
func (x *mNode) importDated(key string, deleted bool, back stamp) {
	clock := (x.wall() - back) / tick * tick
	if clock <= x.wm.UpTo() {
		x.write(key, deleted, 0)
		return
	}
	if x.ahead(clock) || x.reader {
		return
	}
	x.last = max(x.last, clock)
	x.wm.state.hold(clock, x.read())
	x.save()
	x.ack(key, mRecord{at: dbadapter.Version{Clock: clock}, deleted: deleted})
}

// admit lets a record in, or says why not.
func (x *mNode) admit(key string, r mRecord, from *mSide) string {
	if x.ahead(r.at.Clock) {
		return "clock"
	}
	if _, ok := x.set[key]; !ok && KeepsOut(x.wm.Enforced(), r.at.Clock, x.reader && !from.node.reader, from.floor) {
		if !x.c.tainted && !r.deleted && !r.gone(x.wm.Enforced()) && !x.c.superseded(key, r) {
			x.c.fail("%d declines %s %v for its floor %d: it is a live, acknowledged record", x.number, key, r, x.wm.Enforced())
		}
		return "floor"
	}
	x.last = max(x.last, r.at.Clock)
	x.put(key, r)
	return ""
}

// superseded reports whether a greater record of the key was acknowledged.
func (c *mCluster) superseded(key string, r mRecord) bool {
	return slices.ContainsFunc(c.acked[key], func(a mAcked) bool { return compareM(a.mRecord, r) > 0 })
}

// collectable is the greatest time of what the node could collect.
func (x *mNode) collectable() (t stamp) {
	for _, r := range x.set {
		if r.gone(x.last) {
			t = max(t, r.due())
		}
	}
	return t
}

func (x *mNode) pledge() {
	if x.liar {
		x.lie()
		return
	}
	tau := x.tau()
	if x.ahead(tau) || !x.wm.PledgeDue(tau, x.collectable()) {
		return
	}
	p := x.wm.Pledge(tau, x.collectable())
	x.save()
	v := dbadapter.Version{Clock: x.read(), Writer: dbadapter.WriterID(x.number + 1), Incarnation: x.run}
	x.ceiling = max(x.ceiling, v.Clock)
	x.pledges[x.id] = said{*p, v}
	x.wm.Receive(x.id, p, v)
	x.c.log("%d pledges %d wants %d %v", x.number, p.Promised, p.Wanted, p.Vector)
}

// lie pledges what is not so.
func (x *mNode) lie() {
	active, _ := x.c.members(x.list, x.number)
	t := x.read()
	p := Pledge{List: digestOf(x.list), Vector: make([]stamp, len(active)), Promised: t, Wanted: 0, Serial: 1}
	if !x.reader {
		p.Promised = 1 << 60
		p.Wanted = 1 << 60
	}
	for i := range p.Vector {
		p.Vector[i] = p.Promised
	}
	x.pledges[x.id] = said{p, dbadapter.Version{Clock: x.read(), Writer: dbadapter.WriterID(x.number + 1), Incarnation: x.run}}
}

// back writes that a member that had lapsed has caught up.
func (x *mNode) back() {
	active, _ := x.c.members(x.list, x.number)
	if x.liar || slices.Contains(active, x.id) || x.wm.state.Recovering {
		return
	}
	x.c.declare(x, "return", x.number)
}

func (c *mCluster) declare(author *mNode, kind string, subject int) {
	if len(c.statements) == 62 {
		return
	}
	c.statements = append(c.statements, mStatement{kind, subject, author.list})
	author.list |= 1 << (len(c.statements) - 1)
	author.relist()
	c.log("%d states %s of %d", author.number, kind, subject)
}

// join makes a new node a member.
func (c *mCluster) join(by *mNode) {
	n := c.add()
	c.declare(by, "grant", n.number)
	n.list, n.pledges = by.list, maps.Clone(by.pledges)
	n.offset = by.offset - stamp(c.rng.IntN(60))*tick*stamp(c.rng.IntN(2))
	n.vouched = State{Pledged: by.wm.state.Pledged, Recovering: true}
	n.ceiling = by.wm.state.Pledged
	n.start()
}
