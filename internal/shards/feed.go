package shards

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/node"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// Where the namespace has a locator, this node follows the sets of others at whole hosts of theirs, and reads
// at level one rest on what it has heard (package locator).

// followTick is how often it is looked what is due.
const followTick = 500 * time.Millisecond

// OpenLocator opens what is known of where keys are. left, if not nil, is told which host is not followed
// for a while.
func (s *Shards) OpenLocator(disk locator.Disk, seed uint64, left func(host node.ID, err error)) error {
	ns := s.NS
	index, err := locator.Open(locator.Config{Shards: ns.Rule().Shards, Seed: seed, Disk: disk})
	if err != nil {
		return fmt.Errorf("open the locator: %w", err)
	}
	s.Locator = locator.NewFollower(index, locator.Net{
		Self: ns.Self(), Left: left,
		Row:  func(shard placement.Shard) locator.Row { return leads(ns, shard) },
		Mark: func(shards ...placement.Shard) locator.Mark { return rowMark(ns, shards...) },
	})
	return nil
}

// Follow follows sets until the context ends. failed is told errors of the copies' disk.
func (s *Shards) Follow(ctx context.Context, failed func(error)) {
	for s.Net.Sleep(ctx, followTick) == nil {
		turns := s.Locator.Turns(s.Net.Now())
		for _, t := range turns {
			s.Net.Go(ctx, func(ctx context.Context) { s.follow(ctx, t) })
		}
		if run := s.Locator.Index.Work(s.Locator.Fetching()); run != nil {
			s.Net.Go(ctx, func(context.Context) {
				if err := run(); err != nil {
					failed(err)
				}
			})
		}
	}
}

// follow asks one host until the turn is over.
func (s *Shards) follow(ctx context.Context, t *locator.Turn) {
	for m := t.Next(s.Net.Now()); m != nil; m = t.Next(s.Net.Now()) {
		answer, err := s.askFeed(ctx, t, m)
		t.Answered(answer, err, s.Net.Now())
	}
}

func (s *Shards) askFeed(ctx context.Context, t *locator.Turn, m locator.Message) (locator.Message, error) {
	a, err := NewAsker(s.NS, t.Set) // while its row is the same, lists are synced where the host's are not
	if err != nil {
		return nil, err
	}
	q, err := a.feed(m)
	if err != nil {
		return nil, err
	}
	answer, _, err := askHost(ctx, s, a, t.Host, s.Net.Now()+Patience, q)
	if errors.Is(err, errRow) || ctx.Err() != nil {
		err = locator.ErrAgain
	}
	return answer, err
}

// Locate says where the value of a key is by what this node has heard: in a shard, which need not be that of
// the key's record; nowhere; or that hosts are to be asked. Reads at level one alone may rest on it.
func (s *Shards) Locate(key []byte) (locator.Where, placement.Shard) {
	if s.Locator == nil || bodies.Reserved(key) { // those are not followed
		return locator.Ask, 0
	}
	home, index := indexOf(s.NS, key)
	return s.Locator.Locate(home, index, s.Net.Now())
}

// wrote has the locator know a record that this node has written, before it is acknowledged: what this node
// writes it reads, until another host is followed, which may lack it yet.
func (s *Shards) wrote(r *dbadapter.Record) {
	if s.Locator == nil {
		return
	}
	if home, e := entryOf(s.NS, r); e.Code() != locator.Gone {
		s.Locator.Wrote(home, e)
	}
}

// The feed of a locator: what this node, as a whole host, says of the keys of its sets, and how it asks
// others (package locator). It is the change log of the set's store, and nothing is kept beside that: news
// are read from the log, pages from a snapshot.
//
// An index is that of a key also where its record is a tombstone: so a key that is nowhere reads as it would
// at the host, also to a writer that asks for the version of a deletion.

// What a question takes at most, in some 50 ms: changes of logs or indices, and bytes of records; what is
// more follows at the next one. Records are read feedGroup indices at a time, as they may be bodies.
const (
	maxPairs     = 1 << 14
	maxFeedBytes = 16 << 20
	feedGroup    = 32
)

// feedRoom is what an answer may yet take: changes of logs, or indices; and bytes of records.
type feedRoom struct{ changes, bytes int }

// indexOf is the shard of a key, and the key's index in it.
func indexOf(ns *node.Namespace, key []byte) (home placement.Shard, index dbadapter.Index) {
	home = ns.Home(key)
	return home, ns.View(home).Hasher().Index(key)
}

// entryOf is the shard of a record, and what a whole host says of it; Gone: nothing.
func entryOf(ns *node.Namespace, r *dbadapter.Record) (home placement.Shard, e locator.Entry) {
	home, index := indexOf(ns, r.Key)
	code := locator.Code(home)
	if ns.Bodied() {
		code = codeOf(ns, home, []dbadapter.Hashed{{Record: *r}})
	}
	return home, locator.NewEntry(index, code)
}

