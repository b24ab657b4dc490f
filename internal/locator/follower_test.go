package locator

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
	"github.com/syncd-io/syncd/internal/seeded"
)

// testHost is a set at a host, with a log of all changes since first.
type testHost struct {
	log, first uint64
	has        map[dbadapter.Index]Code
	changes    []dbadapter.Index
	whole      bool
}

func (h *testHost) set(index dbadapter.Index, c Code) {
	if c == Gone {
		delete(h.has, index)
	} else {
		h.has[index] = c
	}
	h.changes = append(h.changes, index)
}

func (h *testHost) seq() uint64 { return h.first + uint64(len(h.changes)) }

func (h *testHost) news(since Since, most int) (n SetNews) {
	switch {
	case !h.whole:
		return SetNews{Said: NotWhole}
	case since.Log != h.log || since.Seq < h.first || since.Seq > h.seq():
		return SetNews{Said: OtherLog}
	case since.Seq == h.seq():
		return n
	}
	n = SetNews{Said: Changed, To: min(h.seq(), since.Seq+uint64(most))}
	n.More = n.To < h.seq()
	changed := map[dbadapter.Index]bool{}
	for _, index := range h.changes[since.Seq-h.first : n.To-h.first] {
		changed[index] = true
	}
	for _, index := range slices.Sorted(maps.Keys(changed)) {
		c, ok := h.has[index]
		if !ok {
			c = Gone
		}
		n.Changes = append(n.Changes, NewEntry(index, c))
	}
	return n
}

func (h *testHost) page(t *Take) *Page {
	if !h.whole {
		return &Page{NotWhole: true}
	}
	p := &Page{Log: h.log, Seq: h.seq()}
	for _, index := range slices.Sorted(maps.Keys(h.has)) {
		if index < t.From {
			continue
		}
		if len(p.Entries) == MaxPage {
			p.Next = index
			break
		}
		p.Entries = append(p.Entries, NewEntry(index, h.has[index]))
	}
	if i, _ := slices.BinarySearch(p.Entries, NewEntry(t.Upto, 0)); t.Upto != 0 && (p.Next == 0 || t.Upto <= p.Next) && HashOf(p.Entries[:i]) == t.Hash {
		return &Page{Log: p.Log, Seq: p.Seq, Equal: true}
	}
	return p
}

// world is hosts of sets, and one node that follows them.
type world struct {
	t     *testing.T
	now   time.Duration
	rows  []Row
	at    map[roster.ID]map[placement.Shard]*testHost
	down  map[roster.ID]bool
	lies  map[roster.ID]func(Message) Message
	polls map[roster.ID]int
	takes int
	sent  int // bytes of pages
	left  map[roster.ID]error
	disk  *memory
	f     *Follower
}

func id(i int) roster.ID { return roster.ID(fmt.Sprintf("host %02d", i)) }

// newWorld has sets, each at so many of the hosts.
func newWorld(t *testing.T, sets, hosts, replicas int) *world {
	w := &world{
		t: t, now: time.Hour, at: map[roster.ID]map[placement.Shard]*testHost{}, down: map[roster.ID]bool{}, lies: map[roster.ID]func(Message) Message{},
		polls: map[roster.ID]int{}, left: map[roster.ID]error{}, disk: newMemory(),
	}
	for s := range sets {
		row := Row{Name: quorum.Name{byte(s), 1}}
		for r := range replicas {
			row.Hosts = append(row.Hosts, id((s+r*3)%hosts))
		}
		w.rows = append(w.rows, row)
		for _, h := range row.Hosts {
			w.host(h, placement.Shard(s))
		}
	}
	w.open()
	return w
}

func (w *world) host(h roster.ID, set placement.Shard) *testHost {
	if w.at[h] == nil {
		w.at[h] = map[placement.Shard]*testHost{}
	}
	if w.at[h][set] == nil {
		w.at[h][set] = &testHost{log: rand.Uint64() | 1, has: map[dbadapter.Index]Code{}, whole: true}
	}
	return w.at[h][set]
}

// open is a start of the node.
func (w *world) open() {
	index, err := Open(Config{Shards: len(w.rows), Disk: w.disk})
	if err != nil {
		w.t.Fatal(err)
	}
	w.f = NewFollower(index, Net{
		Self: "self", Row: func(set placement.Shard) Row { return w.rows[set] }, Mark: func(...placement.Shard) Mark { return Mark{} },
		Left: func(h roster.ID, err error) { w.left[h] = err },
	})
}

