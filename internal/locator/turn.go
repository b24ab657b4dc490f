package locator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/internal/quorum"
	"github.com/syncd-io/syncd/internal/roster"
)

// Turn asks one host: for what has changed in all sets that are followed there, or for the pages of one set.
// It is for one goroutine.
//
//	for m := t.Next(now()); m != nil; m = t.Next(now()) {
//		answer, err := ask(t.Host, m)
//		t.Answered(answer, err, now())
//	}
type Turn struct {
	Host  roster.ID
	f     *Follower
	sets  []placement.Shard // that are polled
	fetch *fetch            // nil: it polls
	sent  time.Duration
	poll  *Poll
	rows  []quorum.Name // of the sets polled, when the poll was sent
	over  bool
}

// fetch is a set on its way. Pages are of moments one behind the other. The place is that of the first: what has
// changed since is told once more by the polls that follow from there.
type fetch struct {
	set     placement.Shard
	begun   bool
	own     []Entry // what of the copy before is not compared yet
	at      Place
	from    dbadapter.Index // of the next page
	upto    dbadapter.Index // to where own entries are compared; 0: not at all
	compare int             // how many they are
	pages   int
	entries []Entry
	differs bool
}

// Next is the next question, or nil: the turn is over.
func (t *Turn) Next(now time.Duration) Message {
	if t.over {
		return nil
	}
	if t.sent = now; t.fetch != nil {
		return t.take()
	}
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[t.Host]
	h.sent, h.soon = now, false
	t.poll, t.rows = &Poll{}, nil
	var sets []placement.Shard
	for _, set := range t.sets {
		s := &f.sets[set]
		at, known := f.Index.Place(set)
		if s.at != t.Host || s.fetch || !known {
			continue
		}
		s.wrote = nil
		sets = append(sets, set)
		t.poll.Sets = append(t.poll.Sets, Since{set, at.Log, at.Seq})
		t.rows = append(t.rows, f.net.Row(set).Name)
	}
	if len(sets) == 0 {
		t.end(nil, now)
		return nil
	}
	t.poll.Mark = f.net.Mark(sets...)
	return t.poll
}

// end ends the turn. mu is held.
func (t *Turn) end(err error, now time.Duration) {
	f, h := t.f, t.f.hosts[t.Host]
	if t.over = true; t.fetch == nil {
		f.polls--
		h.polling = false
	} else {
		f.fetches--
		f.fetched -= len(t.fetch.entries)
		h.fetching, f.sets[t.fetch.set].busy = false, false
	}
	switch {
	case err == nil:
		h.failures = 0
		return
	case errors.Is(err, ErrAgain):
		h.soon = true
		return
	case errors.Is(err, errTooMuch), errors.Is(err, errNotWhole), errors.Is(err, errOwn):
		f.leave(t.fetch.set, t.Host, now)
	default:
		f.failed(t.Host, err, now)
	}
	if left := f.net.Left; left != nil {
		left(t.Host, err)
	}
}

// Answered takes in what the host has answered to the last question, or why it has not.
func (t *Turn) Answered(m Message, err error, now time.Duration) {
	more := false
	switch {
	case err != nil:
	case t.fetch != nil:
		more, err = t.page(m)
	default:
		more, err = t.news(m, now)
	}
	if more && err == nil {
		return
	}
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	t.end(err, now)
}

// news takes in the answer to a poll, and reports whether more follows.
func (t *Turn) news(m Message, now time.Duration) (more bool, err error) {
	n, ok := m.(*News)
	if !ok || n.Apart || len(n.Sets) > len(t.poll.Sets) {
		return false, fmt.Errorf("%w: no news of the %d sets of a poll", ErrMessage, len(t.poll.Sets))
	}
	if more = len(n.Sets) < len(t.poll.Sets); more && !slices.ContainsFunc(n.Sets, func(s SetNews) bool { return s.Said != Same }) {
		return false, fmt.Errorf("%w: sets of a poll are left out, and nothing is said of others", ErrMessage)
	}
	for i := range n.Sets {
		since, said := &t.poll.Sets[i], &n.Sets[i]
		if said.Said == Changed && (said.To < since.Seq || said.More && said.To == since.Seq) {
			return false, fmt.Errorf("%w: news of set %d up to %d, behind %d", ErrMessage, since.Set, said.To, since.Seq)
		}
		more = t.heard(since, said, t.rows[i], now) || more
	}
	return more, nil
}

