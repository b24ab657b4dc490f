package quorum

import (
	"flag"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	histories = flag.Int("histories", 20_000, "of TestAdversary")
	firstSeed = flag.Uint64("first", 0, "the seed of the first history")
)

// A set of members is a bit mask.
type set uint8

func (s set) has(i int) bool { return s>>i&1 == 1 }
func (s set) count() int     { return bits.OnesCount8(uint8(s)) }
func one(i int) set          { return 1 << i }

var names = func() (all [8]ID) {
	for i := range all {
		all[i] = ID(rune('a' + i))
	}
	return all
}()

func number(id ID) int { return int(id[0] - 'a') }

func (s set) ids() (ids []ID) {
	for i := range 8 {
		if s.has(i) {
			ids = append(ids, names[i])
		}
	}
	return ids
}

func (s set) is() func(ID) bool { return func(id ID) bool { return s.has(number(id)) } }

func setOf(ids []ID) (s set) {
	for _, id := range ids {
		s |= one(number(id))
	}
	return s
}

// a row as the world knows it.
type tabled struct {
	*Row
	old, new, hosts set
	removed         set // the members that are removed by its layout
	ready           set // the new hosts that have signed under it
}

// member is a node. row, version, holds, suspects and host.Whole are durable.
type member struct {
	number   int
	host     Host
	row      *tabled
	version  uint64 // that it has of the one key; 0 is none
	holds    bool   // it has the shard's records, or some of them
	suspects []*request
	up       bool
	life     int // counts its crashes
}

// request is a quorum read or a quorum write on its way.
type request struct {
	member              *member
	read                bool
	row                 *tabled
	version             uint64
	seen                map[uint64]bool // the versions that the record names as replaced
	conditional         bool
	accepted            bool // a host has compared, and has committed
	done                bool
	floor               uint64 // the greatest version acknowledged when it began
	answered, confirmed set
	whole               set // those of the answered that were whole
	best                uint64
}

func (q *request) clear() { q.answered, q.confirmed, q.whole, q.best = 0, 0, 0, 0 }

// side is what one side of a sync was when it began.
type side struct {
	*member
	life    int
	row     *tabled
	term    Term
	version uint64
	whole   bool
}

// late is a single message that may arrive once, later, or never. seen is nil of what a read passes on.
type late struct {
	version uint64
	seen    map[uint64]bool
	row     *tabled
	host    int
}

type copied struct {
	row          *tabled
	version      uint64
	whole, holds bool
}

// world plays a history of one key of one shard: requests reach single hosts in any order, or never; syncs
// take time; members crash, lose data, are restored from old copies, lapse, return, are removed; the network
// splits; admins issue rows. Then faults stop, and all must settle. No fault takes the majorities away.
//
//	a  a quorum read is not older than what was acknowledged before it began
//	b  a quorum write is later than that
//	c  no acknowledged write is lost
//	d  moves end, and the hosts are whole and equal
//	e  where no fault was, nothing is lost that a host has taken
//
// In a tenth of the histories admins work apart from one another: only c and d are promised there.
type world struct {
	*rand.Rand
	size     int
	members  []*member
	rows     map[Name]*tabled
	latest   *tabled
	requests []*request
	open     []*request
	syncs    [][2]side
	late     []late
	copies   map[int]copied
	serial   uint64
	now      uint64
	skew     [8]uint64
	group    [8]int

	apart                   bool
	acknowledged, taken     uint64
	removed, lapsed, failed set
	faults                  int
	trace                   *[]string
}

// broken is the letter of the promise that a history breaks.
type broken string

