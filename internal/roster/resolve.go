package roster

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/syncd-io/syncd/dbadapter"
)

func compareIDs(a, b ID) int { return strings.Compare(string(a), string(b)) }

// resolution is what follows from the set as it is.
type resolution struct {
	list  *List
	core  []*entry // each after those that it names
	heads []Hash
	shown map[request][][]byte // by Explain
	idle  []*entry             // neither stand nor are reached by one that stands
}

// List is what the statements in the set say, whatever the order they arrived in.
func (s *Set) List() *List { return s.resolve().list }

// Digest is the digest of the list.
func (s *Set) Digest() Digest { return s.resolve().list.digest }

// Heads are the statements that no other one names, of those that stand or are
// reached by one that stands.
func (s *Set) Heads() []Hash { return s.resolve().heads }

func (s *Set) resolve() *resolution {
	if s.resolved != nil {
		return s.resolved
	}
	v := s.all()
	l := &List{
		byID: map[ID]int{}, writers: map[dbadapter.WriterID]ID{}, spans: map[ID][]span{},
		former: map[ID]FormerMember{}, seats: map[ID][]seat{}, above: map[seat]bits{},
		from: map[ID][]seat{}, links: map[seat]link{},
	}
	s.resolved, s.last = &resolution{list: l, shown: map[request][][]byte{}}, l
	s.core(v)
	if len(s.founds) > 0 {
		l.policy, l.placement = *s.entries[s.found()].Policy, s.cfg.Placement
	}
	ids := make([]ID, 0, len(s.subjects)+1)
	for id := range s.subjects {
		ids = append(ids, id)
	}
	if s.subjects[s.cfg.Creator] == nil && len(s.founds) > 0 {
		ids = append(ids, s.cfg.Creator)
	}
	slices.SortFunc(ids, compareIDs)
	for _, id := range ids {
		l.place(v, id)
	}
	l.link(v)
	l.gone = l.digestGone()
	return s.resolved
}

// found is the founding statement that counts: the lowest hash.
func (s *Set) found() int {
	return slices.MinFunc(s.founds, func(a, b int) int { return byHash(s.entries[a], s.entries[b]) })
}

// core finds the statements that stand or are reached by one that stands, and
// from them heads and digest. The others change nothing, so that a node that has
// them and one that does not agree.
func (s *Set) core(v *view) {
	var reached bits
	var core []*entry
	var voided []*entry
	var layout, latest *entry // latest: void ones counted
	r := s.resolved
	counting := -1
	if len(s.founds) > 0 {
		counting = s.found()
	}
	s.count = newCount()
	for i := len(s.entries) - 1; i >= 0; i-- { // each after those that it names: reached is complete at i
		e := s.entries[i]
		stands := v.stands(i) && (e.Kind != Found || i == counting)
		if e.Kind == Layout && e.beats(latest) {
			latest = e
		}
		if stands && e.Kind == Layout && e.beats(layout) {
			layout = e
		}
		if !stands {
			voided = append(voided, e)
		}
		named := reached.has(i)
		if !stands && !named {
			r.idle = append(r.idle, e)
			s.count.void++
			continue
		}
		core = append(core, e)
		s.count.add(e)
		if !named {
			r.heads = append(r.heads, e.hash)
			reached = reached.union(e.past)
		}
	}
	r.list.overtaken = latest != layout
	if layout != nil {
		r.list.layout = StatedLayout{layout.Epoch, layout.Table, layout.hash, layout.Author, layout.At}
	}
	r.core = slices.Clone(core)
	slices.Reverse(r.core)
	slices.SortFunc(r.heads, Hash.compare)
	slices.SortFunc(core, byHash)
	sum := sha256.New()
	for _, e := range core {
		sum.Write(e.hash[:])
	}
	r.list.digest = Digest(sum.Sum(nil)[:len(Digest{})])
	slices.SortFunc(voided, byHash)
	for _, e := range voided {
		r.list.voided = append(r.list.voided, VoidStatement{e.Statement, e.hash})
	}
}

// beats reports whether a layout counts before another one, which may be nil.
func (e *entry) beats(o *entry) bool {
	return o == nil || e.Epoch > o.Epoch || e.Epoch == o.Epoch && byHash(e, o) > 0
}