// leads are the hosts at which this node may follow a set: the old ones, unless it is a whole one itself.
func leads(ns *node.Namespace, shard placement.Shard) locator.Row {
	row := ns.Row(shard)
	if row == nil || ns.WholeHere(shard) != nil {
		return locator.Row{}
	}
	r := locator.Row{Name: row.Name()}
	for _, id := range row.Old {
		if id != ns.Self() && ns.Admits(id) {
			r.Hosts = append(r.Hosts, id)
		}
	}
	return r
}

// rowMark stands for the rows of shards by which this node goes, and the removals and lapses of which it knows.
func rowMark(ns *node.Namespace, shards ...placement.Shard) locator.Mark {
	h := sha256.New()
	gone := ns.Gone()
	h.Write(gone[:])
	for _, s := range shards {
		if row := ns.Row(s); row != nil {
			name := row.Name()
			h.Write(name[:])
		}
	}
	return locator.Mark(h.Sum(nil)[:8])
}

// feed is a question of the feed.
func (a *Asker) feed(m locator.Message) (question[locator.Message], error) {
	shards := a.ns.Rule().Shards
	data, err := locator.Append(nil, m, shards)
	return question[locator.Message]{&wire.AskFeed{Message: data}, func(_ node.ID, reply *wire.Reply) (locator.Message, error) {
		answer, err := locator.Parse(reply.Answer.(*wire.FeedAnswer).Message, shards)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
		}
		return answer, nil
	}}, err
}

// answerFeed answers a question of the feed.
func answerFeed(ctx context.Context, ns *node.Namespace, q *wire.AskFeed) (wire.Answering, error) {
	if !ns.Located() {
		return nil, fmt.Errorf("%w: the namespace has no locator", reconcile.ErrProtocol)
	}
	m, err := locator.Parse(q.Message, ns.Rule().Shards)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	var answer locator.Message
	var mark locator.Mark
	var shards []placement.Shard
	switch m := m.(type) {
	case *locator.Poll:
		mark = m.Mark
		for _, s := range m.Sets {
			shards = append(shards, s.Set)
		}
		answer, err = news(ctx, ns, m)
	case *locator.Take:
		mark, shards = m.Mark, []placement.Shard{m.Set}
		answer, err = feedPage(ctx, ns, m)
	default:
		err = fmt.Errorf("%w: a message of the feed that asks nothing", reconcile.ErrProtocol)
	}
	switch {
	case err != nil:
		return nil, err
	case rowMark(ns, shards...) != mark: // behind what was read, as at each routed question
		return &wire.Apart{}, nil
	}
	data, err := locator.Append(nil, answer, ns.Rule().Shards)
	return &wire.FeedAnswer{Message: data}, err
}

// news are the news of sets since the places of a poll.
func news(ctx context.Context, ns *node.Namespace, p *locator.Poll) (*locator.News, error) {
	n := &locator.News{}
	room := feedRoom{locator.MaxChanges, maxFeedBytes}
	for _, since := range p.Sets {
		if room.changes <= 0 || room.bytes <= 0 {
			break // the sets that are left out are asked for again
		}
		said, set := locator.SetNews{Said: locator.NotWhole}, ns.WholeHere(since.Set)
		if set != nil {
			news, err := setNews(ctx, set, since, &room)
			if ctx.Err() != nil {
				return nil, err
			}
			if err == nil && ns.WholeHere(since.Set) == set { // else another host is to be asked
				said = news
			}
		}
		n.Sets = append(n.Sets, said)
	}
	return n, nil
}

// setNews are those of the set since a place of its log, as far as there is room: what the changed indices say now.
func setNews(ctx context.Context, set *node.Set, since locator.Since, room *feedRoom) (n locator.SetNews, err error) {
	log := set.Store.Log()
	snap, err := set.Store.Snapshot()
	if err != nil {
		return n, err
	}
	defer snap.Close()
	end := snap.Seq()
	if uint64(log) != since.Log || since.Seq > end {
		return locator.SetNews{Said: locator.OtherLog}, nil
	}
	if since.Seq == end {
		return n, nil
	}
	n = locator.SetNews{Said: locator.Changed, To: end}
	last := since.Seq
	var changed []dbadapter.Index
	first := map[dbadapter.Index]uint64{} // change of each
	for c, err := range set.Store.Changes(ctx, since.Seq) {
		if errors.Is(err, dbadapter.ErrTrimmed) {
			return locator.SetNews{Said: locator.OtherLog}, nil
		}
		if err != nil {
			return n, err
		}
		if c.Seq > end {
			break
		}
		if room.changes <= 0 {
			n.To, n.More = last, true
			break
		}
		last = c.Seq
		room.changes--
		if _, seen := first[c.Index]; !seen && (set.Namespace().Bodied() || (c.Old == 0) != (c.New == 0)) { // 0 is that of no record
			first[c.Index] = c.Seq
			changed = append(changed, c.Index)
		}
	}
	said, read, err := entriesOf(set, snap, changed, true, room)
	if err != nil {
		return n, err
	}
	if read < len(changed) {
		n.To, n.More = first[changed[read]]-1, true
	}
	n.Changes = said
	slices.Sort(n.Changes)
	if set.Store.Log() != log { // the snapshot can be of either
		return locator.SetNews{Said: locator.OtherLog}, nil
	}
	return n, nil
}

