package watermark

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settle ends the faults, and lets the nodes sync until nothing changes.
func (c *mCluster) settle(chain bool) {
	c.log("settle")
	c.sessions = nil
	for _, x := range c.nodes {
		x.offset = 0
	}
	c.now = max(c.now, c.maxRead) + 2*allowed
	for range 12 + 4*len(c.nodes) {
		for _, a := range c.nodes {
			for _, b := range c.nodes {
				if a == b || chain && a.number-b.number != 1 && b.number-a.number != 1 {
					continue
				}
				c.now += tick
				c.talk(a, b)
				s := c.begin(a, b)
				for !c.step(s) {
				}
				a.back()
			}
			a.pledge()
			a.collect()
		}
		c.now += 5 * tick
	}
	c.sessions = nil
}

// check says what is wrong at the end.
func (c *mCluster) check(lying bool) {
	var honest []*mNode
	for _, x := range c.nodes {
		if !x.liar {
			honest = append(honest, x)
		}
	}
	for _, x := range honest {
		for key, r := range x.set {
			for _, y := range honest { // a copy from before has forgotten what it collected
				if v, ok := y.gone[key]; ok && !r.deleted && r.at.Compare(v) <= 0 {
					c.fail("%d holds %s %v, which %d has collected", x.number, key, r, y.number)
				}
			}
			if r.gone(c.now) && !lying {
				c.fail("%d still holds %s %v", x.number, key, r)
			}
		}
		if !lying && !maps.Equal(x.set, honest[0].set) {
			c.fail("%d holds %v, %d holds %v", x.number, x.set, honest[0].number, honest[0].set)
		}
	}
	for key, list := range c.acked {
		newest := list[0]
		for _, a := range list {
			if compareM(a.mRecord, newest.mRecord) > 0 {
				newest = a
			}
		}
		if newest.gone(c.now) || c.lost[key].Compare(newest.at) >= 0 {
			continue
		}
		there := false
		for _, x := range c.nodes {
			h, ok := x.set[key]
			there = there || ok && compareM(h, newest.mRecord) >= 0
			there = there || slices.ContainsFunc(x.kept, func(k mRecordOf) bool { return k.key == key && compareM(k.mRecord, newest.mRecord) >= 0 })
		}
		if !there {
			c.fail("%s %v of %d is lost", key, newest.mRecord, newest.node)
		}
	}
}

// plan says which faults a history has.
type mPlan struct {
	nodes                             int
	steps                             int
	restore, lapse, join, clocks      bool
	liar, readerLiar, dated, expiring bool
	chain                             bool // only neighbours meet
	reader                            bool // the last node only reads
}

// history runs a random history.
func history(seed uint64, p mPlan) *mCluster {
	c := newCluster(seed, p.nodes)
	if p.liar || p.readerLiar {
		c.tainted = p.liar // a reader that lies must not make others set aside
		x := c.nodes[p.nodes-1]
		x.liar, x.reader = true, p.readerLiar
	}
	c.nodes[p.nodes-1].reader = p.reader || p.readerLiar
	keys := []string{"a", "b", "c"}
	if seed%2 == 1 { // so many that most are written once
		for i := range 40 {
			keys = append(keys, fmt.Sprint("k", i))
		}
	}
	pick := func() *mNode { return c.nodes[c.rng.IntN(len(c.nodes))] }
	for range p.steps {
		c.now += stamp(c.rng.IntN(3)) * tick
		x, y := pick(), pick()
		if p.chain && x != y {
			y = c.nodes[(x.number+1)%len(c.nodes)]
			if y.number == 0 {
				y = c.nodes[x.number-1]
			}
		}
		key := keys[c.rng.IntN(len(keys))]
		switch n := c.rng.IntN(100); {
		case n < 10:
			life := stamp(0)
			if p.expiring && c.rng.IntN(3) == 0 {
				life = stamp(1+c.rng.IntN(20)) * tick
			}
			if !x.liar {
				x.write(key, false, life)
			}
		case n < 17:
			if _, ok := x.set[key]; ok && !x.liar {
				x.write(key, true, 0)
			}
		case n < 20:
			if p.dated && !x.liar {
				x.importDated(key, c.rng.IntN(3) == 0, stamp(c.rng.IntN(60))*tick)
			}
		case n < 32:
			if x != y {
				c.talk(x, y)
			}
		case n < 45:
			if x != y && len(c.sessions) < 8 {
				c.begin(x, y)
			}
		case n < 78:
			if len(c.sessions) > 0 {
				i := c.rng.IntN(len(c.sessions))
				burst := 1 + c.rng.IntN(6)
				for range burst {
					if c.step(c.sessions[i]) || c.rng.IntN(60) == 0 {
						c.sessions = slices.Delete(c.sessions, i, i+1)
						break
					}
				}
			}
		case n < 86:
			x.pledge()
		case n < 92:
			x.collect()
		case n < 93:
			x.start()
		case n < 94:
			if p.clocks {
				x.offset += stamp(c.rng.IntN(41)-20) * tick * stamp(1+c.rng.IntN(4))
				x.restamp()
			}
		case n < 95:
			if p.restore && !x.liar {
				d := x.clone()
				x.copied = &d
			}
		case n < 96:
			if p.restore && c.rng.IntN(2) == 0 {
				c.restore(x)
			}
		case n < 97:
			if p.lapse && x != y && c.rng.IntN(2) == 0 && !x.liar && !x.reader {
				if active, _ := c.members(x.list, 0); slices.Contains(active, y.id) && slices.Contains(active, x.id) {
					c.tainted = true
					c.declare(x, "lapse", y.number)
				}
			}
		case n < 98:
			x.back()
		case n < 99:
			active, _ := c.members(x.list, 0)
			if p.join && len(c.nodes) < p.nodes+3 && !x.liar && !x.reader && slices.Contains(active, x.id) {
				c.join(x)
			}
		}
		if len(c.failed) > 0 {
			return c
		}
	}
	lying := p.liar || p.readerLiar
	c.settle(p.chain)
	c.check(lying)
	return c
}

func (c *mCluster) restore(x *mNode) {
	if x.copied == nil {
		return
	}
	for key, list := range c.acked {
		for _, a := range list {
			if a.node == x.number && c.lost[key].Compare(a.at) < 0 {
				c.lost[key] = a.at
			}
		}
	}
	kept := x.kept
	x.mDurable = x.copied.clone()
	x.kept = kept // the checker's
	c.tainted = true
	c.log("%d is restored", x.number)
	x.vouched.Floor = x.mDurable.vouched.Floor
	x.wm.state.Floor = 0
	x.start()
}

func (c *mCluster) String() string { return strings.Join(c.trace, "\n") }
