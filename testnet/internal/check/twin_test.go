package check

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/syncd-io/syncd/dbadapter"
)

// The twin judges a history by its list of happenings alone: each rule is one
// statement about all pairs of them. It has no state, orders versions with the
// code under test, and takes cubic time.

// happening is a record that a node held, or, with restored set, the replacement
// of its disk.
type happening struct {
	node     int
	r        dbadapter.Record
	restored bool
	copied   bool // that a copy of its disk was made; it holds no record then
	final    bool // told by the dump of the end
	start    int  // number of the start whose dump told it; 0: not from a dump
	answer   bool // told by the answer to a write
}

// mute: it tells of no record.
func (e *happening) mute() bool { return e.restored || e.copied }

// past is the input of both the History and the twin.
type past struct {
	h       *History
	list    []happening
	ops     []op // the twin's own notes of them
	records []dbadapter.Record
	starts  []happening // the starts, as the node and the place in the list
}

// broken is where a rule is.
type broken struct {
	rule Rule
	node int
	key  string
}

func (p *past) twin(finals []Final) map[broken]bool {
	bad := map[broken]bool{}
	list := slices.Clone(p.list)
	for _, f := range finals {
		for _, r := range f.Dump {
			list = append(list, happening{node: f.Node, r: r, final: true})
		}
	}
	// restoredIn: what stood at the node at one place of the list, may it be
	// gone at another, for the node was restored from a copy without it?
	restoredIn := func(node, from, to int) bool {
		there, inCopy := true, false
		for _, e := range list[from:to] {
			switch {
			case e.node != node:
			case e.copied:
				inCopy = there
			case e.restored:
				there = inCopy
			}
		}
		return !there
	}
	for j, b := range list {
		for i, a := range list[:j] {
			if a.mute() || b.mute() {
				continue
			}
			sameKey := bytes.Equal(a.r.Key, b.r.Key)
			if sameKey && a.node == b.node && a.r.Compare(&b.r) > 0 && !restoredIn(a.node, i, j) && (!b.answer || b.r.Version.Writer != 0) {
				// The rule is resurrect if the greatest one before was a deletion.
				greatest := a
				for k, c := range list[:j] {
					if !c.mute() && c.node == b.node && bytes.Equal(c.r.Key, b.r.Key) && !restoredIn(c.node, k, j) && c.r.Compare(&greatest.r) > 0 {
						greatest = c
					}
				}
				rule := Backwards
				if greatest.r.Deleted && !b.r.Deleted && !b.answer {
					rule = Resurrect
				}
				bad[broken{rule, b.node, string(b.r.Key)}] = true
			}
			// Of several records, the first that had the version is correct.
			if b.r.Version.Writer != 0 && a.r.Version == b.r.Version && (!sameKey || !a.r.SameContent(&b.r)) && p.first(list, b) {
				bad[broken{Identity, b.node, string(b.r.Key)}] = true
			}
		}
	}
	for n, s := range p.starts {
		for i, a := range list[:s.start] {
			in := slices.ContainsFunc(list, func(e happening) bool { return e.start == n+1 && bytes.Equal(e.r.Key, a.r.Key) })
			if !a.mute() && a.node == s.node && !restoredIn(a.node, i, s.start) && !in {
				bad[broken{Durable, a.node, string(a.r.Key)}] = true
			}
		}
	}
	p.twinEnd(bad, list, finals, restoredIn)
	p.twinIntended(bad, list)
	return bad
}

// twinEnd: take each record that a node of a group held since its last
// restoration, and that is the greatest of its key there. A node of the group
// holds one as great; and the dumps of the group are equal.
func (p *past) twinEnd(bad map[broken]bool, list []happening, finals []Final, restoredIn func(node, from, to int) bool) {
	for _, f := range finals {
		for i, a := range list {
			if a.mute() || a.node != f.Node || restoredIn(a.node, i, len(list)) {
				continue
			}
			greatest, there, live := true, false, false
			for j, b := range list {
				inGroup := slices.ContainsFunc(finals, func(g Final) bool { return g.Reach == f.Reach && g.Node == b.node })
				if b.mute() || !inGroup || !bytes.Equal(a.r.Key, b.r.Key) || restoredIn(b.node, j, len(list)) {
					continue
				}
				c := b.r.Compare(&a.r)
				greatest = greatest && c <= 0
				there = there || b.final && c >= 0
				live = live || b.final && !b.r.Deleted && p.tops(list, finals, f.Reach, b)
			}
			switch {
			case !greatest || there:
			case a.r.Deleted && live:
				bad[broken{Resurrect, -1, string(a.r.Key)}] = true
			default:
				bad[broken{Durable, -1, string(a.r.Key)}] = true
			}
		}
		for _, g := range finals {
			if g.Reach != f.Reach || g.Node >= f.Node {
				continue
			}
			for _, pair := range [][2]Final{{f, g}, {g, f}} {
				for _, r := range pair[0].Dump {
					if !slices.ContainsFunc(pair[1].Dump, func(o dbadapter.Record) bool { return bytes.Equal(o.Key, r.Key) && o.Compare(&r) == 0 }) {
						bad[broken{Equal, -1, string(r.Key)}] = true
					}
				}
			}
		}
	}
}