// feedPage is a page of the entries of a set.
func feedPage(ctx context.Context, ns *node.Namespace, t *locator.Take) (*locator.Page, error) {
	if set := ns.WholeHere(t.Set); set != nil {
		p, err := setPage(ctx, set, t)
		if err != nil || ns.WholeHere(t.Set) == set {
			return p, err
		}
	}
	return &locator.Page{NotWhole: true}, nil
}

func setPage(ctx context.Context, set *node.Set, t *locator.Take) (*locator.Page, error) {
	log := set.Store.Log()
	snap, err := set.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	p := &locator.Page{Log: uint64(log), Seq: snap.Seq(), Next: t.From}
	room := feedRoom{maxPairs, maxFeedBytes}
	for more := true; more; { // reserved keys give no entries
		var indices []dbadapter.Index
		next := dbadapter.Index(0)
		for pair, err := range snap.Pairs(ctx, p.Next, 0) {
			if err != nil {
				return nil, err
			}
			if len(indices) == locator.MaxPage {
				next = pair.Index
				break
			}
			indices = append(indices, pair.Index)
		}
		entries, read, err := entriesOf(set, snap, indices, false, &room)
		if err != nil {
			return nil, err
		}
		if p.Next = next; read < len(indices) {
			p.Next = indices[read]
		}
		p.Entries = append(p.Entries, entries...)
		room.changes -= len(indices)
		more = p.Next != 0 && len(p.Entries) < locator.MaxPage && room.changes > 0 && room.bytes > 0
	}
	if set.Store.Log() != log {
		return nil, reconcile.ErrBusy // to be asked again
	}
	if upto, _ := slices.BinarySearch(p.Entries, locator.NewEntry(t.Upto, 0)); t.Upto != 0 && (p.Next == 0 || t.Upto <= p.Next) && locator.HashOf(p.Entries[:upto]) == t.Hash {
		return &locator.Page{Log: p.Log, Seq: p.Seq, Equal: true}, nil
	}
	if len(p.Entries) > locator.MaxPage {
		p.Next = p.Entries[locator.MaxPage].Index()
		p.Entries = p.Entries[:locator.MaxPage]
	}
	return p, nil
}

// entriesOf say of indices of the set where their values are, as far as there is room for reading records, and of how
// many they say that; of one without a record Gone, where gone is to be said. Reserved keys give none.
func entriesOf(set *node.Set, snap dbadapter.Snapshot, indices []dbadapter.Index, gone bool, room *feedRoom) (entries []locator.Entry, read int, err error) {
	for group := range slices.Chunk(indices, feedGroup) {
		if room.bytes <= 0 {
			break
		}
		group = slices.Sorted(slices.Values(group))
		buckets, sums := make([][]dbadapter.Hashed, len(group)), make([]dbadapter.Checksum, len(group))
		switch {
		case set.Namespace().Bodied():
			buckets, err = snap.Buckets(group)
		case gone: // else there is a record
			err = snap.Lookup(group, sums)
		}
		if err != nil {
			return nil, 0, err
		}
		for i, index := range group {
			code := locator.Code(set.Shard())
			switch {
			case set.Namespace().Bodied():
				for k := range buckets[i] {
					room.bytes -= buckets[i][k].Record.Weight()
				}
				if code = codeOf(set.Namespace(), set.Shard(), buckets[i]); code == locator.Gone && (!gone || len(buckets[i]) > 0) {
					continue
				}
			case gone && sums[i] == 0:
				code = locator.Gone
			}
			entries = append(entries, locator.NewEntry(index, code))
		}
		read += len(group)
	}
	return entries, read, nil
}

// codeOf says where the values of the records under one index are; those under reserved keys count for nothing.
func codeOf(ns *node.Namespace, shard placement.Shard, records []dbadapter.Hashed) locator.Code {
	code := locator.Gone
	for i := range records {
		r := &records[i].Record
		if bodies.Reserved(r.Key) {
			continue
		}
		of := locator.Code(shard)
		if p := bodies.Of(r); p != nil && int(p.Shard) < ns.Rule().Shards {
			of = locator.Code(p.Shard)
		}
		if code != locator.Gone && code != of {
			return locator.Shared
		}
		code = of
	}
	return code
}
