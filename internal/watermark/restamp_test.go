package watermark

import (
	"maps"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
)

// restamp gives what the node has written from the future versions of now.
func (x *mNode) restamp() {
	if x.liar || !x.ahead(x.last+1) {
		return
	}
	clock := max(x.wall()+allowed-1, x.wm.state.Floor, x.wm.state.Pledged)
	x.wm.state.hold(clock, x.last)
	x.save()
	x.run = x.c.rng.Uint64()
	self, staying := dbadapter.WriterID(x.number+1), stamp(0)
	again := func(v *dbadapter.Version) {
		if v.Writer == self && x.ahead(v.Clock) {
			clock++
			*v = dbadapter.Version{Clock: clock, Writer: self, Incarnation: x.run}
		} else {
			staying = max(staying, v.Clock)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.pledges)) {
		p := x.pledges[id]
		again(&p.at)
		x.pledges[id] = p
	}
	for _, key := range slices.Sorted(maps.Keys(x.set)) {
		was := x.set[key]
		r := was
		again(&r.at)
		if r == was {
			continue
		}
		x.c.acked[key] = slices.DeleteFunc(x.c.acked[key], func(a mAcked) bool { return a.node == x.number && compareM(a.mRecord, was) <= 0 })
		x.set[key] = r
		x.c.acked[key] = append(x.c.acked[key], mAcked{r, x.number})
		if x.c.lost[key].Compare(was.at) < 0 { // a node that was ahead, too, may bring it back
			x.c.lost[key] = was.at
		}
	}
	x.last = max(clock, staying)
	x.ceiling = min(x.ceiling, x.last)
	x.wm.Restamped()
	x.c.restamps++
	x.c.log("%d restamps: %d", x.number, x.last)
}
