package placement

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/internal/roster"
)

// A world is some nodes that hold one shard, or do not. Each has a list of its own, by
// number, which says who the hosts are; lists come, and come back, in any order at each
// node, as layouts that are stated apart, void, and stated again make them do. Syncs take
// time: what they carry was read at their beginning.
type world struct {
	*rand.Rand
	lists [][]int // the hosts by each list
	nodes []*holder
	syncs []*running
	acked map[int]bool
	rule  rule
}

// rule says which parts of the rule hold; the test needs each of them.
type rule struct {
	sameList bool // a sync begins only under one list
	terms    bool // a sync that began before the list changed counts for nothing
	changed  bool // what such a sync brings begins another term
}

var whole = rule{true, true, true}

type holder struct {
	Handover
	id      roster.ID
	list    int
	records map[int]bool
	opening int // counts how often the shard was opened anew: a sync of an earlier one ends with an error
}

type running struct {
	sides   [2]int
	terms   [2]Term
	opening [2]int
	records [2][]int
}

func newWorld(seed uint64, r rule) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 50)), acked: map[int]bool{}, rule: r}
	n := 3 + w.IntN(4)
	for range 2 + w.IntN(4) {
		w.lists = append(w.lists, w.Perm(n)[:1+w.IntN(2)])
	}
	for i := range n {
		w.nodes = append(w.nodes, &holder{id: host(i).ID, records: map[int]bool{}})
		w.adopt(i, 0)
	}
	return w
}

func (w *world) hosts(i int) bool { return slices.Contains(w.lists[w.nodes[i].list], i) }

func (w *world) adopt(i, list int) {
	h := w.nodes[i]
	h.list = list
	var ids []roster.ID
	for _, n := range w.lists[list] {
		ids = append(ids, host(n).ID)
	}
	if !w.rule.terms && h.equal != nil {
		h.hosts = ids // what was found equal goes on to count
		return
	}
	h.Hosts(ids)
}

func (w *world) begin(a, b int) {
	if w.rule.sameList && w.nodes[a].list != w.nodes[b].list {
		return
	}
	s := &running{sides: [2]int{a, b}}
	for side, i := range s.sides {
		h := w.nodes[i]
		s.terms[side], s.opening[side] = h.Term(), h.opening
		for r := range h.records {
			s.records[side] = append(s.records[side], r)
		}
	}
	w.syncs = append(w.syncs, s)
}

func (w *world) end(n int) {
	s := w.syncs[n]
	w.syncs = slices.Delete(w.syncs, n, n+1)
	for side, i := range s.sides {
		if w.nodes[i].opening != s.opening[side] {
			return
		}
	}
	for side, i := range s.sides {
		h, grown := w.nodes[i], false
		for _, r := range s.records[1-side] {
			grown = grown || !h.records[r]
			h.records[r] = true
		}
		if grown && w.rule.changed && s.terms[side] != h.Term() {
			h.Changed()
		}
	}
	for side, i := range s.sides {
		term := s.terms[side]
		if !w.rule.terms {
			term = w.nodes[i].Term()
		}
		w.nodes[i].Equal(w.nodes[s.sides[1-side]].id, term)
	}
}

func (w *world) step() {
	i := w.IntN(len(w.nodes))
	h := w.nodes[i]
	switch w.IntN(8) {
	case 0:
		w.adopt(i, w.IntN(len(w.lists)))
	case 1:
		if w.hosts(i) { // others refuse it
			r := len(w.acked)
			h.records[r], w.acked[r] = true, true
		}
	case 2, 3, 4:
		if j := w.IntN(len(w.nodes)); j != i && len(w.syncs) < 6 {
			w.begin(i, j)
		}
	case 5, 6:
		if len(w.syncs) > 0 {
			w.end(w.IntN(len(w.syncs)))
		}
	case 7:
		if h.MayDrop() {
			h.records = map[int]bool{}
			h.opening++
			w.adopt(i, h.list) // opened anew, empty
		}
	}
}

// lost is a record that was acknowledged and that no node holds, or −1.
func (w *world) lost() int {
	for r := range w.acked {
		if !slices.ContainsFunc(w.nodes, func(h *holder) bool { return h.records[r] }) {
			return r
		}
	}
	return -1
}

