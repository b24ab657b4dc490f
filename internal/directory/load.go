package directory

import (
	"slices"
	"time"

	"github.com/syncd-io/syncd/bfield/keyset"
	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/roster"
)

// load is a set on its way from a host: blocks, with the events since the first of them was
// asked for over them.
type load struct {
	host  roster.ID
	base  rows
	over  map[dbadapter.Index]Code
	whole rows // all of it, once it has come, and its sum
	sum   Sum
	at    keyset.Cursor
	begin uint64 // events up to here are not in over
	seq   uint64 // of the latest block
	asked bool
	when  time.Duration // it was asked for
	came  time.Duration // the latest block
	fails int           // of takes, since it came
}

// maxFails is how many takes in turn may have no answer until a set is asked for elsewhere.
const maxFails = 3

// laid are the changes, ascending.
func (o *load) laid() rows {
	all := make(rows, 0, len(o.over))
	for index, is := range o.over {
		all = append(all, pack(index, is))
	}
	slices.Sort(all)
	return all
}

// Take is what to ask a host for now, of the sets that this node has no copy of; nil:
// nothing. Its answer is given to Block; what has no answer, to TakeFailed. After twice Fresh
// without either, or maxFails in turn, another host is preferred.
func (l *Locator) Take(id roster.ID, now time.Duration) *Take {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest = max(l.latest, now)
	h := l.hosts[id]
	if h == nil || !h.known {
		return nil
	}
	loads, under := 0, 0
	for _, p := range l.parts {
		if p.load != nil {
			late := p.load.asked && now-p.load.when > 2*Fresh
			if late {
				l.hosts[p.load.host].fails(now)
			}
			if late || l.silent(p.load.host, now) {
				p.load = nil
				continue
			}
			loads++
			under += len(p.load.base)
		}
	}
	first := true // of the sets that are on their way
	for _, p := range l.parts {
		if p.load != nil && under > l.maxSet && !first {
			continue // the first one comes to its end, and makes room
		}
		first = first && p.load == nil
		if p.load == nil && loads < MaxLoads && under <= l.maxSet && l.wanted(p, id, now) {
			p.load = &load{host: id, begin: h.seq, over: map[dbadapter.Index]Code{}}
			loads++
		}
		if p.load != nil && p.load.host == id && !p.load.at.Done && !p.load.asked {
			p.load.asked, p.load.when = true, now
			return &Take{Log: h.log, Home: p.home, At: p.load.at}
		}
	}
	return nil
}

// wanted reports whether a set is to be fetched from a host: no copy of it can be brought up
// to date by any host's events, and of those that are there this is the one that failed least.
func (l *Locator) wanted(p *part, id roster.ID, now time.Duration) bool {
	f := p.feeds[id]
	if f == nil || !f.known || l.silent(id, now) || p.from != "" && !l.silent(p.from, now) {
		return false
	}
	if n := l.hosts[id].failed(now); n > 0 && now-f.since < min(maxRest, time.Second<<min(n, 20)) {
		return false
	}
	if p.has && now-f.since <= 2*Fresh && !p.surveyed(l) {
		return false // another host may say what the copy says
	}
	for _, other := range p.hosts {
		if o := p.feeds[other]; o.known && !l.silent(other, now) && l.hosts[other].failed(now) < l.hosts[id].failed(now) {
			return false
		}
	}
	return true
}

// failed is how often a host has contradicted itself, or has not sent a set, lately.
func (h *host) failed(now time.Duration) int {
	if now-h.failing > forgiven {
		return 0
	}
	return h.failures
}

func (h *host) fails(now time.Duration) {
	h.failures, h.failing = h.failed(now)+1, now
}

func (p *part) surveyed(l *Locator) bool {
	return !slices.ContainsFunc(p.hosts, func(id roster.ID) bool { return !l.hosts[id].surveyed })
}

// Block takes in a host's answer to a Take. The error says what an honest host does not say.
func (l *Locator) Block(id roster.ID, t *Take, b *Block, now time.Duration) error {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	if err := l.block(id, t, b, now); err != nil {
		return err
	}
	l.lay()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.parts[t.Home], now)
	return nil
}

func (l *Locator) block(id roster.ID, t *Take, b *Block, now time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parts[t.Home]
	h := l.hosts[id]
	if h == nil || p.load == nil || p.load.host != id || !p.load.asked || h.log != t.Log || p.load.at != t.At {
		return nil // of before the host began another log, or was asked by another message
	}
	if b.Seq < p.load.begin {
		return nil // asked for by an earlier load: it may lack events that over lacks, too
	}
	p.load.asked, p.load.came, p.load.fails = false, now, 0
	if b.Home != t.Home || b.Log != t.Log || b.At != t.At {
		return l.fault(id, p, "it answered with another block")
	}
	if !b.Last && len(b.rows) < keyset.MaxKeys { // in small ones a set would take for ever
		return l.fault(id, p, "a block of %d keys that is not the last", len(b.rows))
	}
	p.load.base = append(p.load.base, b.rows...)
	p.load.at, p.load.seq = b.next(), max(p.load.seq, b.Seq)
	if len(p.load.base) > l.maxSet {
		return l.fault(id, p, "a set of more than %d keys", l.maxSet)
	}
	return nil
}

// TakeFailed tells that a Take has no answer, and will have none: it is asked for again.
func (l *Locator) TakeFailed(id roster.ID, home placement.Shard) {
	l.feeding.Lock()
	defer l.feeding.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.parts[home]
	if p.load == nil || p.load.host != id || !p.load.asked {
		return
	}
	p.load.asked = false
	if p.load.fails++; p.load.fails >= maxFails {
		p.load = nil
		l.hosts[id].fails(l.latest)
	}
}

// behind finds the sets of which a host has sent a block that is later than all of its log,
// when a poll was sent behind the block: the events up to it never come.
func (l *Locator) behind(id roster.ID, h *host, sent time.Duration) (err error) {
	for _, p := range l.parts {
		if o := p.load; o != nil && o.host == id && sent > o.came && o.seq > h.seq {
			err = l.fault(id, p, "a block of set %d is as of event %d, and the log ends with %d", p.home, o.seq, h.seq)
		}
	}
	return err
}

// lay lays the events over the sets that have come in whole, and whose host's events are
// heard up to the last block. Look-ups do not wait for it: what a load has changes under
// feeding alone.
func (l *Locator) lay() {
	for _, p := range l.parts {
		if p.load == nil || !p.load.at.Done || l.hosts[p.load.host].seq < p.load.seq {
			continue
		}
		p.load.whole = make(rows, 0, len(p.load.base)+len(p.load.over)) // not nil, also without a row
		for x := range merge(slices.Values(p.load.base), p.load.laid()) {
			p.load.whole = append(p.load.whole, x)
		}
		p.load.sum = p.load.whole.sum()
	}
}

// finish makes the copy of a set that has come.
func (l *Locator) finish(p *part, now time.Duration) {
	if p.load == nil || p.load.whole == nil {
		return
	}
	id, came := p.load.host, p.load
	p.load = nil
	f := p.feeds[id]
	if !f.known || p.from != "" && !l.silent(p.from, now) {
		return // what is said by a host that is attached needs no other copy
	}
	if came.sum != f.sum {
		_ = l.fault(id, p, "the sum of a set that was fetched does not come out") // counted
		return
	}
	p.drop()
	p.has, p.fresh, p.sum, p.entries = true, came.whole, f.sum, len(came.whole)
	p.noteShared(came.whole)
}