func newWorld(seed uint64, trace *[]string) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 42)), rows: map[Name]*tabled{}, copies: map[int]copied{}, trace: trace}
	w.size = []int{1, 2, 3, 3, 3, 3, 4, 5}[w.IntN(8)]
	n := 4 + w.IntN(4)
	w.apart = w.IntN(10) == 0
	first := min(3, n)
	if w.size < n {
		if first = w.size; w.IntN(10) >= 7 {
			first = 1 + w.IntN(w.size)
		}
	}
	hosts := set(1<<first - 1)
	w.latest = w.tabled(&Row{Epoch: 1, Old: hosts.ids(), New: hosts.ids()}, 0)
	for i := range n {
		w.skew[i] = uint64(w.IntN(61))
		m := &member{number: i, up: true, row: w.latest, holds: hosts.has(i)}
		m.host = Host{Self: names[i], Whole: hosts.has(i)} // founders are whole
		m.host.Go(w.latest.Row)
		w.members = append(w.members, m)
	}
	return w
}

func (w *world) say(format string, args ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf(format, args...))
	}
}

// ---- rows

func (w *world) tabled(r *Row, removed set) *tabled {
	r.Seal()
	if known := w.rows[r.Name()]; known != nil {
		return known
	}
	t := &tabled{Row: r, old: setOf(r.Old), new: setOf(r.New), removed: removed}
	t.hosts = t.old | t.new
	w.rows[r.Name()] = t
	w.say("ROW %d old %07b new %07b", r.Epoch, t.old, t.new)
	if w.latest == nil || later(r, w.latest.Row) {
		w.latest = t
	}
	return t
}

// cut reports that nobody speaks to a member that the own row calls removed.
func (w *world) cut(a, b *member) bool {
	return a.row != nil && a.row.removed.has(b.number) || b.row != nil && b.row.removed.has(a.number)
}

// meet: two members sync their lists, and the older row gives way. (3)
func (w *world) meet(a, b *member) {
	switch {
	case a.row == b.row || w.cut(a, b):
	case b.row == nil || a.row != nil && later(a.row.Row, b.row.Row):
		w.adopt(b, a.row)
	default:
		w.adopt(a, b.row)
	}
}

func (w *world) adopt(m *member, r *tabled) {
	w.say("%c goes by row %d", 'a'+m.number, r.Epoch)
	m.row = r
	m.host.Go(r.Row)
	m.holds = m.holds || r.hosts.has(m.number)
	w.conclude(m)
}

// conclude is what follows from the syncs that a member has ended under its row. Failures count until each
// new host is there, whole and ready.
func (w *world) conclude(m *member) {
	if m.row == nil {
		return
	}
	becomes, _ := m.host.BecomesWhole()
	m.host.Whole = m.host.Whole || becomes
	if m.host.Ready() {
		m.row.ready |= one(m.number)
	}
	if m.holds && m.host.MayDrop() {
		m.holds, m.version = false, 0
	}
	there := w.latest.ready &^ (w.removed | w.lapsed)
	for _, o := range w.members {
		if o.row != w.latest || !o.host.Whole {
			there &^= one(o.number)
		}
	}
	if w.latest.new&^there == 0 {
		w.failed = 0
	}
}

// restart: what is not durable is gone.
func (m *member) restart() {
	m.host = Host{Self: m.host.Self, Whole: m.host.Whole, LostUntil: m.host.LostUntil}
	if m.row != nil {
		m.host.Go(m.row.Row)
	}
}

// ---- syncs

// waits reports whether a write is still open that a member had confirmed before it lost its records: its
// end stands for LongestDeadline.
func (m *member) waits() bool {
	return slices.ContainsFunc(m.suspects, func(q *request) bool { return !q.done && q.confirmed.has(m.number) })
}

func (m *member) side() side {
	now := m.host.LostUntil
	if m.waits() {
		now--
	}
	return side{m, m.life, m.row, m.host.Term(now), m.version, m.host.Whole}
}

func (w *world) beginSync(a, b *member) {
	if !w.cut(a, b) {
		w.syncs = append(w.syncs, [2]side{a.side(), b.side()})
	}
}