// heard takes in what is said of one set.
func (t *Turn) heard(since *Since, said *SetNews, row quorum.Name, now time.Duration) (more bool) {
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.sets[since.Set]
	if s.at != t.Host || s.fetch || s.busy {
		return false
	}
	switch said.Said {
	case NotWhole:
		f.leave(since.Set, t.Host, now)
		return false
	case OtherLog:
		s.fetch = true
		return false
	case Changed:
		changes := slices.DeleteFunc(said.Changes, func(e Entry) bool {
			_, wrote := s.wrote[e.Index()]
			return wrote
		})
		f.Index.Apply(since.Set, Place{Host: t.Host, Log: since.Log, Seq: said.To}, changes)
	}
	if !said.More {
		f.hear(since.Set, heard{t.sent, t.Host, row})
	}
	return said.More
}

// errOwn: the copy of before could not be read.
var errOwn = errors.New("the copy of before could not be read")

// take is the question for the next page.
func (t *Turn) take() Message {
	g := t.fetch
	if !g.begun {
		g.begun = true
		own, err := t.f.Index.Entries(g.set)
		if err != nil { // all of it is fetched
			t.f.Index.Drop(g.set)
		}
		g.own = own
	}
	m := &Take{Mark: t.f.net.Mark(g.set), Set: g.set, From: g.from}
	i, _ := slices.BinarySearch(g.own, NewEntry(g.from, 0))
	g.own, g.upto = g.own[i:], 0
	if g.compare = min(len(g.own), MaxPage); g.compare > 0 {
		g.upto = indexEnd
		if g.compare < len(g.own) {
			g.upto = g.own[g.compare].Index()
		}
		m.Upto, m.Hash = g.upto, HashOf(g.own[:g.compare])
	}
	return m
}

// page takes in a page, and reports whether more follows.
func (t *Turn) page(m Message) (more bool, err error) {
	g := t.fetch
	p, ok := m.(*Page)
	switch {
	case ok && p.NotWhole:
		return false, errNotWhole
	case !ok || p.Apart || p.Equal && g.upto == 0 || len(p.Entries) > 0 && p.Entries[0].Index() < g.from || !p.Equal && p.Next != 0 && p.Next <= g.from:
		return false, fmt.Errorf("%w: no page of set %d from %d on", ErrMessage, g.set, g.from)
	case g.at.Log == 0:
		g.at = Place{Host: t.Host, Log: p.Log, Seq: p.Seq}
	case p.Log != g.at.Log || p.Seq < g.at.Seq:
		return false, fmt.Errorf("%w: pages of set %d are of two logs", ErrMessage, g.set)
	}
	if g.pages++; g.pages > maxPages {
		return false, fmt.Errorf("%w: pages of set %d without end", ErrMessage, g.set)
	}
	entries, last := p.Entries, p.Next == 0
	if g.from = p.Next; p.Equal {
		entries, last = g.own[:g.compare], g.upto == indexEnd
		g.from = g.upto
	}
	g.differs = g.differs || !p.Equal
	if err := t.room(len(entries)); err != nil {
		return false, err
	}
	g.entries = append(g.entries, entries...)
	if !last {
		return true, nil
	}
	return false, t.fetched()
}

// room takes room for entries of a set that is on its way.
func (t *Turn) room(n int) error {
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fetched+n > maxFetched {
		return errTooMuch
	}
	f.fetched += n
	return nil
}

// fetched takes over the set, which is to be followed from its place on.
func (t *Turn) fetched() error {
	f, g := t.f, t.fetch
	if g.differs {
		if err := f.Index.Replace(g.set, g.at, g.entries); err != nil {
			return fmt.Errorf("%w: %w", errOwn, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.sets[g.set]
	var wrote []Entry
	for _, index := range slices.Sorted(maps.Keys(s.wrote)) {
		wrote = append(wrote, NewEntry(index, s.wrote[index]))
	}
	f.Index.Apply(g.set, g.at, wrote)
	if s.at == t.Host {
		s.fetch, f.hosts[t.Host].soon = false, true
	}
	return nil
}