// tops: is b the greatest of its key among the dumps of a group?
func (p *past) tops(list []happening, finals []Final, reach int, b happening) bool {
	return !slices.ContainsFunc(list, func(c happening) bool {
		return c.final && bytes.Equal(c.r.Key, b.r.Key) && c.r.Compare(&b.r) > 0 &&
			slices.ContainsFunc(finals, func(g Final) bool { return g.Reach == reach && g.Node == c.node })
	})
}

// first: was another key or content the first with b's version?
func (p *past) first(list []happening, b happening) bool {
	for _, a := range list {
		if !a.mute() && a.r.Version == b.r.Version {
			return !bytes.Equal(a.r.Key, b.r.Key) || !a.r.SameContent(&b.r)
		}
	}
	return false
}

// twinIntended: the different records of one key and content that were not
// acknowledged are no more than the writes of it with unknown outcome.
func (p *past) twinIntended(bad map[broken]bool, list []happening) {
	for _, a := range list {
		if a.mute() {
			continue
		}
		var versions []dbadapter.Version
		writes := 0
		for _, b := range list {
			if b.mute() || !bytes.Equal(a.r.Key, b.r.Key) || !a.r.SameContent(&b.r) || slices.Contains(versions, b.r.Version) {
				continue
			}
			if !slices.ContainsFunc(p.ops, func(o op) bool {
				return o.state == acknowledged && o.version == b.r.Version && o.key == string(b.r.Key) && o.content == b.r.ContentHash()
			}) {
				versions = append(versions, b.r.Version)
			}
		}
		for _, o := range p.ops {
			if o.state == unknown && o.key == string(a.r.Key) && o.content == a.r.ContentHash() {
				writes++
			}
		}
		if len(versions) > writes {
			bad[broken{Intended, -1, string(a.r.Key)}] = true
		}
	}
}

// randomPast draws a history that breaks rules often, with so few nodes, keys and
// versions that collisions are frequent.
func randomPast(rng *rand.Rand) (*past, []Final) {
	p := &past{h: New()}
	world := 2 + rng.IntN(4)
	draw := func() dbadapter.Record {
		r := dbadapter.Record{Key: []byte{byte('k' + rng.IntN(2))}, Deleted: rng.IntN(3) == 0}
		if !r.Deleted {
			r.Value = []byte{byte('a' + rng.IntN(2))}
		}
		r.Version = dbadapter.Version{Clock: dbadapter.Timestamp(1 + rng.IntN(world)), Writer: dbadapter.WriterID(rng.IntN(3)), Incarnation: uint64(rng.IntN(2))}
		return r
	}
	pick := func() dbadapter.Record {
		if len(p.records) > 0 && rng.IntN(5) > 0 {
			return p.records[rng.IntN(len(p.records))]
		}
		return draw()
	}
	dumpOf := func() (all []dbadapter.Record) {
		keys := map[string]dbadapter.Record{}
		for range rng.IntN(4) {
			r := pick()
			if old, ok := keys[string(r.Key)]; !ok || r.Compare(&old) > 0 {
				keys[string(r.Key)] = r
			}
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, keys[k])
		}
		return all
	}
	for range rng.IntN(12) {
		node := rng.IntN(3)
		switch rng.IntN(9) {
		case 0, 1, 2:
			r := draw()
			id := p.h.Intend(node, string(r.Key), r.Deleted, r.Value)
			o := op{node: node, key: string(r.Key), content: r.ContentHash(), deleted: r.Deleted}
			switch rng.IntN(4) {
			case 0:
				p.h.Refuse(id)
				o.state = refused
			case 1:
			default:
				p.h.Acknowledge(id, r.Version)
				o.state, o.version = acknowledged, r.Version
				p.list = append(p.list, happening{node: node, r: r, answer: true})
			}
			p.ops = append(p.ops, o)
			p.records = append(p.records, r)
		case 3:
			p.h.Restored(node)
			p.list = append(p.list, happening{node: node, restored: true})
		case 4:
			all := dumpOf()
			p.starts = append(p.starts, happening{node: node, start: len(p.list)})
			p.h.Started(node, all)
			for _, r := range all {
				p.list = append(p.list, happening{node: node, r: r, start: len(p.starts)})
			}
		case 5:
			p.h.Copied(node)
			p.list = append(p.list, happening{node: node, copied: true})
		default:
			r := pick()
			p.h.Observe(node, &r)
			p.list = append(p.list, happening{node: node, r: r})
		}
	}
	var finals []Final
	shared := dumpOf()
	for node := range 3 {
		if rng.IntN(4) == 0 {
			finals = append(finals, Final{Node: node, Down: true})
			continue
		}
		records := shared
		if rng.IntN(3) == 0 {
			records = dumpOf()
		}
		finals = append(finals, final(node, rng.IntN(2), records...))
	}
	return p, finals
}