// endSync: each has what the other one held at the beginning. (8)
func (w *world) endSync(pair [2]side) {
	if pair[0].member.life != pair[0].life || pair[1].member.life != pair[1].life {
		return // a crash has broken it off
	}
	for i := range pair {
		mine, theirs := &pair[i], &pair[1-i]
		m := mine.member
		if m.holds && theirs.version > m.version {
			m.version = theirs.version
			m.host.Entered(mine.term)
		}
		if mine.row != nil && mine.row == theirs.row {
			m.host.Equal(theirs.host.Self, theirs.whole, 0, mine.term)
		}
	}
	w.conclude(pair[0].member)
	w.conclude(pair[1].member)
}

// ---- requests

func (w *world) begin(m *member, read, conditional bool) {
	w.serial++
	q := &request{member: m, read: read || conditional, row: m.row, version: (w.now+w.skew[m.number])<<12 | w.serial, conditional: conditional, accepted: !conditional, floor: w.acknowledged}
	w.requests, w.open = append(w.requests, q), append(w.open, q)
}

// ask delivers a request to a host of its row, and the answer. (2)
func (w *world) ask(q *request, i int) {
	host, asker := w.members[i], q.member
	if q.row != asker.row {
		w.again(q, 0)
	}
	if host.row != asker.row { // lists first; the asker begins again if its row gave way (3)
		w.meet(host, asker)
		if q.row != asker.row {
			w.again(q, 0)
		}
		return
	}
	if !q.row.hosts.has(i) || !q.read && !q.accepted && !w.compare(q, host) {
		return
	}
	q.answered |= one(i)
	if q.whole &^= one(i); host.host.Whole {
		q.whole |= one(i)
	}
	switch {
	case q.read:
		if host.host.Whole { // another one may hold what was deleted
			q.best = max(q.best, host.version)
		}
	case w.take(host, q.version, q.seen):
		q.confirmed |= one(i)
	default:
		w.again(q, host.version)
		return
	}
	w.judge(q)
}

// again: it begins again under the asker's row (3), or the record is made anew, as one that replaces told (6).
// Messages that are on their way may arrive late.
func (w *world) again(q *request, told uint64) {
	if !q.read && q.accepted {
		for _, id := range q.row.Hosts() {
			if w.IntN(5) == 0 {
				w.late = append(w.late, late{q.version, q.seen, q.row, number(id)})
			}
		}
	}
	if told != 0 {
		w.makeLater(q, told)
	}
	q.row = q.member.row
	q.clear()
}

func (w *world) makeLater(q *request, told uint64) {
	w.serial++
	seen := map[uint64]bool{told: true}
	for v := range q.seen {
		seen[v] = true
	}
	q.seen, q.version = seen, (max(q.version, told)>>12+1)<<12|w.serial
}

// take: a host of something later, or of something that the record has not seen, refuses. (6)
func (w *world) take(m *member, version uint64, seen map[uint64]bool) bool {
	if m.version > version || m.version != 0 && m.version != version && !seen[m.version] {
		return false
	}
	w.say("%c takes %d", 'a'+m.number, version)
	m.version, w.taken = version, max(w.taken, version)
	return true
}

// compare: the first old host that answers is given what the read found, compares, and commits.
func (w *world) compare(q *request, host *member) bool {
	if !q.row.old.has(host.number) {
		return false // it is not asked yet
	}
	for found := range q.seen {
		if host.version > found {
			q.done = true // refused: nothing is written
			return false
		}
		host.version = found
	}
	q.accepted = true
	return true
}

// judge ends a request for which the answers are enough. (5, 7)
func (w *world) judge(q *request) {
	have := q.confirmed
	if q.read {
		have = q.answered
	}
	if !q.row.Enough(have.is(), q.whole.is()) {
		return
	}
	if q.read {
		for i := range w.members {
			if q.answered.has(i) {
				w.late = append(w.late, late{q.best, nil, q.row, i})
			}
		}
		if q.conditional {
			q.read = false // the write follows
			w.makeLater(q, q.best)
			q.clear()
			return
		}
	}
	q.done = true
	version := q.version
	if q.read {
		version = q.best
	}
	w.say("read %t of %d ends, row %d, behind %d", q.read, version, q.row.Epoch, q.floor)
	switch {
	case w.apart:
	case q.read && version < q.floor:
		panic(broken("a"))
	case !q.read && version <= q.floor:
		panic(broken("b"))
	}
	if !q.read {
		w.acknowledged = max(w.acknowledged, version)
	}
}

