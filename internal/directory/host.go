package directory

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
)

// Host tells nodes what the sets say that this node hosts: all of it in
// blocks, and what changes by a log of all of its sets. It keeps 8.5 bytes a key. It
// keeps nothing of those that ask; any number of goroutines may use it.
type Host struct {
	shards int
	log    uint64

	mu     sync.Mutex // guards what follows
	layout uint64
	sets   map[placement.Shard]*Told
	// The events up to seq, of which the first is that after gone.
	events    []Event
	gone, seq uint64

	keep, most int // LogEvents and MaxEvents, but for tests
}

// Told is what is said of a set. It is for one goroutine at a time, and a Host's own once it tells it.
type Told struct {
	layered
	sum Sum
}

// Append adds what is said of an index, behind all others.
func (t *Told) Append(index dbadapter.Index, is Code) {
	t.base = append(t.base, pack(index, is))
	t.sum.add(pack(index, is), 1)
}

// Set changes what is said of an index, and reports what was said before.
func (t *Told) Set(index dbadapter.Index, is Code) (was Code) {
	if was = t.get(index); was != is {
		t.sum.change(index, was, is)
		t.set(pack(index, is))
	}
	return was
}

// NewHost returns a Host of a namespace of so many shards, without a set. The log is a
// random number, not 0, that no other Host has had.
func NewHost(shards int, log uint64) *Host {
	return &Host{shards: shards, log: log, sets: map[placement.Shard]*Told{}, keep: LogEvents, most: MaxEvents}
}

// SetLayout tells by which layout the node is a host: a number that stands for it, as those that
// ask compute it, too. It is to be told before the node takes a write by that layout.
func (h *Host) SetLayout(layout uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.layout = layout
}

// Open begins to tell of a set: its indices, ascending, and what it says of them. It
// is to be called once the node is settled in the set; what changes after the rows were
// read is told by Set, behind it. A set that is open already is told of anew.
func (h *Host) Open(home placement.Shard, entries iter.Seq2[dbadapter.Index, Code]) {
	t := &Told{}
	for index, code := range entries {
		t.Append(index, code)
	}
	h.Tell(home, t)
}

// Tell is Open, of what was read before.
func (h *Host) Tell(home placement.Shard, t *Told) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sets[home] = t
	h.note(Event{Home: home, Kind: Opened, Sum: t.sum})
}

// Close ends to tell of a set, since the node is no host of it, or not settled any more.
func (h *Host) Close(home placement.Shard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sets[home] != nil {
		delete(h.sets, home)
		h.note(Event{Home: home, Kind: Closed})
	}
}

// Set tells what a set says of an index now, after each commit that touches it. What is
// said already is no event: an overwritten record is where it was.
func (h *Host) Set(home placement.Shard, index dbadapter.Index, is Code) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.sets[home]
	if t == nil {
		return
	}
	if was := t.Set(index, is); was != is {
		h.note(Event{Home: home, Kind: Changed, Index: index, Was: was, Is: is})
	}
}

func (h *Host) note(e Event) {
	h.seq++
	h.events = append(h.events, e)
	if len(h.events) > 2*h.keep { // half of it goes at a time
		h.gone += uint64(len(h.events) - h.keep)
		h.events = slices.Clone(h.events[len(h.events)-h.keep:])
	}
}

// Idle reports whether the answer to a poll would tell nothing that the asker does not know: a
// driver may let the poll wait until that is not so.
func (h *Host) Idle(p *Poll) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.Log == h.log && p.Seq == h.seq && !p.All
}

// News answers a poll: the events behind its place, and the sums of the sets that they are
// about; of all sets, if it asks for them, or its place is not in the log.
func (h *Host) News(p *Poll) *News {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := &News{Log: h.log, Layout: h.layout, From: p.Seq, To: h.seq}
	all := p.All
	if p.Log != h.log || p.Seq < h.gone || p.Seq > h.seq {
		n.Begins, n.From, all = true, h.seq, true
	}
	n.Events = h.events[n.From-h.gone:]
	if len(n.Events) > h.most {
		n.Events, n.More, all = n.Events[:h.most], true, false
		n.To = n.From + uint64(h.most)
	}
	n.Events = slices.Clone(n.Events)
	if n.More {
		return n
	}
	touched := map[placement.Shard]bool{}
	for _, e := range n.Events {
		touched[e.Home] = true
	}
	for home, t := range h.sets {
		if all || touched[home] {
			n.Sums = append(n.Sums, SetSum{home, t.sum})
		}
	}
	n.sort()
	n.All = all
	return n
}

// Block answers a Take: what of a set is behind a place. The error says that this host
// does not tell of the set.
func (h *Host) Block(t *Take) (*Block, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sets[t.Home]
	if s == nil || t.Log != h.log {
		return nil, fmt.Errorf("the set %d is not told of here", t.Home)
	}
	b := &Block{Log: h.log, Home: t.Home, Seq: h.seq, At: t.At, Last: true}
	from := dbadapter.Index(0)
	if t.At.Begun {
		from = dbadapter.Index(t.At.After) + 1
	}
	for x := range s.from(from) {
		if len(b.rows) == keyset.MaxKeys {
			b.Last = false
			break
		}
		b.rows = append(b.rows, x)
	}
	return b, nil
}
