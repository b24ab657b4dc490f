package watermark

import (
	"maps"
	"slices"

	"github.com/syncd-io/syncd/internal/roster"
)

// talk syncs two control namespaces.
func (c *mCluster) talk(a, b *mNode) {
	list := a.list | b.list
	c.log("%d and %d talk: %x", a.number, b.number, list)
	for _, x := range []*mNode{a, b} {
		if x.list != list {
			x.list = list
			x.relist()
		}
	}
	for _, id := range slices.Sorted(maps.Keys(unionM(a.pledges, b.pledges))) {
		p, q := a.pledges[id], b.pledges[id]
		if p.at.Compare(q.at) < 0 {
			p = q
		}
		for _, x := range []*mNode{a, b} {
			if x.pledges[id].at == p.at || x.ahead(p.at.Clock) {
				continue
			}
			x.last = max(x.last, p.at.Clock)
			x.pledges[id] = p
			if !x.liar {
				x.hear(id, p)
			}
		}
	}
}

func unionM[V any](a, b map[roster.ID]V) map[roster.ID]V {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}

// mSession is a sync on its way.
type mSession struct {
	phase int
	side  [2]mSide // initiator and responder
}

type mSide struct {
	node     *mNode
	run      uint64
	basis    Basis
	list     uint64
	read     stamp // of its clock
	tau      stamp // as greeted, and as the other side believes it
	floor    stamp
	snap     mSet
	dirty    bool        // something was declined that holds the watermark back
	declined int         // by this side
	floored  []mRecordOf // of the other's, that this side declined for its floor
}

// open is a side's snapshot, and its greeting.
func (c *mCluster) open(x *mNode) mSide {
	s := mSide{node: x, run: x.run, basis: x.wm.Basis(), list: x.list}
	s.read = x.tau()
	s.tau, s.floor = s.read, x.wm.Greeted()
	s.snap = maps.Clone(x.set)
	if x.liar {
		s.floor = x.wm.others() // as great as can be believed
		if x.reader && c.rng.IntN(2) == 0 {
			s.snap = mSet{}
		} else if !x.reader {
			s.tau, s.floor = 1<<60, 1<<60
		}
	}
	return s
}

func (c *mCluster) begin(a, b *mNode) *mSession {
	s := &mSession{side: [2]mSide{c.open(a), {node: b, run: b.run}}}
	c.sessions = append(c.sessions, s)
	return s
}

// step takes a session one step on, and reports whether it is over.
func (c *mCluster) step(s *mSession) (over bool) {
	a, b := &s.side[0], &s.side[1]
	if a.node.run != a.run || b.node.run != b.run {
		return true
	}
	s.phase++
	switch s.phase {
	case 1:
		if a.list != b.node.list {
			return true
		}
		c.heed(b.node, a)
		*b = c.open(b.node)
		if b.list != a.node.list {
			return true
		}
		c.heed(a.node, b)
	case 2:
		c.move(b, a)
	case 3:
		c.move(a, b)
	case 4:
		c.end(a, b)
	case 5:
		c.end(b, a)
		return true
	}
	return false
}

// heed takes the reading of a greeting, unless it is from the future.
func (c *mCluster) heed(x *mNode, s *mSide) {
	if x.ahead(s.tau) {
		s.tau = 0
	}
	x.last = max(x.last, s.tau)
}

// move brings what from had in its snapshot to the other side.
func (c *mCluster) move(from, to *mSide) {
	for _, key := range slices.Sorted(maps.Keys(from.snap)) {
		r := from.snap[key]
		if h, ok := to.snap[key]; ok && compareM(h, r) >= 0 {
			continue
		}
		why := "floor" // a liar's answer to all
		if !to.node.liar {
			why = to.node.admit(key, r, from)
		}
		switch why {
		case "floor":
			to.floored = append(to.floored, mRecordOf{key, r})
			to.declined++
		case "":
		default:
			to.declined++
			to.dirty = true
		}
	}
}

func (c *mCluster) end(own, their *mSide) {
	x := own.node
	if x.liar || own.list != x.list || !x.wm.Still(own.basis) {
		return
	}
	tau := own.read
	was := x.wm.state.Recovering
	verified := own.declined+their.declined == 0
	x.wm.Synced(&Sync{
		Peer: their.node.id, Writes: !their.node.reader, Basis: own.basis, Incarnation: their.run, Tau: their.tau, Floor: their.floor,
		Clean: !own.dirty && !their.dirty, Verified: verified,
	}, tau)
	x.save()
	c.log("%d ends a sync with %d: tau %d floor %d, verified %t", x.number, their.node.number, their.tau, their.floor, verified)
	if was && !x.wm.state.Recovering {
		c.log("%d has recovered", x.number)
	}
	if len(their.floored) == 0 || their.node.reader && !x.wm.LeftToReaders(c.writes) || their.floor == 0 || their.floor == NoFloor {
		return
	}
	if !x.wm.Proven(their.floor, tau) {
		x.wm.DeclinedFor(their.floor, tau)
		return
	}
	for _, r := range their.floored {
		held, ok := x.set[r.key]
		switch {
		case !ok || held != r.mRecord || r.at.Clock > their.floor:
		case r.gone(their.floor):
			x.remove(r.key, r.mRecord, !x.wm.state.Recovering)
		default:
			x.aside(r.key, r.mRecord)
		}
	}
}

func (x *mNode) remove(key string, r mRecord, raise bool) {
	if raise {
		x.wm.state.Floor = max(x.wm.state.Floor, r.due())
		x.save()
	}
	delete(x.set, key)
	x.c.collects++
	if v := x.gone[key]; raise && v.Compare(r.at) < 0 { // a node that recovers leaves it to the others to remember
		x.gone[key] = r.at
	}
	x.c.log("%d collects %s %v", x.number, key, r)
}

func (x *mNode) aside(key string, r mRecord) {
	if !x.c.tainted && !x.c.superseded(key, r) {
		x.c.fail("%d sets %s %v aside", x.number, key, r)
	}
	delete(x.set, key)
	x.kept = append(x.kept, mRecordOf{key, r})
	x.c.asides++
	x.c.log("%d sets aside %s %v", x.number, key, r)
}

// collect removes what the watermark has passed.
func (x *mNode) collect() {
	if x.liar {
		return
	}
	mark := x.wm.At(x.tau())
	for _, key := range slices.Sorted(maps.Keys(x.set)) {
		if r := x.set[key]; r.gone(mark) {
			x.remove(key, r, true)
		}
	}
}

// writes reports whether a member may write.
func (c *mCluster) writes(id roster.ID) bool {
	return slices.ContainsFunc(c.nodes, func(x *mNode) bool { return x.id == id && !x.reader })
}