func (w *world) deliver(l late) {
	m := w.members[l.host]
	switch {
	case !m.up || m.row != l.row || !l.row.hosts.has(l.host):
	case l.seen == nil:
		m.version = max(m.version, l.version)
	default:
		w.take(m, l.version, l.seen)
	}
}

// probe: a read that began now must not end with something stale.
func (w *world) probe() {
	if w.apart {
		return
	}
	for i, m := range w.members {
		if m.row == nil || slices.ContainsFunc(w.members[:i], func(o *member) bool { return o.row == m.row }) {
			continue
		}
		var stale, whole set
		for _, o := range w.members {
			if o.up && o.row == m.row && (o.version < w.acknowledged || !o.host.Whole) {
				if stale |= one(o.number); o.host.Whole {
					whole |= one(o.number)
				}
			}
		}
		if stale != 0 && m.row.Enough(stale.is(), whole.is()) {
			w.say("a read under row %d may be older than %d", m.row.Epoch, w.acknowledged)
			panic(broken("a"))
		}
	}
}

// ---- faults

func (w *world) crash(m *member) {
	m.up = false
	m.life++
	m.restart()
	for _, q := range w.open {
		q.done = q.done || q.member == m
	}
}

// spares reports whether majorities would be there still if a member failed, too.
func (w *world) spares(m *member) bool {
	left := ^(w.failed | one(m.number))
	return (left&w.latest.old).count() >= Majority(w.latest.old.count()) && (left&w.latest.new).count() >= Majority(w.latest.new.count())
}

func (w *world) fault(m *member) {
	if w.lapsed.has(m.number) {
		if w.IntN(10) < 6 { // it returns
			w.lapsed &^= one(m.number)
			m.up = true
		}
		return
	}
	if w.removed.has(m.number) || w.apart {
		return
	}
	if w.latest.hosts.has(m.number) {
		if !w.spares(m) {
			return
		}
		w.failed |= one(m.number)
	}
	w.faults++
	switch x := w.IntN(20); {
	case x < 12:
		w.say("%c loses data", 'a'+m.number)
		w.crash(m)
		m.up = true
		w.lose(m, x < 7)
	case x < 16:
		w.say("%c lapses", 'a'+m.number)
		w.crash(m)
		m.host.Lose()
		w.lapsed |= one(m.number)
	default:
		w.say("%c is removed", 'a'+m.number)
		w.removed |= one(m.number) // it goes on with those that do not know it yet
	}
}

// lose: a member's data is lost, or replaced by that of a copy. (4)
func (w *world) lose(m *member, copy bool) {
	var from copied
	if copy {
		from = w.copies[m.number]
	}
	m.suspects = nil
	for _, q := range w.open {
		if !q.done && q.confirmed.has(m.number) {
			m.suspects = append(m.suspects, q)
		}
	}
	m.row, m.version, m.holds = from.row, from.version, from.holds
	m.host = Host{Self: m.host.Self, Whole: from.whole, LostUntil: LongestDeadline}
	if m.row != nil {
		m.host.Go(m.row.Row)
	}
	m.host.Lose()
}

// ---- events

func (w *world) reach(a, b *member) bool {
	return a != b && a.up && b.up && w.group[a.number] == w.group[b.number]
}

func (w *world) among(s set) *member {
	ids := s.ids()
	return w.members[number(ids[w.IntN(len(ids))])]
}

type event int

const (
	asks event = iota
	begins
	conditions
	givesUp
	synchronizes
	meets
	delivers
	crashes
	copies
	fails
	issues
	splits
)

