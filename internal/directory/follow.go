package directory

import (
	"fmt"
	"time"

	"github.com/syncd-io/syncd/bfield/locator"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// chunk is how many events are applied while look-ups wait: under a millisecond.
const chunk = 128

// Poll is what to ask a host now. One poll of a host is under way at a time.
func (l *Locator) Poll(id roster.ID) *Poll {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[id]
	if h != nil {
		h.polls++
	}
	if h == nil || !h.known {
		return &Poll{All: true}
	}
	return &Poll{Log: h.log, Seq: h.seq, All: !h.surveyed}
}

// News takes in a host's answer to a poll that was sent at a time. An answer to an older
// poll changes nothing, nor does one from a node that is no host any more. The error says what
// an honest host does not say; the host is asked anew then.
func (l *Locator) News(id roster.ID, p *Poll, n *News, sent time.Duration) error {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.latest = max(l.latest, sent)
	h := l.hosts[id]
	if h == nil || h.known && (p.Log != h.log || p.Seq != h.seq) || !h.known && p.Log != 0 {
		return nil
	}
	if !n.Begins && (n.Log != p.Log || n.From != p.Seq) || p.All && !n.All && !n.More {
		return l.fault(id, nil, "news behind %d were asked for, and came behind %d", p.Seq, n.From)
	}
	h.taken = true // read under feeding alone
	if n.Begins {
		l.begin(id, h, n)
	}
	var err error
	for at := 0; at < len(n.Events); at += chunk {
		l.mu.Lock()
		for i, e := range n.Events[at:min(at+chunk, len(n.Events))] {
			if f := l.parts[e.Home].feeds[id]; f != nil && n.From+uint64(at+i)+1 > f.skip {
				if e := l.event(id, f, &e, sent); e != nil {
					err = e
				}
			}
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	h.seq = n.To
	l.mu.Unlock()
	if n.More {
		return err
	}
	l.lay()
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.sums(id, h, n, sent); e != nil {
		err = e
	}
	if e := l.behind(id, h, sent); e != nil {
		err = e
	}
	if err == nil {
		h.heard, h.ever, h.layout, h.news = max(h.heard, sent), true, n.Layout, h.polls
	}
	for _, part := range l.parts {
		if part.feeds[id] != nil {
			l.settle(part, sent)
		}
	}
	return err
}

// begin forgets what the host said by another log.
func (l *Locator) begin(id roster.ID, h *host, n *News) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.known, h.surveyed, h.log, h.seq = true, false, n.Log, n.From
	for _, p := range l.parts {
		if p.feeds[id] != nil {
			l.lose(p, id)
		}
	}
}

// event takes in one event of a host's log.
func (l *Locator) event(id roster.ID, f *feed, e *Event, now time.Duration) error {
	p := l.parts[e.Home]
	switch e.Kind {
	case Opened:
		l.lose(p, id)
		*f = feed{known: true, sum: e.Sum, since: now}
		return nil
	case Closed:
		l.lose(p, id)
		return nil
	}
	if !f.known {
		return nil
	}
	f.sum.change(e.Index, e.Was, e.Is)
	if p.load != nil && p.load.host == id {
		if p.load.over[e.Index] = e.Is; len(p.load.over) > min(l.maxSet, maxLaid) {
			return l.fault(id, p, "more than %d changes of set %d while it came", min(l.maxSet, maxLaid), e.Home)
		}
	}
	switch {
	case id == p.from:
		wrong, unsure := l.contradicts(p, e.Index, e.Was)
		if wrong {
			return l.fault(id, p, "index %x of set %d was not as it says", e.Index, e.Home)
		}
		if unsure {
			p.question(id)
		}
		l.change(p, e.Index, e.Was, e.Is, id)
		if p.entries > l.maxSet {
			return l.fault(id, p, "a set of more than %d keys", l.maxSet)
		}
	case f.attached:
		d, ok := f.diff[e.Index]
		wrong := d.theirs != e.Was
		if !ok { // it said what the copy says; what is unsure of that, follow questions
			d.ours = e.Was
			wrong, _ = l.contradicts(p, e.Index, e.Was)
		}
		if wrong {
			return l.fault(id, p, "index %x of set %d was not as it says", e.Index, e.Home)
		}
		f.differ(e.Index, pair{d.ours, e.Is})
	}
	return nil
}

// question puts the copy in doubt, by what a host says, until it has been read (Work).
func (p *part) question(by roster.ID) {
	if !p.doubt {
		p.doubt, p.doubter = true, by
	}
	p.doubts++
}

// differ notes what the copy and a host say of an index, and ends to follow a host that says too much else.
func (f *feed) differ(index dbadapter.Index, d pair) {
	if d.ours == d.theirs {
		delete(f.diff, index)
		return
	}
	if f.diff[index] = d; len(f.diff) > MaxDiff {
		f.attached, f.diff = false, nil
	}
}

// change changes the copy, as the host says that it follows.
func (l *Locator) change(p *part, index dbadapter.Index, was, is Code, by roster.ID) {
	p.sum.change(index, was, is)
	p.over.set(pack(index, is))
	if was == Gone {
		p.entries++
	} else if is == Gone {
		p.entries--
	}
	delete(p.shared, index)
	if is == Shared {
		p.shared[index] = true
	}
	if p.inBase || p.building {
		if is == Gone || is == Shared {
			l.index.Remove(mix(p.home, index))
		} else if err := l.index.Set(mix(p.home, index), locator.Shard(is)); err != nil {
			panic(err) // a message with another shard is not parsed
		}
	}
	for id, f := range p.feeds {
		if id == by || !f.attached {
			continue
		}
		d, ok := f.diff[index]
		if !ok {
			d.theirs = was
		}
		f.differ(index, pair{is, d.theirs})
	}
}

// contradicts reports whether the copy surely does not say of an index what a host says
// that it was, and whether that is unsure. A host that could say so unnoticed could take
// keys away and leave the sum as it is. What the index alone knows may be a false positive.
func (l *Locator) contradicts(p *part, index dbadapter.Index, was Code) (wrong, unsure bool) {
	if p.shared[index] || was == Shared {
		return !p.shared[index] || was != Shared, false
	}
	if i, ok := p.over.find(index); ok {
		return p.over[i].code() != was, false
	}
	if !p.inBase {
		return false, true
	}
	shard, answer := l.index.Lookup(mix(p.home, index))
	switch {
	case answer == locator.Nowhere || answer == locator.Removed:
		return was != Gone, false
	case Code(shard) == was:
		return false, false
	case answer == locator.Likely && was == Gone:
		return false, true
	}
	return true, false
}

// fault counts what an honest host does not say, and forgets what it has told of the set,
// or of all. A copy that follows it is let go of.
func (l *Locator) fault(id roster.ID, p *part, format string, args ...any) error {
	h := l.hosts[id]
	h.faults++
	h.fails(l.latest)
	h.surveyed = false
	if p == nil {
		h.known = false
	} else {
		if p.from == id {
			p.from = ""
			p.drop()
		}
		l.lose(p, id)
	}
	return fmt.Errorf("host %s contradicts what it has told of its keys: %s", id, fmt.Sprintf(format, args...))
}

// sums compares what a host's sets should say by its events with what it says. The news
// reach the end of its log.
func (l *Locator) sums(id roster.ID, h *host, n *News, now time.Duration) (err error) {
	told := map[placement.Shard]bool{}
	for _, s := range n.Sums {
		p := l.parts[s.Home]
		f := p.feeds[id]
		if f == nil {
			continue
		}
		told[s.Home] = true
		if f.known && f.sum != s.Sum && h.seq >= f.skip {
			err = l.fault(id, p, "the sum of set %d does not come out", s.Home)
		}
		if !f.known && (n.All || err == nil) {
			*f = feed{known: true, sum: s.Sum, since: now}
		}
	}
	if !n.All {
		return err
	}
	if err == nil {
		h.surveyed = true
	}
	for _, p := range l.parts {
		if f := p.feeds[id]; f != nil && f.known && !told[p.home] {
			l.lose(p, id)
		}
	}
	return err
}

// settle draws the conclusions from what is known of a set's hosts.
func (l *Locator) settle(p *part, now time.Duration) {
	l.finish(p, now)
	for _, f := range p.feeds {
		if !p.has && f.known && f.sum == (Sum{}) {
			p.has, p.gen = true, p.gen+1
			p.inBase = !p.stale // an empty set: the index has all of it
		}
	}
	for _, f := range p.feeds {
		if p.has && f.known && !f.attached && f.sum == p.sum {
			f.attached, f.diff = true, map[dbadapter.Index]pair{}
		}
	}
	if p.from == "" || l.silent(p.from, now) {
		p.follow(l)
	}
}

// silent: the host was not heard for long.
func (l *Locator) silent(id roster.ID, now time.Duration) bool {
	h := l.hosts[id]
	return h == nil || !h.ever || now-h.heard > 2*Fresh
}

// follow makes the copy say what the host of those that are attached says that was heard last,
// and follow that one. What that host said was there before its own events rests on its word:
// a copy that is changed by it is in doubt until it has been read.
func (p *part) follow(l *Locator) {
	best := p.best(l)
	for best != p.from && !p.adds(best) {
		_ = l.fault(best, p, "what it says of set %d does not come out", p.home) // counted
		best = p.best(l)
	}
	if best == p.from {
		return
	}
	p.from = best
	f := p.feeds[best]
	diff := f.diff
	f.diff = map[dbadapter.Index]pair{}
	for index, d := range diff {
		p.question(best)
		l.change(p, index, d.ours, d.theirs, best)
	}
}

// best is the host to follow.
func (p *part) best(l *Locator) roster.ID {
	best := p.from
	for _, id := range p.hosts {
		if f := p.feeds[id]; f != nil && f.attached && (best == "" || l.hosts[id].heard > l.hosts[best].heard) {
			best = id
		}
	}
	return best
}

// adds reports whether the sum of an attached host is that of the copy with its diff.
func (p *part) adds(id roster.ID) bool {
	sum := p.sum
	for index, d := range p.feeds[id].diff {
		sum.change(index, d.ours, d.theirs)
	}
	return sum == p.feeds[id].sum
}
