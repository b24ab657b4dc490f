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
	Host    roster.ID
	Set     placement.Shard // that is fetched, or one of those that are polled
	f       *Follower
	sets    []placement.Shard // that are polled
	fetch   *fetch            // nil: it polls
	sent    time.Duration
	poll    *Poll
	rows    []quorum.Name // of the sets polled, when the poll was sent
	answers int           // to its polls
	over    bool
}

// fetch is a set on its way. Pages are of moments one behind the other. The place is that of the first: what has
// changed since is told once more by the polls that follow from there.
type fetch struct {
	known   bool    // there is a copy, into which go the changes of each page that differs
	own     []Entry // what of it is not compared yet
	at      Place
	from    dbadapter.Index // of the next page
	upto    dbadapter.Index // to where own entries are compared; 0: not at all
	pages   int
	entries []Entry // if there is no copy
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
		s.missed.Store(false)
		sets = append(sets, set)
		t.poll.Sets = append(t.poll.Sets, Since{Set: set, Log: at.Log, Seq: at.Seq})
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
		h.polling = false
	} else {
		f.fetches--
		f.fetched -= len(t.fetch.entries)
		h.fetching, f.sets[t.Set].busy = false, false
	}
	switch {
	case err == nil:
		h.failures = 0
		return
	case errors.Is(err, ErrAgain):
		h.soon = true
		return
	case errors.Is(err, errSet):
		f.leave(t.Set, t.Host, now)
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
	if !ok || len(n.Sets) > len(t.poll.Sets) {
		return false, fmt.Errorf("%w: no news of the %d sets of a poll", ErrMessage, len(t.poll.Sets))
	}
	if t.answers++; t.answers > maxPages {
		return false, fmt.Errorf("%w: news without end", ErrMessage)
	}
	if more = len(n.Sets) < len(t.poll.Sets); more && !slices.ContainsFunc(n.Sets, func(s SetNews) bool { return s.Said != Same }) {
		return false, fmt.Errorf("%w: sets of a poll are left out, and nothing is said of others", ErrMessage)
	}
	for i := range n.Sets {
		since, said := &t.poll.Sets[i], &n.Sets[i]
		if said.Said == Changed && said.To <= since.Seq {
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

// take is the question for the next page.
func (t *Turn) take() Message {
	g := t.fetch
	if g.pages == 0 {
		g.own, _ = t.f.Index.Entries(t.Set) // a copy that cannot be read is let go of
		_, g.known = t.f.Index.Place(t.Set)
	}
	m := &Take{Mark: t.f.net.Mark(t.Set), Set: t.Set, From: g.from}
	i, _ := slices.BinarySearch(g.own, NewEntry(g.from, 0))
	g.own, g.upto = g.own[i:], 0
	if n := min(len(g.own), MaxPage); n > 0 {
		g.upto = indexEnd
		if n < len(g.own) {
			g.upto = g.own[n].Index()
		}
		m.Upto, m.Hash = g.upto, HashOf(g.own[:n])
	}
	return m
}

// page takes in a page, and reports whether more follows.
func (t *Turn) page(m Message) (more bool, err error) {
	g := t.fetch
	p, ok := m.(*Page)
	switch {
	case ok && p.NotWhole:
		return false, fmt.Errorf("%w: the host is not whole", errSet)
	case !ok || p.Equal && g.upto == 0 || len(p.Entries) > 0 && p.Entries[0].Index() < g.from || !p.Equal && p.Next != 0 && p.Next <= g.from:
		return false, fmt.Errorf("%w: no page of set %d from %d on", ErrMessage, t.Set, g.from)
	case g.at.Log == 0:
		g.at = Place{Host: t.Host, Log: p.Log, Seq: p.Seq}
	case p.Log != g.at.Log || p.Seq < g.at.Seq:
		return false, fmt.Errorf("%w: pages of set %d are of two logs", ErrMessage, t.Set)
	}
	if g.pages++; g.pages > maxPages {
		return false, fmt.Errorf("%w: pages of set %d without end", ErrMessage, t.Set)
	}
	if p.Equal {
		p.Entries, p.Next = nil, g.upto%indexEnd
	} else if err := t.taken(p); err != nil {
		return false, err
	}
	if g.from = p.Next; p.Next != 0 {
		return true, nil
	}
	return false, t.fetched()
}

// taken takes in a page that differs from what there was.
func (t *Turn) taken(p *Page) error {
	f, g := t.f, t.fetch
	f.mu.Lock()
	defer f.mu.Unlock()
	if !g.known {
		if f.fetched+len(p.Entries) > maxFetched {
			return fmt.Errorf("%w: more than %d keys are being fetched at once", errSet, maxFetched)
		}
		f.fetched += len(p.Entries)
		g.entries = append(g.entries, p.Entries...)
		return nil
	}
	own := g.own
	if p.Next != 0 {
		i, _ := slices.BinarySearch(own, NewEntry(p.Next, 0))
		own = own[:i]
	}
	f.Index.Apply(t.Set, Place{}, difference(own, p.Entries)) // of no log: it is fetched anew if this fetch fails
	return nil
}

// difference are the changes that make entries of others; both ascend.
func difference(before, after []Entry) (changes []Entry) {
	for _, e := range before {
		for ; len(after) > 0 && after[0].Index() < e.Index(); after = after[1:] {
			changes = append(changes, after[0])
		}
		switch {
		case len(after) == 0 || after[0].Index() > e.Index():
			changes = append(changes, NewEntry(e.Index(), Gone))
			continue
		case after[0] != e:
			changes = append(changes, after[0])
		}
		after = after[1:]
	}
	return append(changes, after...)
}

// fetched takes over the set, which is to be followed from its place on.
func (t *Turn) fetched() error {
	f, g := t.f, t.fetch
	if !g.known {
		if err := f.Index.Replace(t.Set, g.at, g.entries); err != nil {
			return fmt.Errorf("%w: %w", errSet, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.sets[t.Set]
	var wrote []Entry
	for _, index := range slices.Sorted(maps.Keys(s.wrote)) {
		wrote = append(wrote, NewEntry(index, s.wrote[index]))
	}
	f.Index.Apply(t.Set, g.at, wrote)
	if s.at == t.Host {
		s.fetch, f.hosts[t.Host].soon = false, true
	}
	return nil
}