func (w *world) step(kind event) {
	w.now++
	a, b := w.members[w.IntN(len(w.members))], w.members[w.IntN(len(w.members))]
	w.open = slices.DeleteFunc(w.open, func(q *request) bool { return q.done })
	switch kind {
	case asks:
		if len(w.open) > 0 {
			q := w.open[w.IntN(len(w.open))]
			if host := w.among(q.row.hosts); host == q.member || w.reach(host, q.member) {
				w.ask(q, host.number)
			}
		}
	case givesUp:
		if len(w.open) > 0 {
			w.open[w.IntN(len(w.open))].done = true
		}
	case begins, conditions:
		if a.up && a.row != nil && len(w.open) < 5 {
			w.begin(a, kind == begins && w.IntN(4) == 0, kind == conditions)
		}
	case synchronizes:
		if w.reach(a, b) {
			w.beginSync(a, b)
		}
		if len(w.syncs) > 0 && w.IntN(10) < 7 {
			i := w.IntN(len(w.syncs))
			pair := w.syncs[i]
			w.syncs = slices.Delete(w.syncs, i, i+1)
			w.endSync(pair)
		}
	case meets:
		if w.reach(a, b) {
			w.meet(a, b)
		}
	case delivers:
		if len(w.late) > 0 {
			i := w.IntN(len(w.late))
			l := w.late[i]
			w.late = slices.Delete(w.late, i, i+1)
			w.deliver(l)
		}
	case crashes:
		if a.up && w.IntN(2) == 0 {
			w.crash(a)
		} else if !w.lapsed.has(a.number) {
			a.up = true
		}
	case copies:
		w.copies[a.number] = copied{a.row, a.version, a.host.Whole, a.holds}
	case fails:
		if w.lapsed != 0 && w.IntN(2) == 0 {
			a = w.among(w.lapsed)
		} else if w.IntN(10) < 7 {
			a = w.among(w.latest.hosts)
		}
		w.fault(a)
	case issues:
		w.newRow()
	case splits:
		for i := range w.group {
			if w.group[i] = 0; w.IntN(2) == 0 {
				w.group[i] = w.IntN(2)
			}
		}
	}
}

// newRow: an admin changes the hosts at random, or ends a move.
func (w *world) newRow() {
	row := w.latest
	if w.apart {
		if r := w.members[w.IntN(len(w.members))].row; r != nil {
			row = r
		}
	}
	gone := w.removed | w.lapsed
	ended := row.Ready(row.ready.is())
	if !ended && !row.AtRest() && row.new&gone == 0 && w.IntN(100) >= 15 {
		return
	}
	all := set(1<<len(w.members) - 1)
	new := row.new &^ gone
	stay := new.ids()
	w.Shuffle(len(stay), func(i, j int) { stay[i], stay[j] = stay[j], stay[i] })
	out := setOf(stay[:min(len(stay), w.IntN(w.size+1))])
	new &^= out
	pool := (all &^ gone &^ new).ids()
	pool = slices.DeleteFunc(pool, func(id ID) bool { return out.has(number(id)) && w.IntN(10) > 0 })
	w.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	size := w.size
	if w.IntN(100) >= 85 {
		size = 1 + w.IntN(w.size)
	}
	new |= setOf(pool[:min(len(pool), max(0, size-new.count()))])
	if !row.AtRest() && ended && w.IntN(10) < 7 {
		new = row.new // the move ends, and none begins
	}
	if live := all &^ gone; new != 0 && live != 0 {
		if next := row.Next(row.Epoch+1, new.ids(), row.ready.is()); next != row.Row {
			w.adopt(w.among(live), w.tabled(next, w.removed))
		}
	}
}