// place works out what one node is by the list.
func (l *List) place(v *view, id ID) {
	writer, err := id.Writer()
	if err != nil {
		panic("roster: an id in the set has no key") // Parse checks each
	}
	if _, taken := l.writers[writer]; !taken { // the ids come sorted
		l.writers[writer] = id
	}
	if spans := v.spans(id); len(spans) > 0 {
		l.spans[id] = spans
	}
	role, grant := v.role(id)
	if role == 0 {
		if f, ok := v.former(id); ok {
			l.former[id] = f
		}
		return
	}
	if grant < 0 {
		grant = v.set.found()
	}
	g := v.set.entries[grant]
	m := Member{
		ID: id, Role: role, Writer: writer, Since: g.At, Expires: g.Expires, Grant: g.hash, By: g.Author,
		Lapsed: v.lapsed(id), Epoch: v.epoch(id),
	}
	if role == RoleAdmin {
		l.seats[id] = v.seats(id)
		for _, t := range l.seats[id] {
			l.above[t] = v.above(t)
		}
	}
	l.byID[id] = len(l.members)
	l.members = append(l.members, m)
	if !m.Lapsed {
		l.active = append(l.active, m)
	}
}

// epoch counts the removals, expiries and lapses of a member that stand.
func (v *view) epoch(id ID) (n int) {
	h := v.set.subjects[id]
	if h == nil {
		return 0
	}
	for _, i := range h.enders {
		if v.set.entries[i].Kind != Grant && v.has(i) && v.stands(i) {
			n++
		}
	}
	for _, i := range h.lapses {
		if v.has(i) && v.stands(i) {
			n++
		}
	}
	return n
}

// EndedSince is the latest time of a statement that took a node's role and that these
// heads do not reach. It did so since these were the heads. 0: there is no such one.
func (s *Set) EndedSince(id ID, seen []Hash) (at dbadapter.Timestamp) {
	var known []int
	for _, h := range seen {
		if i, here := s.byHash[h]; here {
			known = append(known, i)
		}
	}
	v := s.all()
	before := v.reached(known).union(bitsOf(known))
	if h := s.subjects[id]; h != nil {
		for _, i := range h.enders {
			if e := s.entries[i]; e.Kind != Grant && !before.has(i) && v.stands(i) {
				at = max(at, e.At)
			}
		}
	}
	// What made its grants void is about another node.
	if f, former := s.List().Former(id); former && f.Void && !before.has(s.byHash[HashOf(f.Statement)]) {
		at = max(at, f.At)
	}
	return at
}

// former is the statement that took the role of a node that is no member, the latest
// standing one about it. If its grants are all void, it is one that took the authority
// of a grant's author.
func (v *view) former(id ID) (FormerMember, bool) {
	h := v.set.subjects[id]
	if h == nil {
		return FormerMember{}, false
	}
	last := -1
	for _, i := range h.enders {
		e := v.set.entries[i]
		if e.Kind != Grant && v.stands(i) && (last < 0 || cmp.Or(cmp.Compare(e.At, v.set.entries[last].At), byHash(e, v.set.entries[last])) > 0) {
			last = i
		}
	}
	var f *entry
	if last >= 0 {
		f = v.set.entries[last]
	} else if f = v.voider(h); f == nil {
		return FormerMember{}, false
	}
	return FormerMember{ID: id, RemovedBy: f.Author, At: f.At, Statement: f.value, Void: last < 0}, true
}

// voider is a statement that made a grant about a member void. The grant is one of the
// latest. A removal is taken rather than a step down, then the earliest.
func (v *view) voider(h *history) (first *entry) {
	for _, g := range h.latest() {
		if v.stands(g) {
			continue
		}
		for _, i := range v.against(g) {
			if e := v.set.entries[i]; first == nil || sooner(e, first) < 0 {
				first = e
			}
		}
	}
	return first
}

// sooner orders statements that end a role: a removal or an expiry before a step down,
// then the earliest.
func sooner(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Kind, a.Kind), // Remove and Expire are after Grant
		cmp.Compare(a.At, b.At), byHash(a, b))
}

// takersApart are the statements that take a seat apart from the statement e.
func (v *view) takersApart(t seat, e *entry) []int {
	return slices.DeleteFunc(v.allTakers(t), func(i int) bool { return !v.apart(i, v.set.entries[i], e) })
}

// against are the statements that took the authority of a void grant's author. Where no
// statement did, they are those against the author of a grant that gave this authority.
func (v *view) against(g int) (takers []int) {
	e := v.set.entries[g]
	for _, t := range e.seats {
		takers = append(takers, v.takersApart(t, e)...)
	}
	for _, t := range e.seats {
		if len(takers) == 0 && t != root && !v.stands(t.entry()) {
			takers = v.against(t.entry()) // t is earlier than g, so that this ends
		}
	}
	return takers
}