// settle gives all nodes one list, and lets them sync and drop as the rule says.
func (w *world) settle(t *testing.T) {
	t.Helper()
	list := w.IntN(len(w.lists))
	for i := range w.nodes {
		w.adopt(i, list)
	}
	for len(w.syncs) > 0 {
		w.end(0)
	}
	for range 2 { // what the first round brings a host, the second brings the others
		for i := range w.nodes {
			for _, j := range w.lists[list] {
				if i != j {
					w.begin(i, j)
					w.end(0)
				}
			}
		}
	}
	for i, h := range w.nodes {
		switch {
		case w.hosts(i) && h.MayDrop():
			t.Errorf("host %d may drop", i)
		case w.hosts(i) && len(h.records) < len(w.acked):
			t.Errorf("host %d has %d records of %d", i, len(h.records), len(w.acked))
		case !w.hosts(i) && !h.MayDrop():
			t.Errorf("node %d may not drop: %d hosts are missing", i, len(h.Missing()))
		}
	}
}

func run(seed uint64, r rule) (w *world, lost int) {
	w = newWorld(seed, r)
	for range 400 {
		if w.step(); w.lost() >= 0 {
			return w, w.lost()
		}
	}
	return w, -1
}

// No record that a host has acknowledged is lost, whatever the nodes believe meanwhile;
// and once they believe the same, the hosts hold all, and the others may drop it.
func TestHandoverLosesNothing(t *testing.T) {
	for seed := range uint64(3000) {
		w, lost := run(seed, whole)
		if lost >= 0 {
			t.Fatalf("seed %d: record %d is lost", seed, lost)
		}
		if w.settle(t); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Without one part of the rule records are lost.
func TestEachPartOfTheRuleIsNeeded(t *testing.T) {
	for name, r := range map[string]rule{
		"syncs under two lists":        {false, true, true},
		"syncs from before the change": {true, false, true},
	} {
		seed, lost := uint64(0), -1
		for ; seed < 3000 && lost < 0; seed++ {
			_, lost = run(seed, r)
		}
		if lost < 0 {
			t.Errorf("%s: no record was lost", name)
		}
	}
}

// A gives a record to b, which both take for the host, and drops it; b had learnt by the
// middle of that sync that c is the host, and had been found equal with c before the
// record came.
func TestASyncThatAChangeOvertakes(t *testing.T) {
	for _, r := range []rule{whole, {true, true, false}} {
		w := newWorld(1, r)
		w.lists = [][]int{{0}, {1}, {2}}
		const a, b, c = 0, 1, 2
		adopt := func(list int, nodes ...int) {
			for _, i := range nodes {
				w.adopt(i, list)
			}
		}
		adopt(0, a, b, c)
		w.nodes[a].records[0], w.acked[0] = true, true
		adopt(1, a, b)
		w.begin(a, b)
		adopt(2, b, c)
		w.begin(b, c)
		w.end(1)
		w.end(0)
		if !w.nodes[a].MayDrop() {
			t.Fatal("a does not count b")
		}
		if w.nodes[b].MayDrop() == r.changed {
			t.Errorf("with what the sync brings in view (%t) b may drop the record", r.changed)
		}
	}
}

// Each of the hosts must have been found equal, and a node that knows of no hosts, or is
// one, drops nothing.
func TestMissing(t *testing.T) {
	var h Handover
	if h.MayDrop() {
		t.Error("the zero value may drop")
	}
	h.Hosts([]roster.ID{host(1).ID, host(2).ID})
	early := h.Term()
	if !h.Equal(host(2).ID, early) || h.MayDrop() || !slices.Equal(h.Missing(), []roster.ID{host(1).ID}) {
		t.Errorf("after one of two: %v", h.Missing())
	}
	h.Equal(host(3).ID, h.Term())
	if h.Equal(host(1).ID, h.Term()); !h.MayDrop() {
		t.Errorf("after both: %v", h.Missing())
	}
	h.Hosts(nil)
	if h.MayDrop() || h.Equal(host(1).ID, early) {
		t.Error("without hosts it may drop, or counts a sync of another term")
	}
}
