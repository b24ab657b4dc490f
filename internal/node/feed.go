package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/bodies"
	"github.com/syncd-io/syncd/internal/locator"
	"github.com/syncd-io/syncd/internal/placement"
	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

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

// IndexOf is the shard of a key, and the key's index in it.
func (ns *Namespace) IndexOf(key []byte) (home placement.Shard, index dbadapter.Index) {
	home = ns.Home(key)
	return home, ns.view(home).Keys.Hasher.Index(key)
}

// EntryOf is the shard of a record, and what a whole host says of it; Gone: nothing.
func (ns *Namespace) EntryOf(r *dbadapter.Record) (home placement.Shard, e locator.Entry) {
	home, index := ns.IndexOf(r.Key)
	code := locator.Code(home)
	if ns.Bodied() {
		code = ns.view(home).code([]dbadapter.Hashed{{Record: *r}})
	}
	return home, locator.NewEntry(index, code)
}

// Leads are the hosts at which this node may follow a set: the old ones, unless it is a whole one itself.
func (ns *Namespace) Leads(shard placement.Shard) locator.Row {
	row := ns.Row(shard)
	if row == nil || ns.WholeHere(shard) != nil {
		return locator.Row{}
	}
	r := locator.Row{Name: row.Name()}
	for _, id := range row.Old {
		if id != ns.node.ID && ns.Admits(id) {
			r.Hosts = append(r.Hosts, id)
		}
	}
	return r
}

// RowMark stands for the rows of shards by which this node goes, and the removals and lapses of which it knows.
func (ns *Namespace) RowMark(shards ...placement.Shard) locator.Mark {
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

// AskFeed is a question of the feed.
func (ns *Namespace) AskFeed(m locator.Message) (*wire.AskFeed, error) {
	data, err := locator.Append(nil, m, ns.rule.Shards)
	return &wire.AskFeed{Message: data}, err
}

// Feed is what a message of the peer answers to AskFeed. apart: it goes by another row, or knows of other
// removals or lapses.
func (a *Asker) Feed(remote ID, ask *wire.Ask, m wire.Message) (answer locator.Message, apart bool, err error) {
	reply, err := a.reply(remote, ask, m)
	if err != nil {
		return nil, false, err
	}
	data := reply.Answer.(*wire.FeedAnswer).Message // CheckReply has compared the subjects
	if len(data) == 0 {
		return nil, true, nil
	}
	if answer, err = locator.Parse(data, a.ns.rule.Shards); err != nil {
		return nil, false, fmt.Errorf("%w: %w", reconcile.ErrProtocol, err)
	}
	return answer, false, nil
}

// answerFeed answers a question of the feed.
func (ns *Namespace) answerFeed(ctx context.Context, q *wire.AskFeed) (*wire.FeedAnswer, error) {
	if !ns.Located() {
		return nil, fmt.Errorf("%w: the namespace has no locator", reconcile.ErrProtocol)
	}
	m, err := locator.Parse(q.Message, ns.rule.Shards)
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
		answer, err = ns.news(ctx, m)
	case *locator.Take:
		mark, shards = m.Mark, []placement.Shard{m.Set}
		answer, err = ns.page(ctx, m)
	default:
		err = fmt.Errorf("%w: a message of the feed that asks nothing", reconcile.ErrProtocol)
	}
	switch {
	case err != nil:
		return nil, err
	case ns.RowMark(shards...) != mark: // behind what was read, as at each routed question
		return &wire.FeedAnswer{}, nil
	}
	data, err := locator.Append(nil, answer, ns.rule.Shards)
	return &wire.FeedAnswer{Message: data}, err
}

// news are the news of sets since the places of a poll.
func (ns *Namespace) news(ctx context.Context, p *locator.Poll) (*locator.News, error) {
	n := &locator.News{}
	room := feedRoom{locator.MaxChanges, maxFeedBytes}
	for _, since := range p.Sets {
		if room.changes <= 0 || room.bytes <= 0 {
			break // the sets that are left out are asked for again
		}
		said, set := locator.SetNews{Said: locator.NotWhole}, ns.WholeHere(since.Set)
		if set != nil {
			news, err := set.news(ctx, since, &room)
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

// news are those of the set since a place of its log, as far as there is room: what the changed indices say now.
func (set *Set) news(ctx context.Context, since locator.Since, room *feedRoom) (n locator.SetNews, err error) {
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
		if _, seen := first[c.Index]; !seen && (set.ns.Bodied() || (c.Old == 0) != (c.New == 0)) { // 0 is that of no record
			first[c.Index] = c.Seq
			changed = append(changed, c.Index)
		}
	}
	said, read, err := set.entries(snap, changed, true, room)
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

// page is a page of the entries of a set.
func (ns *Namespace) page(ctx context.Context, t *locator.Take) (*locator.Page, error) {
	if set := ns.WholeHere(t.Set); set != nil {
		p, err := set.page(ctx, t)
		if err != nil || ns.WholeHere(t.Set) == set {
			return p, err
		}
	}
	return &locator.Page{NotWhole: true}, nil
}

func (set *Set) page(ctx context.Context, t *locator.Take) (*locator.Page, error) {
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
		entries, read, err := set.entries(snap, indices, false, &room)
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

// entries say of indices of the set where their values are, as far as there is room for reading records, and of how
// many they say that; of one without a record Gone, where gone is to be said. Reserved keys give none.
func (set *Set) entries(snap dbadapter.Snapshot, indices []dbadapter.Index, gone bool, room *feedRoom) (entries []locator.Entry, read int, err error) {
	for group := range slices.Chunk(indices, feedGroup) {
		if room.bytes <= 0 {
			break
		}
		group = slices.Sorted(slices.Values(group))
		buckets, sums := make([][]dbadapter.Hashed, len(group)), make([]dbadapter.Checksum, len(group))
		switch {
		case set.ns.Bodied():
			buckets, err = snap.Buckets(group)
		case gone: // else there is a record
			err = snap.Lookup(group, sums)
		}
		if err != nil {
			return nil, 0, err
		}
		for i, index := range group {
			code := locator.Code(set.shard)
			switch {
			case set.ns.Bodied():
				for k := range buckets[i] {
					room.bytes -= buckets[i][k].Record.Weight()
				}
				if code = set.code(buckets[i]); code == locator.Gone && (!gone || len(buckets[i]) > 0) {
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

// code says where the values of the records under one index are; those under reserved keys count for nothing.
func (set *Set) code(records []dbadapter.Hashed) locator.Code {
	code := locator.Gone
	for i := range records {
		r := &records[i].Record
		if bodies.Reserved(r.Key) {
			continue
		}
		of := locator.Code(set.shard)
		if p := pointerOf(r); p != nil && int(p.Shard) < set.ns.rule.Shards {
			of = locator.Code(p.Shard)
		}
		if code != locator.Gone && code != of {
			return locator.Shared
		}
		code = of
	}
	return code
}