// write has all hosts of a set say something of an index.
func (w *world) write(set placement.Shard, index dbadapter.Index, c Code) {
	for _, h := range w.rows[set].Hosts {
		w.at[h][set].set(index, c)
	}
}

var errDown = errors.New("down")

func (w *world) ask(h roster.ID, m Message) (answer Message, err error) {
	if w.down[h] {
		return nil, errDown
	}
	switch m := m.(type) {
	case *Poll:
		w.polls[h]++
		n := &News{}
		for _, since := range m.Sets {
			n.Sets = append(n.Sets, w.at[h][since.Set].news(since, 3))
		}
		answer = n
	case *Take:
		w.takes++
		answer = w.at[h][m.Set].page(m)
	}
	if lie := w.lies[h]; lie != nil {
		answer = lie(answer)
	}
	data, err := Append(nil, answer, len(w.rows))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, ok := answer.(*Page); ok {
		w.sent += len(data)
	}
	return Parse(data, len(w.rows))
}

// run lets time pass, in which answers take no time.
func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; w.now += 500 * time.Millisecond {
		for _, t := range w.f.Turns(w.now) {
			w.turn(t)
		}
		for run := w.f.Index.Work(false); run != nil; run = w.f.Index.Work(false) {
			if err := run(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) turn(t *Turn) {
	for m := t.Next(w.now); m != nil; m = t.Next(w.now) {
		answer, err := w.ask(t.Host, m)
		t.Answered(answer, err, w.now)
	}
}

func (w *world) where(set placement.Shard, index dbadapter.Index) Where {
	where, _ := w.f.Locate(set, index, w.now)
	return where
}

func (w *world) known(set placement.Shard) bool {
	_, known := w.f.Index.Place(set)
	return known
}

// used has the node poll often.
func (w *world) used() {
	for range 10 {
		for set := range w.rows {
			w.where(placement.Shard(set), 1<<41)
		}
		w.run(500 * time.Millisecond)
	}
}

// Few hosts are polled, often only while keys of their sets are nowhere.
func TestPollsFewHosts(t *testing.T) {
	w := newWorld(t, 30, 10, 5)
	w.run(10 * time.Minute)
	polls := 0
	for _, n := range w.polls {
		polls += n
	}
	if len(w.polls) > 4 || polls > 30*len(w.polls) { // five of ten hosts have each set: two to four have all sets
		t.Errorf("%d hosts were polled, %d times in ten minutes", len(w.polls), polls)
	}
	if w.where(3, 7) != Ask {
		t.Error("nowhere, as heard up to a minute ago")
	}
	w.run(3 * time.Second)
	if got := w.where(3, 7); got != Nowhere {
		t.Errorf("%v, as heard now", got)
	}
	clear(w.polls)
	for range 120 {
		w.where(3, 7)
		w.run(500 * time.Millisecond)
	}
	w.used()
	for h, n := range w.polls {
		if often := h == w.f.Status(3, w.now).Host; often && n < 18 || !often && n > 4 || n > 22 {
			t.Errorf("%s was polled %d times in a minute of reads", h, n)
		}
	}
	if s := w.f.Status(3, w.now); s.Host != s.From || w.now-s.Heard > PollBusy+time.Second || !s.Fresh || w.f.Unheard(w.now) != 0 {
		t.Errorf("%+v, %d not heard", s, w.f.Unheard(w.now))
	}
}

// A key is nowhere for Fresh after the poll was sent that has told so, by the row by which the node goes.
func TestFresh(t *testing.T) {
	w := newWorld(t, 1, 1, 1)
	w.used()
	h := w.rows[0].Hosts[0]
	sent := w.now
	w.where(0, 7)
	turns := w.f.Turns(sent + PollBusy)
	if len(turns) != 1 {
		t.Fatalf("%d turns", len(turns))
	}
	sent += PollBusy
	m := turns[0].Next(sent)
	answer, err := w.ask(h, m)
	w.now = sent + 4*time.Second // for so long the answer is on its way
	turns[0].Answered(answer, err, w.now)
	w.down[h] = true
	if w.now = sent + Fresh; w.where(0, 7) != Nowhere {
		t.Error("not nowhere, within Fresh")
	}
	row := w.rows[0]
	w.rows[0].Name = quorum.Name{2}
	if w.where(0, 7) == Nowhere {
		t.Error("nowhere by the row of before")
	}
	w.rows[0] = row
	if w.now++; w.where(0, 7) == Nowhere {
		t.Error("nowhere, after Fresh")
	}
	w.rows[0].Hosts = nil // it holds the set itself
	if w.run(5 * time.Second); w.where(0, 7) != Ask || w.known(0) {
		t.Error("it still follows a set that it holds itself")
	}
}

// Where a host fails, or is no whole one any more, another one is followed; of the set what differs is sent.
func TestAnotherHost(t *testing.T) {
	for _, c := range []struct {
		what    string
		differs bool
		fails   func(w *world, h roster.ID)
	}{
		{"it is down", false, func(w *world, h roster.ID) { w.down[h] = true }},
		{"it is down, and the other one has more", true, func(w *world, h roster.ID) { w.down[h] = true }},
		{"it is not whole", false, func(w *world, h roster.ID) { w.at[h][0].whole = false }},
		{"it is no host", true, func(w *world, h roster.ID) {
			w.rows[0].Hosts = slices.DeleteFunc(w.rows[0].Hosts, func(o roster.ID) bool { return o == h })
		}},
		{"it sends what is no news", false, func(w *world, h roster.ID) { w.lies[h] = func(Message) Message { return &News{} } }},
		{"it sends another message", true, func(w *world, h roster.ID) { w.lies[h] = func(Message) Message { return &Take{} } }},
		{"its log goes back", false, func(w *world, h roster.ID) {
			w.lies[h] = func(Message) Message { return &News{Sets: []SetNews{{Said: Changed, To: 1}}} }
		}},
		{"its log has no end", false, func(w *world, h roster.ID) {
			w.lies[h] = func(m Message) Message {
				if n := &m.(*News).Sets[0]; n.Said == Same {
					n.Said, n.More = Changed, true
				}
				return m
			}
		}},
	} {
		w := newWorld(t, 1, 2, 2)
		for i := range dbadapter.Index(5 * MaxPage) {
			w.write(0, 1000*i+1, 0)
		}
		w.used()
		if w.where(0, 1) != In || w.where(0, 2) != Nowhere || w.takes != 5 {
			t.Fatalf("%s: %v, %v after %d pages", c.what, w.where(0, 1), w.where(0, 2), w.takes)
		}
		was := w.f.Status(0, w.now).Host
		if c.differs {
			for _, h := range w.rows[0].Hosts {
				if h != was {
					w.at[h][0].set(2*1000*MaxPage+500, 0)
				}
			}
		}
		w.sent = 0
		c.fails(w, was)
		w.run(10 * time.Second)
		w.used()
		if s := w.f.Status(0, w.now); s.Host == was || w.where(0, 2) != Nowhere || w.where(0, 4*1000*MaxPage+1) != In {
			t.Errorf("%s: %+v", c.what, s)
		}
		if got := w.where(0, 2*1000*MaxPage+500); c.differs != (got == In) {
			t.Errorf("%s: what it alone has is %v", c.what, got)
		}
		if w.sent > 300 && !c.differs || w.sent > 12<<10 {
			t.Errorf("%s: %d bytes of pages were sent", c.what, w.sent)
		}
	}
}

// A host that sends pages without end, or those of another log, is left, and takes up a bounded number of them.
func TestPagesOfALiar(t *testing.T) {
	for what, lie := range map[string]func(w *world, p *Page) *Page{
		"of nothing": func(w *world, p *Page) *Page { return &Page{Log: 1, Next: dbadapter.Index(w.takes + 1)} },
		"of two logs": func(w *world, p *Page) *Page {
			return &Page{Log: uint64(w.takes) + 1, Next: dbadapter.Index(w.takes + 1)}
		},
		"again":          func(*world, *Page) *Page { return &Page{Log: 1, Entries: []Entry{NewEntry(5, 0)}, Next: 6} },
		"that are equal": func(*world, *Page) *Page { return &Page{Log: 1, Equal: true} },
	} {
		w := newWorld(t, 1, 2, 2)
		for _, h := range w.rows[0].Hosts[:1] {
			w.down[w.rows[0].Hosts[1]] = true
			w.lies[h] = func(m Message) Message { return lie(w, m.(*Page)) }
		}
		w.run(30 * time.Second)
		w.down = map[roster.ID]bool{}
		if s := w.f.Status(0, w.now); w.known(0) || w.takes > maxPages+1 || !errors.Is(w.left[w.rows[0].Hosts[0]], ErrMessage) {
			t.Errorf("pages %s: %+v after %d: %v", what, s, w.takes, w.left)
		}
		w.run(3 * time.Minute)
		if w.used(); w.where(0, 7) != Nowhere {
			t.Errorf("pages %s: the other host is not followed", what)
		}
	}
}

// An answer leaves out the sets for which it has no room: they are asked for again at once, unless nothing is said
// of others.
func TestSetsLeftOut(t *testing.T) {
	w := newWorld(t, 3, 1, 1)
	w.used()
	host := w.rows[0].Hosts[0]
	w.lies[host] = func(m Message) Message { // room for what has changed in one set
		if n, ok := m.(*News); ok {
			if i := slices.IndexFunc(n.Sets, func(s SetNews) bool { return s.Said != Same }); i >= 0 {
				n.Sets = n.Sets[:i+1]
			}
		}
		return m
	}
	for i := range dbadapter.Index(30) {
		w.write(placement.Shard(i%3), i+1, 0)
	}
	w.used()
	for i := range dbadapter.Index(30) {
		if got := w.where(placement.Shard(i%3), i+1); got != In {
			t.Errorf("index %d is %v", i+1, got)
		}
	}
	for set := range placement.Shard(3) {
		if got := w.where(set, 999); got != Nowhere {
			t.Errorf("set %d: a key that is not there is %v: %v", set, got, w.left)
		}
	}
	w.lies[host] = func(m Message) Message {
		if n, ok := m.(*News); ok {
			n.Sets = n.Sets[:1]
		}
		return m
	}
	if w.used(); !errors.Is(w.left[host], ErrMessage) {
		t.Errorf("a host that leaves out sets for nothing is followed: %v", w.left)
	}
}

// A node starts with its copies where they were, and is told what has changed since; it reads what it has
// written itself, also where its host has not told that yet.
func TestStartsWhereItWas(t *testing.T) {
	w := newWorld(t, 4, 3, 2)
	for i := range dbadapter.Index(100) {
		w.write(placement.Shard(i%4), i+1, Code(i%4))
	}
	w.used()
	if err := w.f.Index.Save(); err != nil {
		t.Fatal(err)
	}
	w.write(1, 500, 1)
	w.write(1, 2, Gone)
	takes := w.takes
	w.open()
	if w.where(1, 500) != Ask || w.where(1, 3) == Nowhere {
		t.Error("it has heard nothing since its start, and says that a key is nowhere")
	}
	w.used()
	if w.where(1, 500) != In || w.where(1, 2) != Nowhere || w.takes != takes {
		t.Errorf("%v, %v, by %d further pages", w.where(1, 500), w.where(1, 2), w.takes-takes)
	}

	w.where(1, 999)
	turns := w.f.Turns(w.now + PollBusy) // before the write is at the host that is followed
	for _, turn := range turns {
		m := turn.Next(w.now)
		answer, err := w.ask(turn.Host, m)
		w.f.Wrote(1, NewEntry(2, 1))
		turn.Answered(answer, err, w.now)
	}
	if w.where(1, 2) != In {
		t.Error("what it has written is nowhere")
	}
	w.used()
	if w.where(1, 2) != In {
		t.Error("what it has written is nowhere once the host was heard that has not got it")
	}
}

// TestRandomWorlds writes, fails and moves at random. What a node says is nowhere is what the host that it
// follows lacked at some moment since the poll was sent; once all is heard each answer is right.
func TestRandomWorlds(t *testing.T) {
	all := seeded.New(t)
	for range 60 {
		seed := all.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, 4, 4, 2)
		holds := map[placement.Shard]map[dbadapter.Index]map[roster.ID]time.Duration{} // since when, of what is held
		for range 400 {
			set, index := placement.Shard(r.IntN(4)), dbadapter.Index(1+r.IntN(40))
			switch h := w.rows[set].Hosts[r.IntN(len(w.rows[set].Hosts))]; r.IntN(12) {
			case 0:
				w.down[id(r.IntN(4))] = r.IntN(2) == 0
			case 1:
				w.at[h][set].whole = r.IntN(2) == 0
			case 2: // another host takes the place of one, with what that had
				to := id(r.IntN(4))
				if !slices.Contains(w.rows[set].Hosts, to) {
					from := w.at[h][set]
					w.at[to][set] = &testHost{log: r.Uint64() | 1, has: maps.Clone(from.has), whole: true}
					for _, by := range holds[set] {
						if at, ok := by[h]; ok {
							by[to] = at
						} else {
							delete(by, to)
						}
					}
					w.rows[set] = Row{Name: quorum.Name{byte(set), byte(r.Uint32()), byte(r.Uint32())}, Hosts: append(slices.DeleteFunc(slices.Clone(w.rows[set].Hosts), func(o roster.ID) bool { return o == h }), to)}
				}
			case 3: // its log is cut
				one := w.at[h][set]
				one.first, one.changes = one.seq(), nil
			case 4:
				if err := w.f.Index.Save(); err != nil {
					t.Fatal(err)
				}
				w.open()
			case 5, 6, 7:
				c := Code(r.IntN(4))
				if r.IntN(3) == 0 {
					c = Gone
				}
				w.at[h][set].set(index, c)
				if holds[set] == nil {
					holds[set] = map[dbadapter.Index]map[roster.ID]time.Duration{}
				}
				if holds[set][index] == nil {
					holds[set][index] = map[roster.ID]time.Duration{}
				}
				if _, had := holds[set][index][h]; c == Gone {
					delete(holds[set][index], h)
				} else if !had {
					holds[set][index][h] = w.now
				}
			default:
				w.run(time.Duration(r.IntN(5)) * time.Second)
			}
			for index := dbadapter.Index(1); index <= 40; index++ {
				where := w.where(set, index)
				s := w.f.Status(set, w.now)
				if since, held := holds[set][index][s.From]; where == Nowhere && (held && since < s.Heard || w.now-s.Heard > Fresh) {
					t.Fatalf("seed %d: %d is nowhere in set %d, by %+v, which has it since %v, at %v", seed, index, set, s, since, w.now)
				}
			}
		}
		clear(w.down)
		for s, row := range w.rows {
			for _, h := range row.Hosts {
				w.at[h][placement.Shard(s)].whole = true
			}
		}
		w.run(15 * time.Minute)
		w.used()
		for s := range w.rows {
			set := placement.Shard(s)
			st := w.f.Status(set, w.now)
			has := w.at[st.From][set].has
			var want []Entry
			for _, index := range slices.Sorted(maps.Keys(has)) {
				want = append(want, NewEntry(index, has[index]))
				if where, in := w.f.Locate(set, index, w.now); where == Nowhere || where == In && in != placement.Shard(has[index]) {
					t.Fatalf("seed %d: in the end %d of set %d is %v %d", seed, index, set, where, in)
				}
			}
			if got, err := w.f.Index.Entries(set); err != nil || !slices.Equal(got, want) || !st.Fresh {
				t.Fatalf("seed %d: in the end set %d is %v, of %+v, which has %v: %v", seed, set, got, st, want, err)
			}
		}
	}
}

// A host that tells of changes up to where the poll began, and leaves other sets out, is left.
func TestPollEnds(t *testing.T) {
	w := newWorld(t, 4, 1, 1)
	w.used()
	w.now += PollIdle
	turns := w.f.Turns(w.now)
	if len(turns) != 1 || turns[0].fetch != nil {
		t.Fatalf("%d turns are due", len(turns))
	}
	turn, n := turns[0], 0
	for m := turn.Next(w.now); m != nil && n <= 2*maxPages; n++ {
		p := m.(*Poll)
		turn.Answered(&News{Sets: []SetNews{{Said: Changed, To: p.Sets[0].Seq + uint64(n%2), More: true}}}, nil, w.now)
		m = turn.Next(w.now)
	}
	if n > maxPages+1 || len(w.left) == 0 {
		t.Errorf("%d polls in one turn; left are %v", n, w.left)
	}
}