// The checker and its twin find the same violations in random histories.
func TestTwin(t *testing.T) {
	rules, clean := map[Rule]int{}, 0
	for seed := range uint64(6_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p, finals := randomPast(rng)
		var up []Final
		for _, f := range finals {
			if !f.Down {
				up = append(up, f)
			}
		}
		want := p.twin(up)
		verdict := p.h.Check(finals)
		got := map[broken]bool{}
		for _, v := range verdict {
			if v.Rule == Equal && v.Key == "" {
				continue // the digests, which the rule finds by the keys too
			}
			b := broken{v.Rule, v.Node, v.Key}
			got[b] = true
		}
		if a, b := coarse(got), coarse(want); !maps.Equal(a, b) {
			t.Fatalf("seed %d: the checker finds %v, its twin %v\nhappenings %s\nfinals %s\nverdict %v",
				seed, slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)), show(p.list), showFinals(finals), verdict)
		}
		for b := range got {
			rules[b.rule]++
		}
		if len(got) == 0 {
			clean++
		}
	}
	for _, r := range []Rule{Equal, Durable, Resurrect, Backwards, Identity, Intended} {
		if rules[r] < 100 {
			t.Errorf("only %d histories break %q: the test says little of it", rules[r], r)
		}
	}
	if clean < 100 {
		t.Errorf("only %d histories are without fault", clean)
	}
}

// coarse leaves out the node where a rule may name any of several.
func coarse(in map[broken]bool) map[string]bool {
	out := map[string]bool{}
	for b := range in {
		switch b.rule {
		case Backwards, Identity:
			out[fmt.Sprint(b.rule, " ", b.node, " ", b.key)] = true
		default:
			out[fmt.Sprint(b.rule, " ", b.key)] = true
		}
	}
	return out
}

func show(list []happening) (s string) {
	for _, e := range list {
		if e.mute() {
			s += fmt.Sprintf("\n  %d restored %v copied %v", e.node, e.restored, e.copied)
			continue
		}
		s += fmt.Sprintf("\n  %d %s %s start %d", e.node, e.r.Key, stampOf(&e.r), e.start)
	}
	return s
}

func showFinals(finals []Final) (s string) {
	for _, f := range finals {
		s += fmt.Sprintf("\n  %d reach %d down %v", f.Node, f.Reach, f.Down)
		for _, r := range f.Dump {
			s += fmt.Sprintf("\n    %s %s", r.Key, stampOf(&r))
		}
	}
	return s
}

// The order of the reference merge is that of the records.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	ties := 0
	draw := func() dbadapter.Record {
		r := put("k", string(rune('a'+rng.IntN(3))), dbadapter.Version{Clock: dbadapter.Timestamp(rng.IntN(2)), Writer: dbadapter.WriterID(rng.IntN(2)) << 63, Incarnation: uint64(rng.IntN(2)) << 63})
		if rng.IntN(4) == 0 {
			return gone("k", r.Version)
		}
		return r
	}
	for range 10_000 {
		a, b := draw(), draw()
		if got, want := stampOf(&a).beats(stampOf(&b)), a.Compare(&b) > 0; got != want {
			t.Fatalf("%v beats %v: %v, want %v", a, b, got, want)
		}
		if a.Version == b.Version && !a.SameContent(&b) {
			ties++
		}
	}
	if ties < 100 {
		t.Errorf("only %d ties", ties)
	}
}