// finish: faults stop. In twelve rounds everybody meets, asks and syncs, and the admin ends what is open.
func (w *world) finish() {
	w.group, w.syncs, w.lapsed = [8]int{}, nil, 0
	var live []*member
	for _, m := range w.members {
		if m.up = true; !w.removed.has(m.number) {
			live = append(live, m)
		}
	}
	for _, q := range w.open {
		q.done = q.done || w.removed.has(q.member.number)
	}
	if !slices.ContainsFunc(live, func(m *member) bool { return m.row == w.latest }) {
		w.adopt(live[0], w.latest)
	}
	for turn := range 12 {
		for range 2 {
			for _, m := range live {
				w.meet(live[0], m)
			}
		}
		for _, q := range w.open {
			q.done = q.done || turn > 3 // its deadline
			for i := range w.members {
				if !q.done && q.row.hosts.has(i) && !w.removed.has(i) {
					w.ask(q, i)
				}
			}
		}
		for i, a := range live {
			for _, b := range live[i+1:] {
				w.beginSync(a, b)
				for _, pair := range w.syncs {
					w.endSync(pair)
				}
				w.syncs = w.syncs[:0]
			}
		}
		row := w.latest
		if w.settled(live) {
			return
		}
		new := row.new &^ w.removed
		if new == 0 {
			new = one(live[0].number)
		}
		if next := row.Next(row.Epoch+1, new.ids(), row.ready.is()); next != row.Row {
			w.adopt(live[0], w.tabled(next, w.removed))
		}
	}
	panic(broken("d"))
}

func (w *world) settled(live []*member) bool {
	row := w.latest
	if row.new&w.removed != 0 || !row.AtRest() || slices.ContainsFunc(live, func(m *member) bool { return m.holds && !row.new.has(m.number) }) {
		return false
	}
	final := w.members[bits.TrailingZeros8(uint8(row.new))].version
	for i, m := range w.members {
		if row.new.has(i) && (m.row != row || !m.host.Whole || m.version != final) {
			return false
		}
	}
	if final < w.acknowledged {
		panic(broken("c"))
	}
	if final < w.taken && w.faults == 0 && !w.apart {
		panic(broken("e"))
	}
	return true
}

// history plays one, and returns the letter of the promise that it breaks; each second one is longer, with
// more faults and rows.
func history(seed uint64, trace *[]string) (letter string) {
	defer func() {
		if b, ok := recover().(broken); ok {
			letter = string(b)
		}
	}()
	w := newWorld(seed, trace)
	hard, length := seed%2 == 1, 30+int(seed*7919%120)
	pick := func(of ...int) int { return of[w.IntN(len(of))] }
	shares := [...]int{
		asks: 12, begins: 5, conditions: 1, givesUp: 1, synchronizes: pick(4, 8, 16), meets: pick(1, 3, 6), delivers: 1,
		crashes: pick(0, 1, 3), copies: 1, fails: pick(0, 1, 2, 3), issues: pick(0, 1, 2, 4), splits: pick(0, 1),
	}
	if hard {
		length, shares[fails], shares[issues] = 160, pick(2, 3, 4), pick(1, 2, 4)
	}
	var mixture []event
	for kind, share := range shares {
		for range share {
			mixture = append(mixture, event(kind))
		}
	}
	for range length {
		kind := mixture[w.IntN(len(mixture))]
		w.step(kind)
		if kind == asks || kind == synchronizes || kind == meets {
			w.probe()
		}
	}
	w.finish()
	return ""
}

// Random histories break none of the promises. Of those that do the shortest is told.
func TestAdversary(t *testing.T) {
	found := map[string]int{}
	var shortest []string
	for seed := *firstSeed; seed < *firstSeed+uint64(*histories); seed++ {
		letter := history(seed, nil)
		if letter == "" {
			continue
		}
		if found[letter]++; found[letter] > 20 {
			continue
		}
		trace := []string{fmt.Sprintf("seed %d breaks %s", seed, letter)}
		if history(seed, &trace); shortest == nil || len(trace) < len(shortest) {
			shortest = trace
		}
	}
	if len(found) > 0 {
		t.Errorf("of %d histories from seed %d on these break a promise: %v\n%s", *histories, *firstSeed, found, strings.Join(shortest, "\n"))
	}
}
